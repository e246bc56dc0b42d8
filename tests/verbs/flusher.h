// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP in error, which completes each receive as it is posted: completions without a peer.
#ifndef TESTS_VERBS_FLUSHER_H
#define TESTS_VERBS_FLUSHER_H

#include "fixture.h"

static inline struct ibv_qp *flusher_on(struct fixture *f, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	return qp;
}

static inline struct ibv_qp *flusher_make(struct fixture *f)
{
	return flusher_on(f, f->cq);
}

static inline void complete(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id }, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

#endif
