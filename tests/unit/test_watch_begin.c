// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches that are added without events, and begin once their owner holds no lock.
#include "net/progress/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../lib/watch_probe.h"

#define PLACES 100000 /* more than the table ever had */

static int readable_fd(void)
{
	return eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* The handler has run when the call returns, or runs then: either way the watch is its own. */
static void watch_begin__handler_may_end_the_watch(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();

	p->remove_self = true;
	assert_int_equal(aw_watch_add(&p->watch, fd, 0, on_watch, on_release), 0);
	assert_int_equal(aw_watch_begin(&p->watch, p->watch.fd, EPOLLIN, 10000), 0);
	await(&p->calls, 1);
	await(&p->released, 1);
	assert_int_equal(p->events, EPOLLIN);
	close(fd);
}

/* A handler that ran before has set it. */
static void watch_begin__first_deadline_stays(void **state)
{
	struct probe *p = *state;

	assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, on_release), 0);
	aw_watch_deadline(&p->watch, 1);
	assert_int_equal(aw_watch_begin(&p->watch, p->watch.fd, 0, 3600000), 0);
	await(&p->calls, 1);
	assert_int_equal(p->events, AW_WATCH_TIMEOUT);
	aw_watch_remove_wait(&p->watch);
}

static void watch_begin__deadline_fires(void **state)
{
	struct probe *p = *state;

	assert_int_equal(aw_watch_add(&p->watch, -1, 0, on_watch, on_release), 0);
	assert_int_equal(aw_watch_begin(&p->watch, p->watch.fd, 0, 1), 0);
	await(&p->calls, 1);
	aw_watch_remove_wait(&p->watch);
}

/* A watch may have it: the one that had it is in the table no more. Free places are taken in turn. */
static bool is_free(uint32_t handle)
{
	bool found = false;

	for (int tries = 0; tries < PLACES && !found; tries++) {
		struct probe other = { .calls = 0 };

		assert_int_equal(aw_watch_add(&other.watch, -1, 0, on_watch, NULL), 0);
		found = other.watch.handle == handle;
		aw_watch_remove_wait(&other.watch);
	}
	return found;
}

static void watch_begin__bad_fd(void **state)
{
	struct probe *p = *state;
	int fd = readable_fd();

	assert_int_equal(aw_watch_add(&p->watch, 1000000, 0, on_watch, on_release), 0);
	assert_int_equal(aw_watch_begin(&p->watch, p->watch.fd, EPOLLIN, 1), EBADF);
	assert_int_equal(p->released, 0);
	assert_true(is_free(p->watch.handle));
	assert_int_equal(aw_watch_add(&p->watch, fd, EPOLLIN, on_watch, on_release), 0);
	await(&p->calls, 1);
	assert_int_equal(p->events, EPOLLIN);
	aw_watch_remove_wait(&p->watch);
	assert_int_equal(p->released, 1);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(watch_begin__handler_may_end_the_watch),
		TEST(watch_begin__first_deadline_stays),
		TEST(watch_begin__deadline_fires),
		TEST(watch_begin__bad_fd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
