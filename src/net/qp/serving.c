// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The list, and the places of the QPs that spinners serve, which they read without a lock: a QP that is gone is not
// found by its handle.
#include "net/qp/serving.h"

#include "base/clock.h"
#include "net/cq/channel_set.h"
#include "net/progress/engine.h"
#include "net/qp/carrier.h"
#include "net/qp/deferral.h"
#include "net/qp/uqp.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

aw_mutex aw_serving_list_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, aw_uqp) away AW_GUARDED_BY(aw_serving_list_lock) =
	TAILQ_HEAD_INITIALIZER(away); /* looked at longest ago first */
static uint32_t away_count AW_GUARDED_BY(aw_serving_list_lock);
static TAILQ_HEAD(, aw_activity) servers
	AW_GUARDED_BY(aw_serving_list_lock) = TAILQ_HEAD_INITIALIZER(servers); /* of these QPs */
static _Atomic bool look_again; /* a QP may have to be taken back, whatever its threads do */

static struct aw_activity spinners;
/* Watchers of all channels: a turn is a thread that comes to one. While it turns, a program's loop goes round. */
static struct aw_activity loops;
static _Atomic uint32_t spinner_qps[AW_SPIN_QPS_MAX]; /* handle + 1, or 0 */
static _Atomic uint32_t spinner_qps_count;
static _Atomic bool has_few_cpus;

static uint32_t polls_of(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	return aw_activity_turns(&a->pollers) + (a == b ? 0 : aw_activity_turns(&b->pollers));
}

/*
 * True when a CQ of the QP is armed. Of a target QP of XRC: when one that its domain feeds was armed since the last arrival; its
 * poller then has to begin anew, by as many polls as of a thread that does not sleep.
 */
static bool is_armed(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_uqp_is_armed(qp) || atomic_load(&qp->attr.recv_cq->arms) != qp->serving.arms_seen;
}

static void forget_polls(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	qp->serving.arms_seen = atomic_load(&qp->attr.recv_cq->arms);
	qp->serving.polls_seen = polls_of(qp);
	qp->serving.spins_seen = aw_activity_turns(&spinners);
}

/* Where the process has more CPUs than a set holds, the call fails. */
static void count_cpus(void)
{
	static _Atomic uint64_t counted_ns;
	uint64_t now_ns = aw_now_ns(),
		 last_ns = atomic_load_explicit(&counted_ns, memory_order_relaxed);
	cpu_set_t cpus;

	if (last_ns && now_ns - last_ns < AW_CPUS_NS)
		return;
	atomic_store_explicit(&counted_ns, now_ns, memory_order_relaxed);
	bool few = sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0 &&
		   CPU_COUNT(&cpus) <= AW_SPIN_CPUS_MAX;

	atomic_store_explicit(&has_few_cpus, few, memory_order_relaxed);
}

void aw_serving_begin(struct aw_uqp *qp)
{
	count_cpus();
	forget_polls(qp);
	qp->serving.unreachable = false;
	qp->serving.eventful = (struct aw_eventful){ 0 };
	aw_serve_go(&qp->serving.server, AW_SERVER_PROGRESS);
}

/*
 * The channel of the armed CQ. While no CQ is armed, because the thread that slept there is busy, the channel of both. NULL
 * when there is none, or more than one.
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

/* The flags of the fd cost a system call, so they are asked last. */
static void see_channel(struct aw_serve_seen *seen, struct aw_channel *ch, uint64_t now_ns)
{
	bool expected = false;

	if (aw_channel_has_set(ch)) {
		seen->asleep = aw_channel_has_waiter(ch);
		seen->woke_ns = atomic_load_explicit(&ch->woke_ns, memory_order_relaxed);
		expected = aw_serve_expects_waiter(seen, now_ns);
	}
	seen->took_ns = atomic_load_explicit(&ch->took_ns, memory_order_relaxed);
	if (!expected)
		expected = aw_serve_expects_watcher(seen, now_ns) && aw_channel_takes_sockets(ch);
	if (expected)
		seen->arrival_ns =
			atomic_exchange_explicit(&ch->arrival_ns, now_ns, memory_order_relaxed);
}

struct aw_serve_seen aw_serving_at_arrival(struct aw_uqp *qp, uint64_t now_ns,
					   struct aw_channel **channel)
{
	struct aw_serve_seen seen = { .server = qp->serving.server,
				      .unreachable = qp->serving.unreachable,
				      .armed = is_armed(qp) };

	*channel = NULL;
	if (seen.server != AW_SERVER_PROGRESS)
		return seen;
	seen.polls = polls_of(qp) - qp->serving.polls_seen;
	seen.spins = aw_activity_turns(&spinners) - qp->serving.spins_seen;
	for (int i = 0; i < AW_SPIN_QPS_MAX; i++)
		seen.spinner_free |= aw_serving_spinner_qp(i) == AW_TABLE_NONE;
	forget_polls(qp);
	if (aw_serving_may_watch(qp))
		seen.eventful = qp->serving.eventful;

	*channel = seen.unreachable ? NULL : channel_of(qp);
	if (*channel)
		see_channel(&seen, *channel, now_ns);
	return seen;
}

int aw_serving_set(const struct aw_channel *channel, enum aw_server server)
{
	return server == AW_SERVER_WATCHER ? channel->fd : channel->epfd;
}

uint32_t aw_serving_armed(const struct aw_uqp *qp)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;

	return (a->armed != AW_ARM_NONE) + (b != a && b->armed != AW_ARM_NONE);
}

bool aw_serving_may_watch(const struct aw_uqp *qp)
{
	return qp->in->is_socket == qp->out->is_socket && qp->core.state <= AW_QP_RTS &&
	       !qp->core.peer_closed;
}

void aw_serving_loop_turns(void)
{
	aw_activity_count(&loops.turns, 1);
}

/* True when a CQ of the QP is armed and the threads that serve the QP do not wait for its event. */
static bool is_misplaced(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_cq *a = qp->attr.send_cq, *b = qp->attr.recv_cq;
	const struct aw_channel *ch = qp->serving.channel;

	if (!ch)
		return is_armed(qp);
	return (a->armed != AW_ARM_NONE && a->channel != ch) ||
	       (b->armed != AW_ARM_NONE && b->channel != ch);
}

/* The threads that serve the QP. Returns how many there are. */
static int servers_of(const struct aw_uqp *qp, struct aw_activity *of[3])
	AW_REQUIRES(aw_serving_list_lock)
{
	int n = 0;

	of[n++] = &qp->attr.send_cq->pollers;
	of[n++] = &qp->attr.recv_cq->pollers;
	if (qp->serving.channel)
		of[n++] = &qp->serving.channel->waiting;
	else if (qp->serving.server == AW_SERVER_SPINNER)
		of[n++] = &spinners;
	return n;
}

/*
 * True when the activity of that one of n tells whether the QP needs a look. While threads come to the channel no QP of theirs does:
 * pollers, who leave the sockets to the next sleep, are not asked.
 */
static bool is_asked(const struct aw_uqp *qp, int i, int n)
{
	return !qp->serving.channel || i == n - 1;
}

struct aw_serve_seen aw_serving_in_tick(const struct aw_uqp *qp)
{
	struct aw_activity *of[3];
	struct aw_serve_seen seen = {
		.server = qp->serving.server,
		.unreachable = qp->serving.unreachable,
		.armed = is_misplaced(qp),
		.ack_waits = qp->deferral.ack.waits,
		.ack_late = aw_deferral_ack_is_late(qp),
		.asleep = qp->serving.channel && aw_channel_has_waiter(qp->serving.channel),
		.moves = qp->serving.channel ? qp->serving.channel->waiting.qps : 0,
		.idle_ticks = UINT32_MAX,
		.unserved_ticks = UINT32_MAX,
		.vain_turns = qp->serving.vain_turns,
		.eventful = qp->serving.eventful,
		.loops = loops.idle_ticks == 0,
	};

	for (int i = servers_of(qp, of); i-- > 0;) {
		if (of[i]->idle_ticks < seen.idle_ticks)
			seen.idle_ticks = of[i]->idle_ticks;
		if (of[i]->unserved_ticks < seen.unserved_ticks)
			seen.unserved_ticks = of[i]->unserved_ticks;
	}
	return seen;
}

struct aw_serve_seen aw_serving_at_arm(const struct aw_uqp *qp, const struct aw_cq *cq)
{
	return (struct aw_serve_seen){
		.server = qp->serving.server,
		.armed = !qp->serving.channel || qp->serving.channel != cq->channel,
		.ack_waits = qp->deferral.ack.waits,
	};
}

/* Only the progress thread takes places, so the one that it has seen free still is. */
static void take_place(uint32_t handle)
{
	int i = 0;

	while (i < AW_SPIN_QPS_MAX - 1 && aw_serving_spinner_qp(i) != AW_TABLE_NONE)
		i++;
	assert(aw_serving_spinner_qp(i) == AW_TABLE_NONE);
	spinner_qps[i] = handle + 1;
	atomic_fetch_add_explicit(&spinner_qps_count, 1, memory_order_relaxed);
}

/* A CQ counts only those QPs that arming it may take back: the ones that its own channel's threads do not serve. */
static void count(const struct aw_uqp *qp, uint32_t change) AW_REQUIRES(aw_serving_list_lock)
{
	struct aw_cq *cqs[2] = { qp->attr.send_cq, qp->attr.recv_cq };

	for (int i = 0; i < 2; i++)
		if (!qp->serving.channel || cqs[i]->channel != qp->serving.channel)
			atomic_fetch_add(&cqs[i]->qps_away, change);
}

void aw_serving_leave_to(struct aw_uqp *qp, enum aw_server server, struct aw_channel *channel)
{
	struct aw_activity *of[3];

	if (server == AW_SERVER_SPINNER)
		take_place(qp->handle);
	aw_lock(&aw_serving_list_lock);
	TAILQ_INSERT_TAIL(&away, qp, serving.entry);
	bool first = away_count++ == 0;

	aw_serve_go(&qp->serving.server, server);
	qp->serving.channel = channel;
	qp->serving.vain_turns = 0;
	int n = servers_of(qp, of);

	for (int i = 0; i < n; i++) {
		of[i]->looked_at += is_asked(qp, i, n);
		of[i]->watched += server == AW_SERVER_WATCHER && is_asked(qp, i, n);
		if (of[i]->qps++ == 0) {
			TAILQ_INSERT_TAIL(&servers, of[i], entry);
			aw_serve_begin_ticks(of[i]);
		}
	}
	if (channel)
		atomic_store_explicit(&channel->only_qp,
				      channel->waiting.qps == 1 ? qp->handle : AW_CHANNEL_MANY,
				      memory_order_relaxed);
	if (server == AW_SERVER_WATCHER)
		atomic_fetch_add_explicit(&channel->watched, 1, memory_order_release);
	count(qp, 1);
	/* A thread that armed a CQ before this point found nothing to take back (aw_cq_arm). */
	if (is_misplaced(qp))
		aw_serving_look_again();
	aw_unlock(&aw_serving_list_lock);
	if (first)
		aw_engine_kick_tick();
}

static void unlist(struct aw_uqp *qp, enum aw_server next) AW_REQUIRES(aw_serving_list_lock)
{
	struct aw_activity *of[3];

	TAILQ_REMOVE(&away, qp, serving.entry);
	away_count--;
	int n = servers_of(qp, of);

	for (int i = 0; i < n; i++) {
		of[i]->looked_at -= is_asked(qp, i, n);
		of[i]->watched -= qp->serving.server == AW_SERVER_WATCHER && is_asked(qp, i, n);
		if (--of[i]->qps == 0)
			TAILQ_REMOVE(&servers, of[i], entry);
	}
	if (qp->serving.channel)
		atomic_store_explicit(&qp->serving.channel->only_qp, AW_CHANNEL_MANY,
				      memory_order_relaxed);
	if (qp->serving.server == AW_SERVER_WATCHER)
		atomic_fetch_sub_explicit(&qp->serving.channel->watched, 1, memory_order_release);
	for (int i = 0; i < AW_SPIN_QPS_MAX; i++)
		if (aw_serving_spinner_qp(i) == qp->handle) {
			spinner_qps[i] = 0;
			atomic_fetch_sub_explicit(&spinner_qps_count, 1, memory_order_relaxed);
		}
	count(qp, -1u);
	aw_serve_go(&qp->serving.server, next);
	qp->serving.channel = NULL;
}

void aw_serving_take_back(struct aw_uqp *qp)
{
	unlist(qp, AW_SERVER_PROGRESS);
	forget_polls(qp);
}

void aw_serving_end(struct aw_uqp *qp)
{
	qp->serving.watched_by = NULL;
	if (aw_serving_is_away(&qp->serving)) {
		aw_lock(&aw_serving_list_lock);
		unlist(qp, AW_SERVER_NONE);
		aw_unlock(&aw_serving_list_lock);
	} else if (qp->serving.server != AW_SERVER_NONE) {
		aw_serve_go(&qp->serving.server, AW_SERVER_NONE);
	}
}

void aw_serving_lost_reach(struct aw_uqp *qp)
{
	qp->serving.unreachable = true;
	aw_serving_look_again();
}

void aw_serving_look_again(void)
{
	atomic_store_explicit(&look_again, true, memory_order_relaxed);
}

void aw_serving_lock(void)
{
	aw_lock(&aw_serving_list_lock);
}

void aw_serving_unlock(void)
{
	aw_unlock(&aw_serving_list_lock);
}

uint32_t aw_serving_count(void)
{
	return away_count;
}

/* No QP needs a look while all threads that serve QPs are busy and serve. */
bool aw_serving_count_ticks(void)
{
	struct aw_activity *activity;
	bool wanted = atomic_exchange_explicit(&look_again, false, memory_order_relaxed) ||
		      aw_deferral_any_ack();

	(void)aw_serve_count_tick(&loops);
	TAILQ_FOREACH(activity, &servers, entry)
	{
		wanted |= aw_serve_count_tick(activity) &&
			  aw_serve_needs_look(activity, loops.idle_ticks == 0) > 0;
	}
	return wanted;
}

struct aw_uqp *aw_serving_to_look_at(void)
{
	struct aw_uqp *qp = TAILQ_FIRST(&away);

	if (!qp)
		return NULL;
	TAILQ_REMOVE(&away, qp, serving.entry);
	TAILQ_INSERT_TAIL(&away, qp, serving.entry);
	return qp;
}

struct aw_uqp *aw_serving_first(void)
{
	return TAILQ_FIRST(&away);
}

bool aw_serving_spin(void)
{
	if (!atomic_load_explicit(&has_few_cpus, memory_order_relaxed))
		return false;
	aw_activity_count(&spinners.turns, 1);
	return atomic_load_explicit(&spinner_qps_count, memory_order_relaxed) > 0;
}

struct aw_activity *aw_serving_spinners(void)
{
	return &spinners;
}

uint32_t aw_serving_spinner_qp(int place)
{
	uint32_t taken = atomic_load_explicit(&spinner_qps[place], memory_order_relaxed);

	return taken ? taken - 1 : AW_TABLE_NONE;
}

void aw_serving_fork_prepare(void)
{
	aw_lock(&aw_serving_list_lock);
}

void aw_serving_fork_parent(void)
{
	aw_unlock(&aw_serving_list_lock);
}

void aw_serving_fork_child(void)
{
	struct aw_uqp *qp;

	while ((qp = TAILQ_FIRST(&away))) {
		unlist(qp, AW_SERVER_NONE);
		aw_deferral_end_ack(qp);
	}
	aw_unlock(&aw_serving_list_lock);
}
