// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The rules of serve.h.
#include "net/qp/serve.h"

#include <assert.h>

static const bool arrows[AW_SERVERS][AW_SERVERS] = {
	[AW_SERVER_NONE] = { [AW_SERVER_PROGRESS] = true },
	[AW_SERVER_PROGRESS] = { [AW_SERVER_NONE] = true,
				 [AW_SERVER_POLLER] = true,
				 [AW_SERVER_SPINNER] = true,
				 [AW_SERVER_WAITER] = true,
				 [AW_SERVER_WATCHER] = true },
	[AW_SERVER_POLLER] = { [AW_SERVER_NONE] = true, [AW_SERVER_PROGRESS] = true },
	[AW_SERVER_SPINNER] = { [AW_SERVER_NONE] = true, [AW_SERVER_PROGRESS] = true },
	[AW_SERVER_WAITER] = { [AW_SERVER_NONE] = true, [AW_SERVER_PROGRESS] = true },
	[AW_SERVER_WATCHER] = { [AW_SERVER_NONE] = true, [AW_SERVER_PROGRESS] = true },
};

bool aw_serve_has_arrow(enum aw_server from, enum aw_server to)
{
	return arrows[from][to];
}

void aw_serve_go(enum aw_server *server, enum aw_server next)
{
	assert(arrows[*server][next]);
	*server = next;
}

/* Here and below: what was seen may be later than now, because other threads note it after the caller has read the clock. */
static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns && now_ns < then_ns + AW_AWAKE_NS;
}

bool aw_serve_expects_waiter(const struct aw_serve_seen *seen, uint64_t now_ns)
{
	return seen->asleep || is_recent(seen->woke_ns, now_ns);
}

bool aw_serve_expects_watcher(const struct aw_serve_seen *seen, uint64_t now_ns)
{
	return is_recent(seen->took_ns, now_ns) && aw_eventful_is_enough(&seen->eventful);
}

bool aw_eventful_is_enough(const struct aw_eventful *e)
{
	return e->count >= AW_EVENTFUL_MIN << e->doubled;
}

void aw_eventful_count(struct aw_eventful *e, bool raised)
{
	if (!raised)
		e->count = 0;
	else if (e->count < AW_EVENTFUL_MAX)
		e->count++;
}

void aw_eventful_end(struct aw_eventful *e)
{
	e->count = 0;
	if (AW_EVENTFUL_MIN << e->doubled < AW_EVENTFUL_MAX)
		e->doubled++;
}

/*
 * A QP that goes to threads that poll is not served before: they find what has arrived. A thread that sleeps would be
 * woken for it at once.
 */
static struct aw_serve_plan plan_arrival(const struct aw_serve_seen *seen, uint64_t now_ns)
{
	struct aw_serve_plan plan = { .next = seen->server, .serve = true };

	if (seen->server != AW_SERVER_PROGRESS || seen->unreachable)
		return plan;
	if (!seen->armed && seen->polls >= AW_TURNS_MIN)
		return (struct aw_serve_plan){ .next = AW_SERVER_POLLER };
	if (!seen->armed && seen->spins >= AW_TURNS_MIN && seen->spinner_free)
		return (struct aw_serve_plan){ .next = AW_SERVER_SPINNER };
	if (now_ns >= seen->arrival_ns + AW_BRISK_NS)
		return plan;
	if (aw_serve_expects_waiter(seen, now_ns))
		plan.next = AW_SERVER_WAITER;
	else if (aw_serve_expects_watcher(seen, now_ns))
		plan.next = AW_SERVER_WATCHER;
	return plan;
}

/* The loop of a program that watches many channels comes to each of them when there are bytes. */
static bool is_silent(const struct aw_serve_seen *seen)
{
	uint32_t every = seen->server == AW_SERVER_WATCHER && seen->loops ? AW_SILENT_TICKS : 1;

	return seen->idle_ticks > 0 && seen->idle_ticks % every == 0;
}

/* Nobody knows whether a program that polls the fd sleeps. */
static uint32_t ticks_max(const struct aw_serve_seen *seen)
{
	uint32_t least = seen->asleep || seen->server == AW_SERVER_WATCHER ? AW_IDLE_TICKS
									   : AW_SILENT_TICKS;
	uint32_t more = seen->moves / AW_MOVES_A_TICK;

	return least + (more < AW_MORE_TICKS_MAX ? more : AW_MORE_TICKS_MAX);
}

/* They bring nothing any more: spinners move no bytes, watchers get bytes for no event. */
static bool is_vain(const struct aw_serve_seen *seen)
{
	return seen->vain_turns >= AW_SPIN_VAIN_MAX ||
	       (seen->server == AW_SERVER_WATCHER && seen->eventful.count == 0);
}

/*
 * A CQ that is never empty, because other QPs fill it, keeps its pollers from serving: the progress thread does so, but
 * not in each tick, since it takes the CPU from busy threads.
 */
static bool is_overdue(uint32_t unserved_ticks)
{
	return unserved_ticks > 0 && unserved_ticks % AW_SILENT_TICKS == 0;
}

static struct aw_serve_plan plan_tick(const struct aw_serve_seen *seen)
{
	struct aw_serve_plan plan = { .next = seen->server };

	if (!seen->stuck && (seen->idle_ticks >= ticks_max(seen) || seen->armed ||
			     seen->unreachable || is_vain(seen)))
		plan.next = AW_SERVER_PROGRESS;
	else
		plan.serve = !seen->asleep && (is_silent(seen) || is_overdue(seen->unserved_ticks));
	plan.serve |= seen->ack_late || (seen->ack_waits && plan.next != seen->server);
	plan.look_again = seen->stuck;
	return plan;
}

/* An acknowledgement that began to wait before the CQ was armed is sent by the tick that takes the QP back. */
static struct aw_serve_plan plan_arm(const struct aw_serve_seen *seen)
{
	bool leaves = seen->armed && !seen->ack_waits && !seen->stuck;

	return (struct aw_serve_plan){
		.next = leaves ? AW_SERVER_PROGRESS : seen->server,
		.look_again = seen->armed && !leaves,
	};
}

struct aw_serve_plan aw_serve_plan(enum aw_serve_cause cause, const struct aw_serve_seen *seen,
				   uint64_t now_ns)
{
	switch (cause) {
	case AW_SERVE_ARRIVAL:
		return plan_arrival(seen, now_ns);
	case AW_SERVE_TICK:
		return plan_tick(seen);
	case AW_SERVE_ARM:
		return plan_arm(seen);
	}
	return (struct aw_serve_plan){ .next = seen->server };
}

/*
 * A thread that still takes receives will serve the QPs when the CQ is empty. Taking send completions proves nothing,
 * because a thread that only posts gets them, too.
 */
static uint32_t activity_of(const struct aw_activity *activity)
{
	return aw_activity_turns(activity) +
	       atomic_load_explicit(&activity->takes, memory_order_relaxed);
}

void aw_serve_begin_ticks(struct aw_activity *a)
{
	a->active_seen = activity_of(a);
	a->turns_seen = aw_activity_turns(a);
	a->idle_ticks = a->unserved_ticks = 0;
}

bool aw_serve_count_tick(struct aw_activity *a)
{
	uint32_t active = activity_of(a), turns = aw_activity_turns(a);

	a->idle_ticks = active == a->active_seen ? a->idle_ticks + 1 : 0;
	a->unserved_ticks = turns == a->turns_seen ? a->unserved_ticks + 1 : 0;
	a->active_seen = active;
	a->turns_seen = turns;
	return a->idle_ticks > 0 || is_overdue(a->unserved_ticks);
}

/* The numbers that is_silent and is_overdue compare are the least of all activities of a QP, so none reaches its bound before this one. */
uint32_t aw_serve_needs_look(const struct aw_activity *a, bool loops)
{
	bool comes_in_time = loops && a->unserved_ticks < AW_SILENT_TICKS;

	return a->looked_at - (comes_in_time ? a->watched : 0);
}
