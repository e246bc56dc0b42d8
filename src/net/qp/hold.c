// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One list of the QPs that hold posts, oldest first. Pollers send the posts; the progress thread
// looks at the list for as long as posts are held now and then, and sends those that are late.
#include "net/qp/hold.h"

#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/carrier.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

#include <pthread.h>

#define LOOK_NS 50000u /* between two looks of the progress thread */
#define LATE_NS (AW_HOLD_NS + AW_HOLD_GAP_NS) /* after so long no post or poll is to be expected */
#define LOOKS_MAX 1024 /* per tick, so that other work has its turn */
#define NOBODY UINT32_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_uqp) holding = TAILQ_HEAD_INITIALIZER(holding);
static _Atomic uint32_t holding_count;
static bool looking; /* the progress thread looks at the list */
static bool held; /* a post has been held since its last look */
static pthread_once_t registered = PTHREAD_ONCE_INIT;

/* Threads look at these counts before they lock the list. */
static void count(const struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	atomic_fetch_add(&holding_count, change);
	atomic_fetch_add(&a->holding, change);
	if (b != a)
		atomic_fetch_add(&b->holding, change);
}

static void unlist(struct aw_uqp *qp)
{
	TAILQ_REMOVE(&holding, qp, hold.entry);
	qp->hold.listed = false;
	count(qp, -1u);
}

/* The first QP of cq, or of all CQs. The caller holds the lock. */
static struct aw_uqp *first_of(const struct aw_cq *cq)
{
	struct aw_uqp *qp = TAILQ_FIRST(&holding);

	while (qp && cq && qp->attr.send_cq != cq && qp->attr.recv_cq != cq)
		qp = TAILQ_NEXT(qp, hold.entry);
	return qp;
}

/* The handle of a QP that has held posts since before that time, or NOBODY. */
static uint32_t find(const struct aw_cq *cq, uint64_t before_ns)
{
	aw_lock(&lock);
	struct aw_uqp *qp = first_of(cq);
	uint32_t handle = qp && qp->hold.since_ns < before_ns ? qp->handle : NOBODY;

	aw_unlock(&lock);
	return handle;
}

/* most: the number of QPs that hold posts now. Other threads may go on holding posts meanwhile. */
static void release(const struct aw_cq *cq, uint32_t most)
{
	uint32_t handle;

	for (; most > 0 && (handle = find(cq, UINT64_MAX)) != NOBODY; most--)
		aw_uqp_on_release(handle);
}

void aw_hold_armed(struct aw_cq *cq)
{
	release(cq, atomic_load(&cq->holding));
}

void aw_hold_polled(struct aw_cq *cq)
{
	atomic_fetch_add_explicit(&cq->polls, 1, memory_order_relaxed);
	if (atomic_load_explicit(&cq->burst, memory_order_relaxed)) {
		atomic_store_explicit(&cq->burst, false, memory_order_relaxed);
		atomic_store_explicit(&cq->polled_ns, aw_now_ns(), memory_order_relaxed);
	}
	aw_hold_armed(cq);
}

void aw_hold_release(void)
{
	release(NULL, atomic_load(&holding_count));
}

/*
 * exit(3) runs this in any thread, with any lock held, and the sockets end next. Other threads go
 * on meanwhile: without the list's lock a QP may be destroyed, so only its handle is used.
 */
__attribute__((destructor)) static void release_at_exit(void)
{
	for (uint32_t most = atomic_load(&holding_count); most > 0; most--) {
		if (aw_trylock(&lock) != 0)
			return;
		struct aw_uqp *qp = TAILQ_FIRST(&holding);
		uint32_t handle = qp ? qp->handle : NOBODY;

		aw_unlock(&lock);
		if (handle != NOBODY)
			aw_uqp_on_exit(handle);
	}
}

bool aw_hold_is_late(const struct aw_uqp *qp)
{
	return qp->hold.listed && aw_now_ns() - qp->hold.since_ns >= LATE_NS;
}

static uint64_t look(uint64_t now_ns)
{
	uint32_t handle;
	bool again;

	for (int i = 0; i < LOOKS_MAX; i++) {
		handle = find(NULL, now_ns - LATE_NS);
		if (handle == NOBODY)
			break;
		aw_uqp_on_late(handle);
	}
	aw_lock(&lock);
	again = held || !TAILQ_EMPTY(&holding);
	looking = again;
	held = false;
	aw_unlock(&lock);
	return again ? aw_now_ns() + LOOK_NS : 0;
}

static void set_tick(void)
{
	aw_engine_set_tick(AW_TICK_HOLD, look);
}

static void list(struct aw_uqp *qp, uint64_t now_ns)
{
	bool first;

	pthread_once(&registered, set_tick);
	aw_lock(&lock);
	qp->hold.since_ns = now_ns;
	qp->hold.listed = true;
	TAILQ_INSERT_TAIL(&holding, qp, hold.entry);
	count(qp, 1);
	first = !looking;
	looking = held = true;
	aw_unlock(&lock);
	if (first)
		aw_engine_kick_tick();
}

static uint32_t polls_now(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	uint32_t polls = atomic_load_explicit(&a->polls, memory_order_relaxed);

	if (b != a)
		polls += atomic_load_explicit(&b->polls, memory_order_relaxed);
	return polls;
}

static void ask_cq(struct aw_cq *cq)
{
	if (!atomic_load_explicit(&cq->burst, memory_order_relaxed))
		atomic_store_explicit(&cq->burst, true, memory_order_relaxed);
}

/*
 * The time from the last post to the first poll after it. Without such a poll the result is very
 * large.
 */
static uint64_t poll_after_ns(const struct aw_hold *h, struct aw_cq *cq)
{
	return atomic_load_explicit(&cq->polled_ns, memory_order_relaxed) - h->posted_ns;
}

static void earn(struct aw_hold *h, uint32_t credits)
{
	uint32_t room = AW_HOLD_CREDITS_MAX - h->credits;

	h->credits += credits < room ? credits : room;
}

/* A burst ended at a poll: the QP earns a credit for each system call that holding saves, or loses one. */
static void judge(struct aw_uqp *qp)
{
	struct aw_hold *h = &qp->hold;

	if (poll_after_ns(h, qp->attr.send_cq) >= AW_HOLD_GAP_NS &&
	    poll_after_ns(h, qp->attr.recv_cq) >= AW_HOLD_GAP_NS)
		h->credits -= h->credits > 0;
	else
		earn(h, h->burst - 1);
}

/* Counts a post into the burst, or begins another burst. */
static void count_post(struct aw_uqp *qp, uint64_t now_ns)
{
	struct aw_hold *h = &qp->hold;
	uint32_t polls = polls_now(qp);
	bool polled = polls != h->polls;

	if (polled && h->burst > 1)
		judge(qp);
	if (polled || now_ns - h->posted_ns >= AW_HOLD_GAP_NS)
		h->burst = 0;
	h->polls = polls;
	h->burst++;
	if (h->burst < 2)
		return;
	ask_cq(qp->attr.send_cq);
	ask_cq(qp->attr.recv_cq);
}

static bool has_room(const struct aw_uqp *qp, uint64_t now_ns)
{
	const struct aw_hold *h = &qp->hold;
	const struct aw_sq *sq = &qp->core.sq;
	uint32_t unpolled = atomic_load_explicit(&qp->of_cq.unpolled, memory_order_relaxed);
	uint32_t posts = sq->tail - sq->next;

	if (h->listed && now_ns - h->since_ns >= AW_HOLD_NS)
		return false;
	return posts > 0 && posts < AW_HOLD_POSTS_MAX && h->bytes < AW_HOLD_BYTES_MAX &&
	       aw_sq_count(sq) + unpolled < sq->capacity;
}

/* True when a poll is to be expected, and nothing else prevents transmitting then. */
static bool may_hold(const struct aw_uqp *qp, uint64_t now_ns)
{
	return qp->hold.burst > 1 && qp->hold.credits >= AW_HOLD_PRICE && has_room(qp, now_ns) &&
	       qp->core.state == AW_QP_RTS && qp->fd >= 0 && qp->out->is_socket && !qp->batch &&
	       !qp->starved && !aw_uqp_is_inherited(qp);
}

/* A thread that arms a CQ after this look finds the QP in the list. */
static bool is_armed(const struct aw_uqp *qp)
{
	return atomic_load(&qp->attr.send_cq->armed) != AW_ARM_NONE ||
	       atomic_load(&qp->attr.recv_cq->armed) != AW_ARM_NONE;
}

bool aw_hold_posted(struct aw_uqp *qp)
{
	uint64_t now = aw_now_ns();

	count_post(qp, now);
	if (!may_hold(qp, now))
		return false;
	qp->hold.posted_ns = now;
	if (!qp->hold.listed)
		list(qp, now);
	return !is_armed(qp);
}

void aw_hold_stamp(struct aw_uqp *qp)
{
	qp->hold.posted_ns = aw_now_ns();
}

void aw_hold_charge(struct aw_uqp *qp)
{
	struct aw_hold *h = &qp->hold;

	h->credits -= h->credits < AW_HOLD_PRICE ? h->credits : AW_HOLD_PRICE;
}

void aw_hold_end(struct aw_uqp *qp)
{
	qp->hold.bytes = 0;
	if (!qp->hold.listed)
		return;
	aw_lock(&lock);
	unlist(qp);
	aw_unlock(&lock);
}

void aw_hold_fork_prepare(void)
{
	aw_lock(&lock);
}

void aw_hold_fork_parent(void)
{
	aw_unlock(&lock);
}

void aw_hold_fork_child(void)
{
	while (!TAILQ_EMPTY(&holding))
		unlist(TAILQ_FIRST(&holding));
	looking = held = false;
	aw_unlock(&lock);
}
