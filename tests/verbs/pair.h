// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two connected QPs of one fixture, without rdma_cm: a TCP connection on the loopback interface is
// given to both as if its MPA start-up were done.
#ifndef TESTS_VERBS_PAIR_H
#define TESTS_VERBS_PAIR_H

#include "fixture.h"

enum {
	PAIR_RD = 7, /* IRD and ORD of both */
	PAIR_MEMORY = 1 << 18,
};

struct side {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp; /* made for all ibv_wr_* operations */
	uint8_t *memory; /* PAIR_MEMORY octets, all zero */
	struct ibv_mr *mr; /* of memory, with all rights */
};

struct pair {
	struct fixture *f;
	struct side a; /* the initiator */
	struct side b;
};

/* srq: what b receives from, or NULL. The two ends agreed to all of docs/extensions.md. */
void pair_make(struct pair *p, struct fixture *f, struct ibv_srq *srq);
/* They did not; nor to CRCs. */
void pair_make_plain(struct pair *p, struct fixture *f);
void pair_make_bare(struct pair *p, struct fixture *f);
void pair_destroy(struct pair *p);

/* The two ends of a TCP connection, non-blocking; and one given to a QP in INIT. */
void pair_sockets(int fds[2]);
void pair_attach(struct ibv_qp *qp, int fd, bool initiator);

/* A piece of the memory; and a receive into one. */
struct ibv_sge side_sge(const struct side *s, size_t offset, uint32_t length);
void side_recv(struct side *s, uint64_t wr_id, size_t offset, uint32_t length);

#endif
