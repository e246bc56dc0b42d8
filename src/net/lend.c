// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list of lent QPs and the progress thread's look at them once a millisecond.
#include "net/lend.h"

#include "net/channel_wait.h"
#include "net/engine.h"

/* Polls in vain between two events that say "somebody spins": a program that only looks now and
 * then, or that finds its completions at once, stays below it. */
#define POLLS_MIN 16
/* So many QPs that stay lent does a tick look at: thousands take it several ticks. */
#define LOOKS_MAX 1024

/*
 * A QP is lent to a channel when octets come as often as this, and taken back when so many ticks
 * passed with nothing happening there: a process that sleeps has no tick.
 */
#define BRISK_NS 10000000u
#define IDLE_LOOKS 10

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_uqp) lent = TAILQ_HEAD_INITIALIZER(lent); /* next to look at first */
static uint32_t lent_count;
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static uint32_t polls_now(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	uint32_t polls = atomic_load_explicit(&a->empty_polls, memory_order_relaxed);

	if (a != b)
		polls += atomic_load_explicit(&b->empty_polls, memory_order_relaxed);
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
	return since >= POLLS_MIN && !armed(qp) && !qp->out_of_reach;
}

/* The channel of the CQs that are armed; NULL when there is none, or more than one. */
static struct aw_channel *armed_channel(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	if (a->armed == AW_ARM_NONE)
		return b->armed == AW_ARM_NONE ? NULL : b->channel;
	return b->armed == AW_ARM_NONE || b->channel == a->channel ? a->channel : NULL;
}

struct aw_channel *aw_lend_channel(struct aw_uqp *qp)
{
	struct aw_channel *ch = qp->lent || qp->out_of_reach ? NULL : armed_channel(qp);

	if (!ch || !aw_channel_has_waiter(ch))
		return NULL;
	uint64_t now = aw_now_ns();
	uint64_t before = atomic_exchange_explicit(&ch->arrival_ns, now, memory_order_relaxed);

	return now - before < BRISK_NS ? ch : NULL;
}

/* A CQ whose channel qp is lent to has no reason to recall it. */
static void count(struct aw_uqp *qp, uint32_t change)
{
	struct aw_cq *cqs[2] = { qp->attr.send_cq, qp->attr.recv_cq };

	for (int i = 0; i < 2; i++)
		if (!qp->lent_to || cqs[i]->channel != qp->lent_to)
			atomic_fetch_add_explicit(&cqs[i]->lent, change, memory_order_relaxed);
}

static void unlist(struct aw_uqp *qp)
{
	TAILQ_REMOVE(&lent, qp, lent_entry);
	lent_count--;
	count(qp, -1u);
	qp->lent = false;
	qp->lent_to = NULL;
}

/* Where the kernel has no memory to listen again, it stays lent and the next tick tries. */
static void take_back(struct aw_uqp *qp)
{
	if (aw_uqp_listen_again(qp) == 0)
		unlist(qp);
}

/* Has a CQ been armed of which nobody hears who serves the QP? */
static bool is_misplaced(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	if (!qp->lent_to)
		return armed(qp);
	return (a->armed != AW_ARM_NONE && a->channel != qp->lent_to) ||
	       (b->armed != AW_ARM_NONE && b->channel != qp->lent_to);
}

/* Has its channel a waiter, not just for good, or had one since the last look? */
static bool is_attended(struct aw_uqp *qp)
{
	uint32_t seen = qp->wakes_seen;

	if (!qp->lent_to)
		return false;
	qp->wakes_seen = atomic_load_explicit(&qp->lent_to->wakes, memory_order_relaxed);
	if (qp->wakes_seen != seen)
		qp->looks_idle = 0;
	else if (!aw_channel_has_waiter(qp->lent_to) || ++qp->looks_idle >= IDLE_LOOKS)
		return false;
	return true;
}

/* Looks at the first QP, which goes to the end. True when it stays lent: one that is busy does. */
static bool look(void)
{
	struct aw_uqp *qp = TAILQ_FIRST(&lent);
	bool stays;

	TAILQ_REMOVE(&lent, qp, lent_entry);
	TAILQ_INSERT_TAIL(&lent, qp, lent_entry);
	if (pthread_mutex_trylock(&qp->lock) != 0)
		return true;
	bool attended = is_attended(qp) || polls_now(qp) != qp->polls_seen;

	if (!attended || is_misplaced(qp) || qp->out_of_reach)
		take_back(qp);
	qp->polls_seen = polls_now(qp);
	stays = qp->lent;
	pthread_mutex_unlock(&qp->lock);
	return stays;
}

/* True while something is lent. */
static bool tick(void)
{
	uint32_t left, stay = 0;

	pthread_mutex_lock(&lock);
	for (left = lent_count; left > 0 && stay < LOOKS_MAX; left--)
		stay += look();
	bool more = lent_count > 0;

	pthread_mutex_unlock(&lock);
	return more;
}

void aw_lend_recall(const struct aw_cq *cq)
{
	struct aw_uqp *qp, *next;

	pthread_mutex_lock(&lock);
	for (qp = TAILQ_FIRST(&lent); qp; qp = next) {
		next = TAILQ_NEXT(qp, lent_entry);
		if (qp->attr.send_cq != cq && qp->attr.recv_cq != cq)
			continue;
		if (qp->lent_to && qp->lent_to == cq->channel)
			continue;
		/* A tick finds who is busy now: the CQ is armed. */
		if (pthread_mutex_trylock(&qp->lock) != 0)
			continue;
		take_back(qp);
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&lock);
}

static void set_tick(void)
{
	aw_engine_set_tick(tick);
}

void aw_lend_begin(struct aw_uqp *qp, struct aw_channel *to)
{
	pthread_once(&registered, set_tick);
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&lent, qp, lent_entry);
	lent_count++;
	qp->lent = true;
	qp->lent_to = to;
	qp->polls_seen = polls_now(qp);
	qp->looks_idle = 0;
	if (to)
		qp->wakes_seen = atomic_load_explicit(&to->wakes, memory_order_relaxed);
	count(qp, 1);
	pthread_mutex_unlock(&lock);
	aw_engine_kick_tick();
}

void aw_lend_end(struct aw_uqp *qp)
{
	pthread_mutex_lock(&lock);
	unlist(qp);
	pthread_mutex_unlock(&lock);
}

void aw_lend_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void aw_lend_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Their connections are the parent's: nobody here is to listen to them again. */
void aw_lend_fork_child(void)
{
	while (!TAILQ_EMPTY(&lent))
		unlist(TAILQ_FIRST(&lent));
	pthread_mutex_unlock(&lock);
}
