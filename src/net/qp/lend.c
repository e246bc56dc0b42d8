// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list of lent QPs, which the progress thread looks at once a millisecond. Under the list's lock a QP's
// lock is only tried.
#include "net/qp/lend.h"

#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/channel_wait.h"
#include "net/qp/help.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"
#include "ring/table.h"

/*
 * If pollers make this many turns between two events of a QP, a thread spins. A program that polls
 * only now and then, or that finds its completions at once, stays below this number.
 */
#define TURNS_MIN 16
/* Most QPs that one tick looks at and leaves lent; thousands of lent QPs take several ticks. */
#define LOOKS_MAX 1024
#define LOOK_NS 1000000u /* between two ticks */

/*
 * Threads that did nothing for a tick may only have lost the CPU, for a time slice of some
 * milliseconds. So the progress thread first serves the QP itself and leaves it lent: taking many
 * QPs back and lending them again would cost more than a message each.
 */
#define SILENT_TICKS 4
/*
 * A QP is lent to a channel when bytes come as often as this, and taken back after so many ticks
 * without activity there, because a process that sleeps should have no tick.
 */
#define BRISK_NS 10000000u
#define IDLE_TICKS 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* the first one is looked at next */
static TAILQ_HEAD(, aw_uqp) lent = TAILQ_HEAD_INITIALIZER(lent);
static uint32_t lent_count;
/* threads that QPs are lent to */
static TAILQ_HEAD(, aw_hands) in_use = TAILQ_HEAD_INITIALIZER(in_use);
static uint32_t looks_due; /* QPs not yet looked at in the current pass over the list */
static _Atomic bool strays; /* a lent QP may have to be taken back, whatever its threads do */
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static uint32_t polls_now(const struct aw_uqp *qp)
{
	struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	uint32_t polls = atomic_load_explicit(&a->hands.turns, memory_order_relaxed);

	if (a != b)
		polls += atomic_load_explicit(&b->hands.turns, memory_order_relaxed);
	return polls;
}

static bool armed(const struct aw_uqp *qp)
{
	return qp->attr.send_cq->armed != AW_ARM_NONE || qp->attr.recv_cq->armed != AW_ARM_NONE;
}

bool aw_lend_wanted(struct aw_uqp *qp)
{
	uint32_t now = polls_now(qp), since = now - qp->polls_seen;

	qp->polls_seen = now;
	if (armed(qp) || qp->out_of_reach) {
		aw_help_forget(qp);
		return false;
	}
	return since >= TURNS_MIN || aw_help_take(qp);
}

static void forget_polls(struct aw_uqp *qp)
{
	qp->polls_seen = polls_now(qp);
	aw_help_forget(qp);
}

void aw_lend_attach(struct aw_uqp *qp)
{
	aw_help_attach();
	forget_polls(qp);
}

/*
 * The channel of the armed CQ. While no CQ is armed, because the thread that slept there is busy,
 * the channel of both. NULL when there is none, or more than one.
 */
static struct aw_channel *channel_of(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	if (a->channel == b->channel)
		return a->channel;
	if (a->armed == AW_ARM_NONE)
		return b->armed == AW_ARM_NONE ? NULL : b->channel;
	return b->armed == AW_ARM_NONE ? a->channel : NULL;
}

struct aw_channel *aw_lend_channel(struct aw_uqp *qp)
{
	struct aw_channel *ch = qp->lent || qp->out_of_reach ? NULL : channel_of(qp);

	if (!ch || !aw_channel_is_attended(ch))
		return NULL;
	uint64_t now = aw_now_ns();
	uint64_t before = atomic_exchange_explicit(&ch->arrival_ns, now, memory_order_relaxed);

	return now - before < BRISK_NS ? ch : NULL;
}

/* A CQ counts only those lent QPs that arming it may take back: the ones its own channel does not serve. */
static void count(struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *cqs[2] = { qp->attr.send_cq, qp->attr.recv_cq };

	for (int i = 0; i < 2; i++)
		if (!qp->lent_to || cqs[i]->channel != qp->lent_to)
			atomic_fetch_add(&cqs[i]->lent, change);
}

static uint32_t turns(const struct aw_hands *hands)
{
	return atomic_load_explicit(&hands->turns, memory_order_relaxed);
}

/*
 * A thread that still takes receives will serve the QPs when the CQ is empty. Taking send
 * completions proves nothing, because a thread that only posts gets them, too.
 */
static uint32_t activity(const struct aw_hands *hands)
{
	return turns(hands) + atomic_load_explicit(&hands->takes, memory_order_relaxed);
}

static void put_into(struct aw_hands *hands)
{
	if (hands->lent++ > 0)
		return;
	TAILQ_INSERT_TAIL(&in_use, hands, entry);
	hands->seen = activity(hands);
	hands->turns_seen = turns(hands);
	hands->ticks_idle = hands->ticks_unserved = 0;
}

static void take_from(struct aw_hands *hands)
{
	if (--hands->lent == 0)
		TAILQ_REMOVE(&in_use, hands, entry);
}

static void each_hands(struct aw_uqp *qp, void (*fn)(struct aw_hands *))
{
	fn(&qp->attr.send_cq->hands);
	fn(&qp->attr.recv_cq->hands);
	if (qp->lent_to)
		fn(&qp->lent_to->hands);
	if (qp->guest)
		fn(aw_help_hands());
}

static void unlist(struct aw_uqp *qp)
{
	TAILQ_REMOVE(&lent, qp, lent_entry);
	lent_count--;
	each_hands(qp, take_from);
	if (qp->lent_to)
		atomic_store_explicit(&qp->lent_to->lent_only, AW_CHANNEL_MANY,
				      memory_order_relaxed);
	count(qp, -1u);
	qp->lent = false;
	qp->lent_to = NULL;
	aw_help_leave(qp);
}

/*
 * Only polls from here on lend the QP again. When the kernel has no memory for the epoll set, the QP stays lent and the
 * next tick tries again.
 */
static void take_back(struct aw_uqp *qp)
{
	if (aw_uqp_listen_again(qp) != 0) {
		aw_lend_look_again();
		return;
	}
	unlist(qp);
	forget_polls(qp);
}

/* True when a CQ of the QP is armed and the threads that serve the QP do not wait for its event. */
static bool is_misplaced(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	if (!qp->lent_to)
		return armed(qp);
	return (a->armed != AW_ARM_NONE && a->channel != qp->lent_to) ||
	       (b->armed != AW_ARM_NONE && b->channel != qp->lent_to);
}

typedef uint32_t ticks_fn(const struct aw_hands *hands);

static uint32_t idle_of(const struct aw_hands *hands)
{
	return hands->ticks_idle;
}

static uint32_t unserved_of(const struct aw_hands *hands)
{
	return hands->ticks_unserved;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Ticks since any of the threads that the QP is lent to did anything, or served. */
static uint32_t least_ticks(const struct aw_uqp *qp, ticks_fn *of)
{
	uint32_t least = lesser(of(&qp->attr.send_cq->hands), of(&qp->attr.recv_cq->hands));

	if (qp->lent_to)
		least = lesser(of(&qp->lent_to->hands), least);
	if (qp->guest)
		least = lesser(of(aw_help_hands()), least);
	return least;
}

/*
 * A CQ that is never empty, because other QPs fill it, keeps its pollers from serving: the progress
 * thread does so, but not each millisecond, since it takes the CPU from busy threads.
 */
static bool is_overdue(uint32_t ticks_unserved)
{
	return ticks_unserved > 0 && ticks_unserved % SILENT_TICKS == 0;
}

/*
 * Looks at the first QP, which goes to the end. True when it stays lent. A QP whose lock is taken
 * does, and the next tick looks again. *due: the handle of a QP that no thread has served, or AW_TABLE_NONE.
 */
static bool look(uint32_t *due)
{
	struct aw_uqp *qp = TAILQ_FIRST(&lent);
	uint32_t idle = least_ticks(qp, idle_of), unserved = least_ticks(qp, unserved_of);
	bool asleep = qp->lent_to && aw_channel_has_waiter(qp->lent_to);
	bool attended = idle < (asleep ? IDLE_TICKS : SILENT_TICKS), stays;

	*due = AW_TABLE_NONE;
	TAILQ_REMOVE(&lent, qp, lent_entry);
	TAILQ_INSERT_TAIL(&lent, qp, lent_entry);
	if (aw_trylock(&qp->lock) != 0) {
		aw_lend_look_again();
		return true;
	}
	if (!attended || is_misplaced(qp) || qp->out_of_reach || aw_help_is_vain(qp))
		take_back(qp);
	stays = qp->lent;
	if ((stays && !asleep && (idle > 0 || is_overdue(unserved))) || aw_deferral_ack_is_late(qp))
		*due = qp->handle;
	aw_unlock(&qp->lock);
	return stays;
}

/* Releases the lock meanwhile: a QP that is served may end and leave the list. */
static void serve(uint32_t due)
{
	aw_unlock(&lock);
	aw_uqp_on_wake(due);
	aw_lock(&lock);
}

/* Looks at as many QPs as a tick may; the next tick goes on with the others. */
static void look_around(void)
{
	uint32_t due, stay = 0;

	for (; looks_due > 0 && lent_count > 0 && stay < LOOKS_MAX; looks_due--) {
		stay += look(&due);
		if (due != AW_TABLE_NONE)
			serve(due);
	}
}

/* Counts a tick. True when these threads do nothing, or have served no QP for some ticks. */
static bool count_tick(struct aw_hands *hands)
{
	uint32_t now = activity(hands), now_turns = turns(hands);

	hands->ticks_idle = now == hands->seen ? hands->ticks_idle + 1 : 0;
	hands->seen = now;
	hands->ticks_unserved = now_turns == hands->turns_seen ? hands->ticks_unserved + 1 : 0;
	hands->turns_seen = now_turns;
	return hands->ticks_idle > 0 || is_overdue(hands->ticks_unserved);
}

/*
 * No QP needs a look while all threads that QPs are lent to are busy and serve. Returns the next
 * time, or 0 when nothing is lent.
 */
static uint64_t tick(uint64_t now_ns)
{
	struct aw_hands *hands;
	bool wanted = atomic_exchange_explicit(&strays, false, memory_order_relaxed) ||
		      aw_deferral_any_ack();

	(void)now_ns;
	aw_lock(&lock);
	TAILQ_FOREACH(hands, &in_use, entry)
	{
		wanted |= count_tick(hands);
	}
	if (wanted)
		looks_due = lent_count;
	look_around();
	bool more = lent_count > 0;

	aw_unlock(&lock);
	return more ? aw_now_ns() + LOOK_NS : 0;
}

void aw_lend_recall(const struct aw_cq *cq)
{
	struct aw_uqp *qp, *next;

	aw_lock(&lock);
	for (qp = TAILQ_FIRST(&lent); qp; qp = next) {
		next = TAILQ_NEXT(qp, lent_entry);
		if (qp->attr.send_cq != cq && qp->attr.recv_cq != cq)
			continue;
		if (qp->lent_to && qp->lent_to == cq->channel)
			continue;
		/* A tick looks at a QP that is busy now, and finds the CQ armed. */
		if (aw_trylock(&qp->lock) != 0) {
			aw_lend_look_again();
			continue;
		}
		/*
		 * An acknowledgement that began to wait before the CQ was armed is sent by the tick
		 * as well.
		 */
		if (qp->deferral.ack.waits)
			aw_lend_look_again();
		else
			take_back(qp);
		aw_unlock(&qp->lock);
	}
	aw_unlock(&lock);
}

static void set_tick(void)
{
	aw_engine_set_tick(AW_TICK_LEND, tick);
}

void aw_lend_begin(struct aw_uqp *qp, struct aw_channel *to)
{
	pthread_once(&registered, set_tick);
	aw_lock(&lock);
	TAILQ_INSERT_TAIL(&lent, qp, lent_entry);
	bool first = lent_count++ == 0;

	qp->lent = true;
	qp->lent_to = to;
	each_hands(qp, put_into);
	if (to)
		atomic_store_explicit(&to->lent_only,
				      to->hands.lent == 1 ? qp->handle : AW_CHANNEL_MANY,
				      memory_order_relaxed);
	count(qp, 1);
	/* A thread that armed a CQ before this point found nothing to take back (aw_cq_arm). */
	if (is_misplaced(qp))
		aw_lend_look_again();
	aw_unlock(&lock);
	if (first)
		aw_engine_kick_tick();
}

void aw_lend_stray(struct aw_uqp *qp)
{
	qp->out_of_reach = true;
	aw_lend_look_again();
}

void aw_lend_look_again(void)
{
	atomic_store_explicit(&strays, true, memory_order_relaxed);
}

void aw_lend_end(struct aw_uqp *qp)
{
	aw_lock(&lock);
	unlist(qp);
	aw_unlock(&lock);
}

void aw_lend_fork_prepare(void)
{
	aw_lock(&lock);
}

void aw_lend_fork_parent(void)
{
	aw_unlock(&lock);
}

/* The lent QPs' connections are the parent's. */
void aw_lend_fork_child(void)
{
	struct aw_uqp *qp;

	while ((qp = TAILQ_FIRST(&lent))) {
		unlist(qp);
		aw_deferral_end_ack(qp);
	}
	aw_unlock(&lock);
}
