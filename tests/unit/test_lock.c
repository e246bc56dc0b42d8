// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Latches, each test by the word and as a mutex: one thread at a time, a try that does not wait, a sleep that ends; and in which
// process a latch is a mutex.
#include "ring/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define TURNS 50000

static struct aw_latch latch;
static struct aw_latch_cond cond;
static unsigned long count, tries; /* guarded by latch */
static bool changed; /* likewise */

static int setup_word(void **state)
{
	(void)state;
	aw_latch_init(&latch);
	latch.word = AW_LATCH_FREE;
	count = tries = 0;
	changed = false;
	return 0;
}

static int setup_mutex(void **state)
{
	setup_word(state);
	latch.word = AW_LATCH_MUTEX;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(aw_locks_held, 0);
	aw_latch_fini(&latch);
	return 0;
}

static void *take_turns(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		if (i % 3 == 0 && aw_trylock(&latch) == 0) {
			tries++;
		} else if (i % 3 != 0) {
			aw_lock(&latch);
			count++;
		} else {
			continue;
		}
		aw_unlock(&latch);
	}
	assert_int_equal(aw_locks_held, 0);
	return NULL;
}

static void latch__has_one_thread_at_a_time(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count, THREADS * (unsigned long)(TURNS - (TURNS + 2) / 3));
	assert_true(tries > 0);
	assert_int_equal(aw_trylock(&latch), 0);
	aw_unlock(&latch);
}

static void *try_once(void *arg)
{
	*(int *)arg = aw_trylock(&latch);
	if (*(int *)arg == 0)
		aw_unlock(&latch);
	return NULL;
}

static int tried(void)
{
	pthread_t thread;
	int err = -1;

	assert_int_equal(pthread_create(&thread, NULL, try_once, &err), 0);
	pthread_join(thread, NULL);
	return err;
}

static void latch__is_tried_without_a_wait(void **state)
{
	(void)state;
	aw_lock(&latch);
	assert_int_equal(aw_locks_held, 1);
	assert_int_equal(tried(), EBUSY);
	aw_unlock(&latch);
	assert_int_equal(aw_locks_held, 0);
	assert_int_equal(tried(), 0);
}

static void *await(void *arg)
{
	errno = 7;
	aw_lock(&latch);
	count++;
	aw_unlock(&latch);
	*(int *)arg = errno;
	return NULL;
}

/* Both threads may sleep; each wake passes the latch on. */
static void latch__wakes_who_sleeps(void **state)
{
	int errors[2] = { 0, 0 };
	pthread_t threads[2];

	(void)state;
	aw_lock(&latch);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, await, &errors[i]), 0);
	while (latch.word == AW_LATCH_HELD)
		sched_yield();
	assert_int_equal(count, 0);
	aw_unlock(&latch);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count, 2);
	assert_int_equal(errors[0], 7);
	assert_int_equal(errors[1], 7);
	assert_true(latch.word == AW_LATCH_FREE || latch.word == AW_LATCH_MUTEX);
}

static void *change(void *arg)
{
	(void)arg;
	aw_lock(&latch);
	changed = true;
	aw_latch_wake(&cond);
	aw_unlock(&latch);
	return NULL;
}

static void latch_wait__ends_with_the_change(void **state)
{
	pthread_t thread;

	(void)state;
	aw_lock(&latch);
	assert_int_equal(pthread_create(&thread, NULL, change, NULL), 0);
	while (!changed)
		aw_latch_wait(&cond, &latch);
	aw_unlock(&latch);
	pthread_join(thread, NULL);
}

/* The word tells: it changes with each wake that makes a system call. */
static void latch_wake__without_a_waiter_asks_nothing_of_the_kernel(void **state)
{
	uint32_t before = cond.wakes;

	(void)state;
	aw_lock(&latch);
	aw_latch_wake(&cond);
	aw_unlock(&latch);
	assert_int_equal(cond.wakes, before);
	latch_wait__ends_with_the_change(state);
	assert_int_equal(cond.wakes, before + 1);
	assert_int_equal(cond.waiters, 0);
}

/* The child of a fork takes a latch anew that a thread of the parent holds. */
static void latch_init__frees_it(void **state)
{
	(void)state;
	aw_lock(&latch);
	aw_latch_init(&latch);
	assert_int_equal(tried(), 0);
	aw_locks_held = 0;
}

/* In a process of its own: a latch becomes a mutex where the library of a tool is loaded before the first. */
static int word_in_child(const char *library)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		if (library && !dlopen(library, RTLD_NOW))
			_exit(99);
		aw_latch_init(&latch);
		_exit((int)latch.word);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The first: no latch was made in this process before. */
static void latch_init__asks_who_judges(void **state)
{
	(void)state;
	assert_int_equal(word_in_child(HELGRIND_STAND_IN), AW_LATCH_MUTEX);
#ifndef __SANITIZE_THREAD__
	assert_int_equal(word_in_child(NULL), AW_LATCH_FREE);
#endif
}

#define BOTH(test)                                                   \
	cmocka_unit_test_setup_teardown(test, setup_word, teardown), \
	{                                                            \
#test "__mutex", test, setup_mutex, teardown, NULL   \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latch_init__asks_who_judges),
		BOTH(latch__has_one_thread_at_a_time),
		BOTH(latch__is_tried_without_a_wait),
		BOTH(latch__wakes_who_sleeps),
		BOTH(latch_wait__ends_with_the_change),
		BOTH(latch_wake__without_a_waiter_asks_nothing_of_the_kernel),
		cmocka_unit_test_setup_teardown(latch_init__frees_it, setup_word, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
