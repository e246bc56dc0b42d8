// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list of the QPs whose posts wait, oldest first, and counts of what waits, which threads look at before they look
// for a QP.
#include "net/qp/deferral.h"

#include "base/clock.h"
#include "core/ack.h"
#include "core/reads.h"
#include "net/progress/engine.h"
#include "net/qp/carrier.h"
#include "net/qp/serving.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <pthread.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_uqp) waiting AW_GUARDED_BY(lock) = TAILQ_HEAD_INITIALIZER(waiting);
static _Atomic uint32_t posts_waiting; /* QPs in the list */
static _Atomic uint32_t acks_waiting; /* of all QPs */
static bool looking AW_GUARDED_BY(lock); /* the progress thread looks at the list */
static bool listed AW_GUARDED_BY(lock); /* a QP has joined it since the last look */

static void count_posts(const struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	atomic_fetch_add(&posts_waiting, change);
	atomic_fetch_add(&a->posts_waiting, change);
	if (b != a)
		atomic_fetch_add(&b->posts_waiting, change);
}

static void count_ack(const struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	atomic_fetch_add(&acks_waiting, change);
	atomic_fetch_add(&a->acks_waiting, change);
	if (b != a)
		atomic_fetch_add(&b->acks_waiting, change);
}

/* True when the QP can send, and nothing is under way that a send would push on. */
static bool is_free_to_send(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->core.state == AW_QP_RTS && qp->fd >= 0 && !qp->batch && !qp->starved;
}

static struct aw_credit_polls polls_of(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	struct aw_credit_polls polls = {
		.count = atomic_load_explicit(&a->polls, memory_order_relaxed),
		.behind_burst_ns = { atomic_load_explicit(&a->polled_ns, memory_order_relaxed),
				     atomic_load_explicit(&b->polled_ns, memory_order_relaxed) },
	};

	if (b != a)
		polls.count += atomic_load_explicit(&b->polls, memory_order_relaxed);
	return polls;
}

/* The next poll of the CQ notes its time. */
static void ask_for_time(struct aw_cq *cq)
{
	if (!atomic_load_explicit(&cq->burst, memory_order_relaxed))
		atomic_store_explicit(&cq->burst, true, memory_order_relaxed);
}

static struct aw_credit_posts posts_of(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_sq *sq = &qp->core.sq;
	uint32_t used =
		aw_sq_count(sq) + atomic_load_explicit(&qp->of_cq.unpolled, memory_order_relaxed);

	return (struct aw_credit_posts){
		.posts = sq->tail - sq->next,
		.slots = used < sq->capacity ? sq->capacity - used : 0,
		.bytes = qp->deferral.bytes,
	};
}

static void list(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_lock(&lock);
	TAILQ_INSERT_TAIL(&waiting, qp, deferral.entry);
	count_posts(qp, 1);
	bool first = !looking;

	looking = listed = true;
	aw_unlock(&lock);
	if (first)
		aw_engine_kick_tick();
}

static void unlist(struct aw_uqp *qp) AW_REQUIRES(lock)
{
	TAILQ_REMOVE(&waiting, qp, deferral.entry);
	qp->deferral.posts.waits = false;
	count_posts(qp, -1u);
}

bool aw_deferral_post(struct aw_uqp *qp)
{
	struct aw_deferral *d = &qp->deferral;

	/* A post into memory makes no system call that waiting could save. */
	if (!qp->out->is_socket && !d->ack.due)
		return false;
	const struct aw_credit_polls polls = polls_of(qp);
	/* Behind a poll a post begins anew, whatever the time. */
	uint64_t now = d->ack.due || polls.count == d->posts.polls ? aw_now_ns() : 0;

	aw_credit_ack_answered(&d->ack, now);
	if (!aw_credit_posted(&d->posts, &polls, now))
		return false;
	ask_for_time(qp->attr.send_cq);
	ask_for_time(qp->attr.recv_cq);
	const struct aw_credit_posts posts = posts_of(qp);

	if (!aw_credit_lets_posts_wait(&d->posts, &posts, now) || !is_free_to_send(qp) ||
	    !qp->out->is_socket || aw_uqp_is_inherited(qp))
		return false;
	bool waited = d->posts.waits;

	aw_credit_posts_wait(&d->posts, now);
	if (!waited)
		list(qp);
	/* A thread that arms a CQ after this look finds what waits by the counts. */
	return !aw_uqp_is_armed(qp);
}

/* The progress thread looks for posts that wait since AW_LATE_NS; where posts wait already their time runs on. */
bool aw_deferral_hold(struct aw_uqp *qp, uint64_t hold_ns)
{
	struct aw_deferral *d = &qp->deferral;
	uint64_t now = aw_now_ns();

	aw_credit_ack_answered(&d->ack, now);
	if (hold_ns == 0 || qp->core.sq.next == qp->core.sq.tail || !is_free_to_send(qp) ||
	    aw_uqp_is_inherited(qp))
		return false;
	bool waited = d->posts.waits;

	aw_credit_posts_wait(&d->posts, now + hold_ns - AW_LATE_NS);
	if (!waited)
		list(qp);
	return true;
}

void aw_deferral_sent(struct aw_uqp *qp)
{
	if (qp->out->is_socket)
		qp->deferral.posts.posted_ns = aw_now_ns();
}

bool aw_deferral_ack(struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	struct aw_ack_credit *ack = &qp->deferral.ack;
	const struct aw_qp *core = &qp->core;

	/* One acknowledgement and nothing else is to be sent. */
	if (!core->acks || core->irq_count != 1 || !is_free_to_send(qp))
		return false;
	const struct aw_irq_entry *entry = aw_irq_head(core);

	if (entry->kind != AW_REQUEST_READ || entry->req.size != 0 ||
	    core->sq.next != core->sq.tail || core->rtr_due ||
	    core->not_ready != core->not_ready_told || aw_ack_is_due(core))
		return false;
	/* Each poll has to serve the QP: a poll of a CQ with many QPs serves only those that have bytes. */
	if (!aw_serving_is_polled(&qp->serving) || a->epfd >= 0 || b->epfd >= 0)
		return false;
	if (!aw_credit_ack_due(ack, aw_now_ns()))
		return false;
	count_ack(qp, 1);
	if (aw_uqp_is_armed(qp))
		aw_deferral_end_ack(qp);
	return ack->waits;
}

void aw_deferral_missed(struct aw_uqp *qp)
{
	if (qp->deferral.ack.due)
		aw_credit_ack_missed(&qp->deferral.ack, aw_now_ns());
}

void aw_deferral_end(struct aw_uqp *qp)
{
	struct aw_deferral *d = &qp->deferral;

	d->bytes = 0;
	if (d->posts.waits) {
		aw_lock(&lock);
		unlist(qp);
		aw_unlock(&lock);
	}
	aw_deferral_end_ack(qp);
}

void aw_deferral_end_ack(struct aw_uqp *qp)
{
	if (qp->deferral.ack.waits)
		count_ack(qp, -1u);
	qp->deferral.ack.waits = false;
}

bool aw_deferral_any_ack(void)
{
	return atomic_load_explicit(&acks_waiting, memory_order_relaxed) > 0;
}

bool aw_deferral_ack_is_late(const struct aw_uqp *qp)
{
	return qp->deferral.ack.waits && aw_credit_ack_is_late(&qp->deferral.ack, aw_now_ns());
}

uint32_t aw_deferral_find(const struct aw_cq *cq, uint64_t before_ns)
{
	aw_lock(&lock);
	struct aw_uqp *qp = TAILQ_FIRST(&waiting);

	while (qp && cq && qp->attr.send_cq != cq && qp->attr.recv_cq != cq)
		qp = TAILQ_NEXT(qp, deferral.entry);
	uint32_t handle = qp && qp->deferral.posts.since_ns < before_ns ? qp->handle
									: AW_TABLE_NONE;

	aw_unlock(&lock);
	return handle;
}

bool aw_deferral_try_find(uint32_t *handle)
{
	if (aw_trylock(&lock) != 0)
		return false;
	struct aw_uqp *qp = TAILQ_FIRST(&waiting);

	*handle = qp ? qp->handle : AW_TABLE_NONE;
	aw_unlock(&lock);
	return true;
}

bool aw_deferral_looked(void)
{
	aw_lock(&lock);
	looking = listed || !TAILQ_EMPTY(&waiting);
	bool again = looking;

	listed = false;
	aw_unlock(&lock);
	return again;
}

uint32_t aw_deferral_count(void)
{
	return atomic_load(&posts_waiting);
}

void aw_deferral_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_deferral_fork_parent(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}

void aw_deferral_fork_child(void) AW_RELEASE(lock)
{
	while (!TAILQ_EMPTY(&waiting))
		unlist(TAILQ_FIRST(&waiting));
	looking = listed = false;
	aw_unlock(&lock);
}
