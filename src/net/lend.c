// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list of lent QPs and the progress thread's look at them once a millisecond.
#include "net/lend.h"

#include "net/engine.h"

/* Polls in vain between two events that say "somebody spins": a program that only looks now and
 * then, or that finds its completions at once, stays below it. */
#define POLLS_MIN 16
/* So many QPs that stay lent does a tick look at: thousands take it several ticks. */
#define LOOKS_MAX 1024

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

static void unlist(struct aw_uqp *qp)
{
	TAILQ_REMOVE(&lent, qp, lent_entry);
	lent_count--;
	qp->lent = false;
	atomic_fetch_sub_explicit(&qp->attr.send_cq->lent, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&qp->attr.recv_cq->lent, 1, memory_order_relaxed);
}

/* Where the kernel has no memory to listen again, it stays lent and the next tick tries. */
static void take_back(struct aw_uqp *qp)
{
	if (aw_uqp_listen_again(qp) == 0)
		unlist(qp);
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
	if (polls_now(qp) == qp->polls_seen || armed(qp) || qp->out_of_reach)
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

void aw_lend_begin(struct aw_uqp *qp)
{
	pthread_once(&registered, set_tick);
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&lent, qp, lent_entry);
	lent_count++;
	qp->lent = true;
	atomic_fetch_add_explicit(&qp->attr.send_cq->lent, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&qp->attr.recv_cq->lent, 1, memory_order_relaxed);
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
