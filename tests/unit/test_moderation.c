// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Moderated events of a CQ, with a clock and a deadline that the test moves: by count, by time, and never lost.
#include "net/cq/moderation.h"

#include "base/clock.h"
#include "net/progress/watch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define US INT64_C(1000)

/* Instead of the progress thread: one watch, whose deadline is due when the test says so. */
static struct {
	int64_t now_ns;
	struct aw_watch *watch;
	aw_watch_fn *fn;
	void (*release)(struct aw_watch *w);
	int64_t deadline_ns; /* 0: none */
	unsigned int deadlines; /* that were ever set */
	int add_err;
} world;

int64_t __wrap_aw_now_ns(void);
int __wrap_aw_watch_add(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
			void (*release)(struct aw_watch *w));
void __wrap_aw_watch_deadline_us(struct aw_watch *w, uint64_t us);
void __wrap_aw_watch_remove_wait(struct aw_watch *w);

int64_t __wrap_aw_now_ns(void)
{
	return world.now_ns;
}

int __wrap_aw_watch_add(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
			void (*release)(struct aw_watch *w))
{
	assert_int_equal(fd, -1);
	assert_int_equal(events, 0);
	if (world.add_err)
		return world.add_err;
	world.watch = w;
	world.fn = fn;
	world.release = release;
	return 0;
}

void __wrap_aw_watch_deadline_us(struct aw_watch *w, uint64_t us)
{
	assert_ptr_equal(w, world.watch);
	assert_true(us > 0);
	world.deadline_ns = world.now_ns + (int64_t)us * US;
	world.deadlines++;
}

void __wrap_aw_watch_remove_wait(struct aw_watch *w)
{
	assert_ptr_equal(w, world.watch);
	world.release(w);
	world.watch = NULL;
}

/* Time passes; the deadline runs when it is due, also one that the handler has set anew. */
static void pass(int64_t us)
{
	int64_t until = world.now_ns + us * US;

	while (world.deadline_ns && world.deadline_ns <= until) {
		world.now_ns = world.deadline_ns;
		world.deadline_ns = 0;
		world.fn(world.watch, AW_WATCH_TIMEOUT);
	}
	world.now_ns = until;
}

struct scene {
	struct aw_channel channel;
	struct aw_cq cq;
};

static int setup(void **state)
{
	static struct scene s;

	world = (__typeof__(world)){ .now_ns = 1000000 };
	*state = &s;
	return aw_channel_init(&s.channel) || aw_cq_init(&s.cq, 64, &s.channel, &s.cq);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	aw_cq_fini(&s->cq);
	aw_channel_fini(&s->channel);
	return world.watch != NULL;
}

static void push(struct scene *s, uint32_t flags)
{
	static struct aw_cq_user user;

	aw_cq_push(&s->cq, &(struct aw_cqe){ .flags = flags },
		   &(struct aw_cq_from){ .user = &user, .queue = AW_RQ });
}

static void push_many(struct scene *s, int count)
{
	for (int i = 0; i < count; i++)
		push(s, 0);
}

static uint32_t events(struct scene *s)
{
	return s->cq.event.pending;
}

static void count__raises_at_the_count_and_not_before(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 4, 100), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push_many(s, 3);
	assert_int_equal(events(s), 0);
	assert_int_equal(s->cq.armed, AW_ARM_NEXT);
	push(s, 0);
	assert_int_equal(events(s), 1);
	assert_int_equal(s->cq.armed, AW_ARM_NONE);
	push_many(s, 8);
	pass(1000);
	assert_int_equal(events(s), 1);
}

static void period__raises_for_fewer(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 4, 100), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push(s, 0);
	pass(99);
	push(s, 0);
	assert_int_equal(events(s), 0);
	pass(2);
	assert_int_equal(events(s), 1);
	assert_int_equal(s->cq.armed, AW_ARM_NONE);
	pass(1000);
	assert_int_equal(events(s), 1);
}

/* CQEs of a CQ that is not armed are no part of the count, and begin no wait. */
static void unarmed__waits_for_nothing(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 2, 100), 0);
	push_many(s, 3);
	assert_int_equal(world.deadlines, 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push(s, 0);
	assert_int_equal(events(s), 0);
	push(s, 0);
	assert_int_equal(events(s), 1);
}

static void solicited__counts_only_solicited(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 2, 100), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_SOLICITED);
	push_many(s, 5);
	pass(1000);
	assert_int_equal(events(s), 0);
	push(s, AW_WC_SOLICITED);
	push_many(s, 5);
	assert_int_equal(events(s), 0);
	push(s, AW_WC_SOLICITED);
	assert_int_equal(events(s), 1);
}

/*
 * A wait that begins while the deadline of an earlier one runs has its whole period; the thread that completes sets no second
 * deadline, so that the progress thread is woken once.
 */
static void waits__share_a_deadline_and_keep_their_periods(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 2, 100), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push_many(s, 2);
	assert_int_equal(world.deadlines, 1);
	pass(60);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push(s, 0);
	assert_int_equal(world.deadlines, 1);
	pass(99);
	assert_int_equal(events(s), 1);
	pass(3);
	assert_int_equal(events(s), 2);
}

static void off__raises_what_waits(void **state)
{
	static const uint16_t off[][2] = { { 0, 0 }, { 0, 100 }, { 1, 100 }, { 4, 0 } };
	struct scene *s = *state;

	for (uint32_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		assert_int_equal(aw_moderation_set(&s->cq, 4, 100), 0);
		aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
		push(s, 0);
		assert_int_equal(events(s), 2 * i);
		assert_int_equal(aw_moderation_set(&s->cq, off[i][0], off[i][1]), 0);
		assert_int_equal(events(s), 2 * i + 1);
		aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
		push(s, 0);
		assert_int_equal(events(s), 2 * i + 2);
		pass(1000);
		assert_int_equal(events(s), 2 * i + 2);
	}
}

static void set__anew_holds_for_an_event_that_waits(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_moderation_set(&s->cq, 65535, 65535), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push_many(s, 3);
	assert_int_equal(aw_moderation_set(&s->cq, 5, 50), 0);
	assert_int_equal(events(s), 0);
	pass(51);
	assert_int_equal(events(s), 1);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push_many(s, 4);
	assert_int_equal(events(s), 1);
	assert_int_equal(aw_moderation_set(&s->cq, 3, 50), 0);
	assert_int_equal(events(s), 2);
}

static void set__fails_and_changes_nothing(void **state)
{
	struct scene *s = *state;

	world.add_err = ENOMEM;
	assert_int_equal(aw_moderation_set(&s->cq, 2, 100), ENOMEM);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	push(s, 0);
	assert_int_equal(events(s), 1);
	assert_int_equal(aw_moderation_set(&s->cq, 0, 0), 0);
}

/* The largest count and period that the API has. */
static void bounds__largest_count_and_period(void **state)
{
	struct scene *s = *state;
	struct aw_cq_entry out[64];

	assert_int_equal(aw_moderation_set(&s->cq, 65535, 65535), 0);
	aw_cq_set_arm(&s->cq, AW_ARM_NEXT);
	for (int i = 0; i < 65534; i++) {
		push(s, 0);
		assert_int_equal(aw_cq_take(&s->cq, out, 64), 1);
	}
	assert_int_equal(events(s), 0);
	pass(65534);
	assert_int_equal(events(s), 0);
	push(s, 0);
	assert_int_equal(events(s), 1);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(count__raises_at_the_count_and_not_before),
		WITH(period__raises_for_fewer),
		WITH(unarmed__waits_for_nothing),
		WITH(solicited__counts_only_solicited),
		WITH(waits__share_a_deadline_and_keep_their_periods),
		WITH(off__raises_what_waits),
		WITH(set__anew_holds_for_an_event_that_waits),
		WITH(set__fails_and_changes_nothing),
		WITH(bounds__largest_count_and_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
