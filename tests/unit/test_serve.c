// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who serves a QP: each rule as a row, all pairs of states as arrows, and runs of ticks and arrivals on a virtual clock.
#include "net/qp/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW UINT64_C(1000000000)

#define NONE AW_SERVER_NONE
#define PROGRESS AW_SERVER_PROGRESS
#define POLLER AW_SERVER_POLLER
#define SPINNER AW_SERVER_SPINNER
#define WAITER AW_SERVER_WAITER
#define WATCHER AW_SERVER_WATCHER
#define EVENTFUL                         \
	{                                \
		.count = AW_EVENTFUL_MIN \
	}

struct row {
	const char *name;
	struct aw_serve_seen seen;
	struct aw_serve_plan plan;
};

static void expect_rows(enum aw_serve_cause cause, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct aw_serve_plan plan = aw_serve_plan(cause, &rows[i].seen, NOW);

		if (plan.next != rows[i].plan.next || plan.serve != rows[i].plan.serve ||
		    plan.look_again != rows[i].plan.look_again)
			fail_msg("%s: next %d, serve %d, look again %d", rows[i].name, plan.next,
				 plan.serve, plan.look_again);
		if (plan.next != rows[i].seen.server)
			assert_true(aw_serve_has_arrow(rows[i].seen.server, plan.next));
	}
}

#define EXPECT_ROWS(cause, rows) expect_rows(cause, rows, sizeof(rows) / sizeof((rows)[0]))

static const struct row arrival_rows[] = {
	{ "nobody polls", { .server = PROGRESS }, { PROGRESS, true, false } },
	{ "a program polls now and then",
	  { .server = PROGRESS, .polls = AW_TURNS_MIN - 1 },
	  { PROGRESS, true, false } },
	{ "polls without end",
	  { .server = PROGRESS, .polls = AW_TURNS_MIN },
	  { POLLER, false, false } },
	{ "polls, but an event is awaited",
	  { .server = PROGRESS, .polls = AW_TURNS_MIN, .armed = true },
	  { PROGRESS, true, false } },
	{ "polls that do not see the socket",
	  { .server = PROGRESS, .polls = AW_TURNS_MIN, .unreachable = true },
	  { PROGRESS, true, false } },
	{ "spins at another CQ",
	  { .server = PROGRESS, .spins = AW_TURNS_MIN, .spinner_free = true },
	  { SPINNER, false, false } },
	{ "spins too little",
	  { .server = PROGRESS, .spins = AW_TURNS_MIN - 1, .spinner_free = true },
	  { PROGRESS, true, false } },
	{ "spins, with no place left",
	  { .server = PROGRESS, .spins = AW_TURNS_MIN },
	  { PROGRESS, true, false } },
	{ "spins, but an event is awaited",
	  { .server = PROGRESS, .spins = AW_TURNS_MIN, .spinner_free = true, .armed = true },
	  { PROGRESS, true, false } },
	{ "the QP's own pollers come first",
	  { .server = PROGRESS,
	    .polls = AW_TURNS_MIN,
	    .spins = AW_TURNS_MIN,
	    .spinner_free = true },
	  { POLLER, false, false } },
	{ "a thread sleeps, arrivals are brisk",
	  { .server = PROGRESS,
	    .armed = true,
	    .asleep = true,
	    .arrival_ns = NOW - AW_BRISK_NS + 1 },
	  { WAITER, true, false } },
	{ "a thread sleeps, arrivals are rare",
	  { .server = PROGRESS, .asleep = true, .arrival_ns = NOW - AW_BRISK_NS },
	  { PROGRESS, true, false } },
	{ "a thread woke a moment ago",
	  { .server = PROGRESS, .woke_ns = NOW - AW_AWAKE_NS + 1, .arrival_ns = NOW - 1 },
	  { WAITER, true, false } },
	{ "a thread woke, and another took an arrival, after the clock was read",
	  { .server = PROGRESS, .woke_ns = NOW + 1, .arrival_ns = NOW + 1 },
	  { WAITER, true, false } },
	{ "a thread woke long ago",
	  { .server = PROGRESS, .woke_ns = NOW - AW_AWAKE_NS, .arrival_ns = NOW - 1 },
	  { PROGRESS, true, false } },
	{ "no thread ever slept",
	  { .server = PROGRESS, .arrival_ns = NOW - 1 },
	  { PROGRESS, true, false } },
	{ "a sleeper that does not see the socket",
	  { .server = PROGRESS, .asleep = true, .arrival_ns = NOW - 1, .unreachable = true },
	  { PROGRESS, true, false } },
	{ "a thread polls the fd, and each arrival raises an event",
	  { .server = PROGRESS,
	    .armed = true,
	    .took_ns = NOW - AW_AWAKE_NS + 1,
	    .arrival_ns = NOW - AW_BRISK_NS + 1,
	    .eventful = EVENTFUL },
	  { WATCHER, true, false } },
	{ "not each has raised one",
	  { .server = PROGRESS,
	    .took_ns = NOW - 1,
	    .arrival_ns = NOW - 1,
	    .eventful = { .count = AW_EVENTFUL_MIN - 1 } },
	  { PROGRESS, true, false } },
	{ "one that did not costs twice as many",
	  { .server = PROGRESS,
	    .took_ns = NOW - 1,
	    .arrival_ns = NOW - 1,
	    .eventful = { .count = 2 * AW_EVENTFUL_MIN - 1, .doubled = 1 } },
	  { PROGRESS, true, false } },
	{ "a thread polls the fd, arrivals are rare",
	  { .server = PROGRESS,
	    .took_ns = NOW - 1,
	    .arrival_ns = NOW - AW_BRISK_NS,
	    .eventful = EVENTFUL },
	  { PROGRESS, true, false } },
	{ "a thread took an event long ago",
	  { .server = PROGRESS,
	    .took_ns = NOW - AW_AWAKE_NS,
	    .arrival_ns = NOW - 1,
	    .eventful = EVENTFUL },
	  { PROGRESS, true, false } },
	{ "no thread ever took one",
	  { .server = PROGRESS, .arrival_ns = NOW - 1, .eventful = EVENTFUL },
	  { PROGRESS, true, false } },
	{ "a sleeper comes first",
	  { .server = PROGRESS,
	    .asleep = true,
	    .took_ns = NOW - 1,
	    .arrival_ns = NOW - 1,
	    .eventful = EVENTFUL },
	  { WAITER, true, false } },
	{ "the end of a stream that pollers serve",
	  { .server = POLLER, .polls = AW_TURNS_MIN },
	  { POLLER, true, false } },
	{ "a socket that was put back late",
	  { .server = WAITER, .asleep = true, .arrival_ns = NOW - 1 },
	  { WAITER, true, false } },
};

static void plan__arrival(void **state)
{
	(void)state;
	EXPECT_ROWS(AW_SERVE_ARRIVAL, arrival_rows);
}

static const struct row tick_rows[] = {
	{ "they poll", { .server = POLLER }, { POLLER, false, false } },
	{ "they pause", { .server = POLLER, .idle_ticks = 1 }, { POLLER, true, false } },
	{ "they pause for long",
	  { .server = POLLER, .idle_ticks = AW_SILENT_TICKS - 1 },
	  { POLLER, true, false } },
	{ "they have stopped",
	  { .server = POLLER, .idle_ticks = AW_SILENT_TICKS },
	  { PROGRESS, false, false } },
	{ "they never find the CQ empty",
	  { .server = POLLER, .unserved_ticks = AW_SILENT_TICKS },
	  { POLLER, true, false } },
	{ "in between they are left alone",
	  { .server = POLLER, .unserved_ticks = AW_SILENT_TICKS + 1 },
	  { POLLER, false, false } },
	{ "and again",
	  { .server = POLLER, .unserved_ticks = 2 * AW_SILENT_TICKS },
	  { POLLER, true, false } },
	{ "a CQ is armed", { .server = POLLER, .armed = true }, { PROGRESS, false, false } },
	{ "an epoll set took no more",
	  { .server = POLLER, .unreachable = true },
	  { PROGRESS, false, false } },
	{ "nor does the progress thread's",
	  { .server = POLLER, .idle_ticks = AW_SILENT_TICKS, .stuck = true },
	  { POLLER, true, true } },
	{ "nor does it, where they poll",
	  { .server = POLLER, .armed = true, .stuck = true },
	  { POLLER, false, true } },
	{ "spinners move something",
	  { .server = SPINNER, .vain_turns = AW_SPIN_VAIN_MAX - 1 },
	  { SPINNER, false, false } },
	{ "spinners move nothing",
	  { .server = SPINNER, .vain_turns = AW_SPIN_VAIN_MAX },
	  { PROGRESS, false, false } },
	{ "spinners have stopped",
	  { .server = SPINNER, .idle_ticks = AW_SILENT_TICKS },
	  { PROGRESS, false, false } },
	{ "a thread sleeps",
	  { .server = WAITER, .asleep = true, .idle_ticks = AW_IDLE_TICKS - 1 },
	  { WAITER, false, false } },
	{ "nothing comes for it",
	  { .server = WAITER, .asleep = true, .idle_ticks = AW_IDLE_TICKS },
	  { PROGRESS, false, false } },
	{ "it woke and is busy",
	  { .server = WAITER, .idle_ticks = AW_SILENT_TICKS - 1 },
	  { WAITER, true, false } },
	{ "it does not come back",
	  { .server = WAITER, .idle_ticks = AW_SILENT_TICKS },
	  { PROGRESS, false, false } },
	{ "many QPs would move, which takes as long as many looks",
	  { .server = WAITER, .idle_ticks = AW_SILENT_TICKS, .moves = AW_MOVES_A_TICK },
	  { WAITER, true, false } },
	{ "it does not come back to these either",
	  { .server = WAITER, .idle_ticks = AW_SILENT_TICKS + 1, .moves = AW_MOVES_A_TICK },
	  { PROGRESS, false, false } },
	{ "thousands of QPs would move, and some looks are left",
	  { .server = WATCHER,
	    .eventful = EVENTFUL,
	    .idle_ticks = AW_IDLE_TICKS + AW_MORE_TICKS_MAX - 1,
	    .moves = UINT32_MAX },
	  { WATCHER, true, false } },
	{ "no more looks than for hundreds",
	  { .server = WATCHER,
	    .eventful = EVENTFUL,
	    .idle_ticks = AW_IDLE_TICKS + AW_MORE_TICKS_MAX,
	    .moves = UINT32_MAX },
	  { PROGRESS, false, false } },
	{ "another channel's CQ is armed",
	  { .server = WAITER, .asleep = true, .armed = true },
	  { PROGRESS, false, false } },
	{ "watchers come",
	  { .server = WATCHER, .eventful = EVENTFUL, .loops = true },
	  { WATCHER, false, false } },
	{ "their loop goes round at other channels",
	  { .server = WATCHER,
	    .eventful = EVENTFUL,
	    .loops = true,
	    .idle_ticks = AW_SILENT_TICKS - 1 },
	  { WATCHER, false, false } },
	{ "it has not come here for long",
	  { .server = WATCHER, .eventful = EVENTFUL, .loops = true, .idle_ticks = AW_SILENT_TICKS },
	  { WATCHER, true, false } },
	{ "in between it is left alone",
	  { .server = WATCHER,
	    .eventful = EVENTFUL,
	    .loops = true,
	    .idle_ticks = AW_SILENT_TICKS + 1 },
	  { WATCHER, false, false } },
	{ "it serves none",
	  { .server = WATCHER,
	    .eventful = EVENTFUL,
	    .loops = true,
	    .unserved_ticks = AW_SILENT_TICKS },
	  { WATCHER, true, false } },
	{ "no watcher comes anywhere",
	  { .server = WATCHER, .eventful = EVENTFUL, .idle_ticks = 1 },
	  { WATCHER, true, false } },
	{ "nor for long",
	  { .server = WATCHER, .eventful = EVENTFUL, .idle_ticks = AW_IDLE_TICKS - 1 },
	  { WATCHER, true, false } },
	{ "watchers have stopped",
	  { .server = WATCHER, .eventful = EVENTFUL, .idle_ticks = AW_IDLE_TICKS },
	  { PROGRESS, false, false } },
	{ "they came here for no event",
	  { .server = WATCHER, .loops = true },
	  { PROGRESS, false, false } },
	{ "another channel's CQ is armed, too",
	  { .server = WATCHER, .eventful = EVENTFUL, .loops = true, .armed = true },
	  { PROGRESS, false, false } },
	{ "an acknowledgement waits",
	  { .server = POLLER, .ack_waits = true },
	  { POLLER, false, false } },
	{ "it waits for too long",
	  { .server = POLLER, .ack_waits = true, .ack_late = true },
	  { POLLER, true, false } },
	{ "its pollers have stopped",
	  { .server = POLLER, .ack_waits = true, .idle_ticks = AW_SILENT_TICKS },
	  { PROGRESS, true, false } },
};

static void plan__tick(void **state)
{
	(void)state;
	EXPECT_ROWS(AW_SERVE_TICK, tick_rows);
}

static const struct row arm_rows[] = {
	{ "a sleeper must not find its QPs with pollers",
	  { .server = POLLER, .armed = true },
	  { PROGRESS, false, false } },
	{ "nor with spinners", { .server = SPINNER, .armed = true }, { PROGRESS, false, false } },
	{ "the waiters of its channel keep it", { .server = WAITER }, { WAITER, false, false } },
	{ "so do its watchers", { .server = WATCHER }, { WATCHER, false, false } },
	{ "those of another channel do not",
	  { .server = WAITER, .armed = true },
	  { PROGRESS, false, false } },
	{ "the tick that takes it back sends what waits",
	  { .server = POLLER, .armed = true, .ack_waits = true },
	  { POLLER, false, true } },
	{ "the kernel has no memory",
	  { .server = POLLER, .armed = true, .stuck = true },
	  { POLLER, false, true } },
};

static void plan__arm(void **state)
{
	(void)state;
	EXPECT_ROWS(AW_SERVE_ARM, arm_rows);
}

static void go__has_these_arrows_and_no_others(void **state)
{
	static const bool expected[AW_SERVERS][AW_SERVERS] = {
		/*             NONE PROGRESS POLLER SPINNER WAITER WATCHER */
		[NONE] = { 0, 1, 0, 0, 0, 0 },	 [PROGRESS] = { 1, 0, 1, 1, 1, 1 },
		[POLLER] = { 1, 1, 0, 0, 0, 0 }, [SPINNER] = { 1, 1, 0, 0, 0, 0 },
		[WAITER] = { 1, 1, 0, 0, 0, 0 }, [WATCHER] = { 1, 1, 0, 0, 0, 0 },
	};

	(void)state;
	for (enum aw_server from = NONE; from < AW_SERVERS; from++)
		for (enum aw_server to = NONE; to < AW_SERVERS; to++) {
			enum aw_server server = from;

			if (aw_serve_has_arrow(from, to) != expected[from][to])
				fail_msg("%d to %d", from, to);
			if (!expected[from][to])
				continue;
			aw_serve_go(&server, to);
			assert_int_equal(server, to);
		}
}

/* A QP, the threads that serve it, and a clock. */
struct scene {
	enum aw_server server;
	struct aw_activity threads;
	uint64_t now_ns, arrival_ns, woke_ns;
	bool asleep;
	uint32_t polls_seen;
	uint32_t served; /* by the progress thread */
};

static void follow(struct scene *s, const struct aw_serve_plan *plan)
{
	s->served += plan->serve;
	if (plan->next == s->server)
		return;
	aw_serve_go(&s->server, plan->next);
	if (plan->next != AW_SERVER_PROGRESS)
		aw_serve_begin_ticks(&s->threads);
	s->polls_seen = s->threads.turns;
}

static void arrive(struct scene *s)
{
	struct aw_serve_seen seen = {
		.server = s->server,
		.polls = s->threads.turns - s->polls_seen,
		.asleep = s->asleep,
		.woke_ns = s->woke_ns,
		.arrival_ns = s->arrival_ns,
	};
	struct aw_serve_plan plan = aw_serve_plan(AW_SERVE_ARRIVAL, &seen, s->now_ns);

	s->polls_seen = s->threads.turns;
	s->arrival_ns = s->now_ns;
	follow(s, &plan);
}

static void tick(struct scene *s)
{
	s->now_ns += AW_TICK_NS;
	(void)aw_serve_count_tick(&s->threads);
	struct aw_serve_seen seen = {
		.server = s->server,
		.asleep = s->asleep,
		.idle_ticks = s->threads.idle_ticks,
		.unserved_ticks = s->threads.unserved_ticks,
	};
	struct aw_serve_plan plan = aw_serve_plan(AW_SERVE_TICK, &seen, s->now_ns);

	follow(s, &plan);
}

static struct scene begin(void)
{
	return (struct scene){ .server = AW_SERVER_PROGRESS, .now_ns = NOW };
}

/* It is served in each tick of the pause, and goes back in the fourth. */
static void run__pollers_come_pause_and_stop(void **state)
{
	struct scene s = begin();

	(void)state;
	arrive(&s);
	assert_int_equal(s.served, 1);
	s.threads.turns += AW_TURNS_MIN;
	arrive(&s);
	assert_int_equal(s.server, AW_SERVER_POLLER);
	for (int i = 0; i < 100; i++) {
		s.threads.turns++;
		tick(&s);
	}
	assert_int_equal(s.served, 1);
	for (int i = 1; i < AW_SILENT_TICKS; i++) {
		tick(&s);
		assert_int_equal(s.served, 1 + i);
	}
	s.threads.turns++; /* they had lost their CPU */
	tick(&s);
	for (int i = 1; i < AW_SILENT_TICKS; i++)
		tick(&s);
	assert_int_equal(s.server, AW_SERVER_POLLER);
	tick(&s);
	assert_int_equal(s.server, AW_SERVER_PROGRESS);
	/* Their earlier polls do not count. */
	arrive(&s);
	assert_int_equal(s.server, AW_SERVER_PROGRESS);
}

/* A thread takes receives and never finds the CQ empty: every fourth tick serves. */
static void run__pollers_with_a_full_cq(void **state)
{
	struct scene s = begin();

	(void)state;
	s.threads.turns += AW_TURNS_MIN;
	arrive(&s);
	for (int i = 0; i < 10 * AW_SILENT_TICKS; i++) {
		s.threads.takes++;
		tick(&s);
	}
	assert_int_equal(s.server, AW_SERVER_POLLER);
	assert_int_equal(s.served, 10);
}

static void run__a_sleeper_gets_it_and_has_it_while_arrivals_are_brisk(void **state)
{
	struct scene s = begin();

	(void)state;
	s.asleep = true;
	arrive(&s);
	assert_int_equal(s.server, AW_SERVER_PROGRESS);
	s.now_ns += AW_BRISK_NS - 1;
	arrive(&s);
	assert_int_equal(s.server, AW_SERVER_WAITER);
	assert_int_equal(s.served, 2);
	for (int i = 0; i < 50; i++) {
		for (uint32_t idle = 1; idle < AW_IDLE_TICKS; idle++)
			tick(&s);
		s.threads.turns++; /* it wakes */
		tick(&s);
	}
	assert_int_equal(s.server, AW_SERVER_WAITER);
	assert_int_equal(s.served, 2);
	for (uint32_t idle = 0; idle < AW_IDLE_TICKS; idle++)
		tick(&s);
	assert_int_equal(s.server, AW_SERVER_PROGRESS);
}

static void eventful__counts_in_a_row_up_to_its_bound(void **state)
{
	struct aw_eventful e = { 0 };

	(void)state;
	for (uint32_t i = 1; i < AW_EVENTFUL_MIN; i++)
		aw_eventful_count(&e, true);
	assert_false(aw_eventful_is_enough(&e));
	aw_eventful_count(&e, true);
	assert_true(aw_eventful_is_enough(&e));
	aw_eventful_count(&e, false);
	assert_int_equal(e.count, 0);
	e.count = AW_EVENTFUL_MAX - 1;
	aw_eventful_count(&e, true);
	aw_eventful_count(&e, true);
	assert_int_equal(e.count, AW_EVENTFUL_MAX);
}

/* However often it ends, so many in a row are enough as can be counted. */
static void eventful__its_price_doubles_up_to_its_bound(void **state)
{
	struct aw_eventful e = { 0 };
	uint32_t needed = AW_EVENTFUL_MIN;

	(void)state;
	for (int i = 0; i < 40; i++) {
		e.count = needed - 1;
		assert_false(aw_eventful_is_enough(&e));
		e.count = needed;
		assert_true(aw_eventful_is_enough(&e));
		aw_eventful_end(&e);
		assert_int_equal(e.count, 0);
		needed = needed < AW_EVENTFUL_MAX ? 2 * needed : AW_EVENTFUL_MAX;
	}
}

/* Only a tick in which they did nothing, or the fourth in which they served nothing, makes the progress thread walk. */
static void count_tick__wants_a_walk(void **state)
{
	struct aw_activity a = { .turns = 5, .takes = 7 };

	(void)state;
	aw_serve_begin_ticks(&a);
	a.turns++;
	assert_false(aw_serve_count_tick(&a));
	assert_true(aw_serve_count_tick(&a));
	a.takes++;
	assert_false(aw_serve_count_tick(&a)); /* two ticks unserved */
	a.takes++;
	assert_false(aw_serve_count_tick(&a));
	a.takes++;
	assert_true(aw_serve_count_tick(&a));
	a.turns = UINT32_MAX;
	assert_false(aw_serve_count_tick(&a));
	a.turns++; /* it wraps */
	assert_false(aw_serve_count_tick(&a));
}

/* Watchers that come to other channels come to this one in time. */
static void needs_look__not_of_watchers_that_come_elsewhere(void **state)
{
	struct aw_activity a = { .looked_at = 3, .watched = 2 };

	(void)state;
	a.unserved_ticks = AW_SILENT_TICKS - 1;
	assert_int_equal(aw_serve_needs_look(&a, true), 1);
	assert_int_equal(aw_serve_needs_look(&a, false), 3);
	a.unserved_ticks = AW_SILENT_TICKS;
	assert_int_equal(aw_serve_needs_look(&a, true), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan__arrival),
		cmocka_unit_test(plan__tick),
		cmocka_unit_test(plan__arm),
		cmocka_unit_test(go__has_these_arrows_and_no_others),
		cmocka_unit_test(run__pollers_come_pause_and_stop),
		cmocka_unit_test(run__pollers_with_a_full_cq),
		cmocka_unit_test(run__a_sleeper_gets_it_and_has_it_while_arrivals_are_brisk),
		cmocka_unit_test(eventful__counts_in_a_row_up_to_its_bound),
		cmocka_unit_test(eventful__its_price_doubles_up_to_its_bound),
		cmocka_unit_test(count_tick__wants_a_walk),
		cmocka_unit_test(needs_look__not_of_watchers_that_come_elsewhere),
	};

	return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
