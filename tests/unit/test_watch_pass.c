// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches that one handler looks at for another, and fds that pass from one watch to the next.
#include "net/progress/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../lib/watch_probe.h"

#define PLACES 100000 /* more than the table ever had */

struct look {
	struct aw_watch watch; /* first */
	uint64_t key;
	_Atomic uint32_t looks;
};

static void on_look(struct aw_watch *w, uint32_t events)
{
	struct look *look = (struct look *)w;

	(void)events;
	aw_watch_look(look->key);
	look->looks++;
}

/* Free places are taken in turn. */
static void add_at(struct probe *p, uint32_t handle)
{
	for (int tries = 0; tries < PLACES; tries++) {
		assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, NULL), 0);
		if (p->watch.handle == handle)
			return;
		aw_watch_remove_wait(&p->watch);
	}
	fail_msg("no watch has handle %u", handle);
}

static void watch_look__until_the_watch_ends(void **state)
{
	struct probe *p = *state;
	struct look look = { .looks = 0 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(aw_watch_add(&p->watch, ends[0], 0, on_watch, NULL), 0);
	assert_int_equal(aw_watch_add(&look.watch, -1, 0, on_look, NULL), 0);
	look.key = aw_watch_key(&p->watch);
	aw_watch_deadline(&look.watch, 1);
	await(&look.looks, 1);
	assert_int_equal(p->calls, 1);
	assert_int_equal(p->events, EPOLLIN);
	aw_watch_remove_wait(&p->watch);
	aw_watch_deadline(&look.watch, 1);
	await(&look.looks, 2);
	assert_int_equal(p->calls, 1);
	/* Nor does it find another watch, which has the place of the one that has ended. */
	struct probe other = { .calls = 0 };

	add_at(&other, (uint32_t)look.key);
	aw_watch_deadline(&look.watch, 1);
	await(&look.looks, 3);
	assert_int_equal(other.calls, 0);
	aw_watch_remove_wait(&other.watch);
	aw_watch_remove_wait(&look.watch);
	close(ends[0]);
	close(ends[1]);
}

static void watch_take_passed__events_come_to_the_next(void **state)
{
	struct probe *p = *state;
	struct probe next = { .calls = 0 };
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(aw_watch_add(&p->watch, ends[0], EPOLLIN, on_watch, NULL), 0);
	assert_true(aw_watch_pass_fd(&p->watch));
	assert_int_equal(aw_watch_add(&next.watch, ends[0], 0, on_watch, NULL), 0);
	aw_watch_take_passed(&next.watch, EPOLLIN);
	assert_int_equal(write(ends[1], "x", 1), 1);
	await(&next.calls, 1);
	assert_int_equal(next.events, EPOLLIN);
	assert_int_equal(p->calls, 0);
	aw_watch_remove_wait(&p->watch);
	aw_watch_remove_wait(&next.watch);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(watch_look__until_the_watch_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(watch_take_passed__events_come_to_the_next, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
