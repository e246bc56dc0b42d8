// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The array of a CQ's QPs, under its qps_lock, which is held while they are served.
#include "net/qp/cq_qps.h"

#include "net/cq/sets.h"
#include "net/qp/carrier.h"
#include "net/qp/serving.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

/*
 * A CQ with more QPs than this has an epoll set in any case: one more fd beside so many does not
 * matter.
 */
#define MANY 64

static void control(struct aw_uqp *qp, int epfd, int op, uint32_t events) AW_REQUIRES(qp->lock)
{
	struct epoll_event ev = { .events = events, .data.ptr = qp };

	if (epoll_ctl(epfd, op, qp->fd, &ev) != 0 && op == EPOLL_CTL_ADD && errno != EEXIST)
		aw_serving_lost_reach(qp);
}

static void each_set(struct aw_uqp *qp, int op, uint32_t events) AW_REQUIRES(qp->lock)
{
	struct aw_cq *cqs[2] = { qp->attr.send_cq, qp->attr.recv_cq };

	for (int i = 0; i < 2; i++)
		if (cqs[i]->epfd >= 0 && (i == 0 || cqs[1] != cqs[0]))
			control(qp, cqs[i]->epfd, op, events);
}

void aw_cq_sets_join(struct aw_uqp *qp, uint32_t events)
{
	each_set(qp, EPOLL_CTL_ADD, events);
}

void aw_cq_sets_change(struct aw_uqp *qp, uint32_t events)
{
	each_set(qp, EPOLL_CTL_MOD, events);
}

void aw_cq_sets_leave(struct aw_uqp *qp)
{
	each_set(qp, EPOLL_CTL_DEL, 0);
}

/* From AW_CQ_DIRECT_MAX + 1 QPs on the CQ has an epoll set, if there is one; QPs that have sockets by then join it here. */
static void make_epoll(struct aw_cq *cq) AW_REQUIRES(cq->qps_lock)
{
	cq->epfd = aw_sets_open(AW_SETS_CQ, cq->qps_count > MANY);
	if (cq->epfd < 0)
		return;
	for (uint32_t i = 0; i < cq->qps_count; i++) {
		struct aw_uqp *qp = cq->qps[i];

		aw_lock(&qp->lock);
		if (qp->fd >= 0 && qp->in->is_socket)
			control(qp, cq->epfd, EPOLL_CTL_ADD, qp->listens_for);
		aw_unlock(&qp->lock);
	}
}

/* A QP joins a CQ once, though it may use it for both its queues. */
static uint32_t *slot_of(const struct aw_cq *cq, struct aw_uqp *qp) AW_REQUIRES(cq->qps_lock)
{
	return &qp->of_cq.slot[cq == qp->attr.send_cq ? 0 : 1];
}

static void put_at(struct aw_cq *cq, uint32_t slot, struct aw_uqp *qp) AW_REQUIRES(cq->qps_lock)
{
	cq->qps[slot] = qp;
	*slot_of(cq, qp) = slot;
}

int aw_cq_join_qp(struct aw_cq *cq, struct aw_uqp *qp)
{
	aw_lock(&cq->qps_lock);
	int err = 0;

	if (cq->qps_count == cq->qps_room) {
		uint32_t room = cq->qps_room ? cq->qps_room * 2 : 4;
		struct aw_uqp **qps = realloc(cq->qps, room * sizeof(*qps));

		if (qps) {
			cq->qps = qps;
			cq->qps_room = room;
		} else {
			err = ENOMEM;
		}
	}
	if (!err) {
		put_at(cq, cq->qps_count++, qp);
		if (cq->epfd < 0 && cq->qps_count > AW_CQ_DIRECT_MAX)
			make_epoll(cq);
	}
	aw_unlock(&cq->qps_lock);
	return err;
}

void aw_cq_leave_qp(struct aw_cq *cq, struct aw_uqp *qp)
{
	aw_lock(&cq->qps_lock);
	assert(cq->qps[*slot_of(cq, qp)] == qp);
	put_at(cq, *slot_of(cq, qp), cq->qps[--cq->qps_count]);
	aw_unlock(&cq->qps_lock);
}
