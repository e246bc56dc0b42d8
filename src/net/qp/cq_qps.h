// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QPs that use a CQ, and the epoll set over their sockets, which a CQ of many QPs has. A CQ (net/cq/cq.h) itself knows no QP.
#ifndef NET_CQ_QPS_H
#define NET_CQ_QPS_H

#include "net/qp/uqp.h"

/* Up to this number of QPs a poller reads each one's socket; beyond it, one epoll set tells which have bytes. */
#define AW_CQ_DIRECT_MAX 4

/* A QP joins each of its CQs once. join: 0 or ENOMEM. */
int aw_cq_join_qp(struct aw_cq *cq, struct aw_uqp *qp) AW_MUST_USE
	AW_EXCLUDES(cq->qps_lock, qp->lock);
void aw_cq_leave_qp(struct aw_cq *cq, struct aw_uqp *qp) AW_EXCLUDES(cq->qps_lock, qp->lock);

/*
 * The QP's socket joins the sets of its CQs, changes its events there, leaves them. A set that does not take it
 * leaves the QP to the progress thread (aw_serving_lost_reach).
 */
void aw_cq_sets_join(struct aw_uqp *qp, uint32_t events) AW_REQUIRES(qp->lock);
void aw_cq_sets_change(struct aw_uqp *qp, uint32_t events) AW_REQUIRES(qp->lock);
void aw_cq_sets_leave(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
