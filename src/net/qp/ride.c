// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides whether an acknowledgement may wait for a post, and keeps the credits.
#include "net/qp/ride.h"

#include "base/clock.h"
#include "core/ack.h"
#include "core/reads.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

static _Atomic uint32_t riding; /* acknowledgements that wait, of all QPs */

/* Threads look at these counts before they look for the QP. */
static void count(const struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	atomic_fetch_add(&riding, change);
	atomic_fetch_add(&a->riding, change);
	if (b != a)
		atomic_fetch_add(&b->riding, change);
}

static void charge(struct aw_ride *ride, uint32_t credits)
{
	ride->credits -= ride->credits < credits ? ride->credits : credits;
}

/*
 * True for a time after which the peer must not wait longer, and the program evidently does
 * something else.
 */
static bool is_long(const struct aw_ride *ride)
{
	return aw_now_ns() - ride->since_ns >= AW_HOLD_NS;
}

/* True when one acknowledgement and nothing else is to be sent. */
static bool is_alone(const struct aw_qp *core)
{
	const struct aw_irq_entry *entry = aw_irq_head(core);

	return core->irq_count == 1 && !entry->atomic && entry->req.size == 0 &&
	       core->sq.next == core->sq.tail && !core->rtr_due && !aw_ack_is_due(core);
}

/*
 * True when each poll serves the QP: a poll of a CQ with many QPs serves only those that have
 * bytes.
 */
static bool is_polled(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	return qp->lent && !qp->lent_to && a->epfd < 0 && b->epfd < 0;
}

/* A thread that arms a CQ after this look finds the acknowledgement waiting. */
static bool is_armed(const struct aw_uqp *qp)
{
	return atomic_load(&qp->attr.send_cq->armed) != AW_ARM_NONE ||
	       atomic_load(&qp->attr.recv_cq->armed) != AW_ARM_NONE;
}

static bool can_wait(const struct aw_uqp *qp)
{
	return qp->core.acks && qp->core.state == AW_QP_RTS && qp->core.irq_count > 0 &&
	       qp->fd >= 0 && !qp->batch && !qp->starved && !aw_move_is_due(qp) &&
	       is_alone(&qp->core) && is_polled(qp);
}

bool aw_ride_begin(struct aw_uqp *qp)
{
	struct aw_ride *ride = &qp->ride;

	if (!can_wait(qp))
		return false;
	ride->due = true;
	ride->since_ns = aw_now_ns();
	if (ride->credits < AW_HOLD_PRICE)
		return false;
	count(qp, 1);
	ride->waits = true;
	if (is_armed(qp))
		aw_ride_end(qp);
	return ride->waits;
}

void aw_ride_posted(struct aw_uqp *qp)
{
	struct aw_ride *ride = &qp->ride;

	if (!ride->due)
		return;
	ride->due = false;
	if (is_long(ride))
		charge(ride, ride->waits ? AW_HOLD_PRICE : 1);
	else
		ride->credits += ride->credits < AW_HOLD_CREDITS_MAX;
}

void aw_ride_missed(struct aw_uqp *qp)
{
	struct aw_ride *ride = &qp->ride;

	if (!ride->due)
		return;
	ride->due = false;
	charge(ride, ride->waits && is_long(ride) ? AW_HOLD_PRICE : 1);
}

void aw_ride_end(struct aw_uqp *qp)
{
	if (qp->ride.waits)
		count(qp, -1u);
	qp->ride.waits = false;
}

bool aw_ride_any(void)
{
	return atomic_load_explicit(&riding, memory_order_relaxed) > 0;
}

bool aw_ride_is_late(const struct aw_uqp *qp)
{
	return qp->ride.waits && (!qp->lent || is_long(&qp->ride));
}

/* exit(3) runs this as in net/qp/hold.c: it waits for no lock, and needs none to find a QP. */
__attribute__((destructor)) static void release_at_exit(void)
{
	for (uint32_t handle = 0; aw_ride_any() && handle < AW_QP_MAX; handle++)
		aw_uqp_on_exit(handle);
}

void aw_ride_armed(struct aw_cq *cq)
{
	if (atomic_load(&cq->riding) == 0)
		return;
	aw_lock(&cq->qps_lock);
	for (uint32_t i = 0; i < cq->qps_count; i++)
		aw_uqp_on_release(cq->qps[i]->handle);
	aw_unlock(&cq->qps_lock);
}
