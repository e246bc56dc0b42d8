// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pool of random bytes: the kernel is asked once for many numbers, no byte is given twice, in the child of a fork neither.
#include "net/base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int asked; /* calls of getentropy */
static bool fails;
/* The bytes of the stand-in count up from it, so that a byte that is given twice is seen. */
static uint8_t next;

int __wrap_getentropy(void *octets, size_t len);
int __wrap_getentropy(void *octets, size_t len)
{
	asked++;
	if (fails) {
		errno = EIO;
		return -1;
	}
	for (size_t i = 0; i < len; i++)
		((uint8_t *)octets)[i] = next++;
	return 0;
}

/* Leaves the pool empty. */
static int empty(void **state)
{
	uint8_t octet;

	(void)state;
	fails = true;
	while (aw_random_take(&octet, 1) == 0)
		;
	fails = false;
	asked = 0;
	return 0;
}

static void random__asks_once_for_many(void **state)
{
	bool seen[AW_RANDOM_POOL] = { false };
	uint8_t octets[4];

	(void)state;
	for (int i = 0; i < AW_RANDOM_POOL / 4; i++) {
		assert_int_equal(aw_random_take(octets, sizeof(octets)), 0);
		for (int j = 0; j < 4; j++) {
			assert_false(seen[octets[j]]);
			seen[octets[j]] = true;
		}
	}
	assert_int_equal(asked, 1);
	assert_int_equal(aw_random_take(octets, 1), 0);
	assert_int_equal(asked, 2);
}

static void random__gives_the_whole_pool(void **state)
{
	uint8_t octets[AW_RANDOM_POOL];

	(void)state;
	assert_int_equal(aw_random_take(octets, 0), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(aw_random_take(octets, 1), 0);
	assert_int_equal(aw_random_take(octets, sizeof(octets)), 0);
	assert_int_equal(asked, 2);
}

/* What is left of a pool that is too short for a number is dropped. */
static void random__fails_with_the_kernel(void **state)
{
	uint8_t octets[4] = { 1, 2, 3, 4 };

	(void)state;
	fails = true;
	assert_int_equal(aw_random_take(octets, sizeof(octets)), EIO);
	assert_memory_equal(octets, ((uint8_t[]){ 1, 2, 3, 4 }), 4);
	fails = false;
	assert_int_equal(aw_random_take(octets, sizeof(octets)), 0);
}

/* handlers: whether the library learns of the fork. Returns how often the child has asked the kernel for its first number. */
static int asked_in_child(bool handlers)
{
	uint8_t octets[4];
	int status;

	assert_int_equal(aw_random_take(octets, sizeof(octets)), 0);
	asked = 0;
	pid_t child = handlers ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	assert_true(child >= 0);
	if (child == 0) {
		if (aw_random_take(octets, sizeof(octets)) != 0)
			_exit(99);
		_exit(asked);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(aw_random_take(octets, sizeof(octets)), 0);
	assert_int_equal(asked, 0);
	return WEXITSTATUS(status);
}

static void random__is_another_in_the_child_of_a_fork(void **state)
{
	(void)state;
	assert_int_equal(asked_in_child(true), 1);
	assert_int_equal(asked_in_child(false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(random__asks_once_for_many, empty),
		cmocka_unit_test_setup(random__gives_the_whole_pool, empty),
		cmocka_unit_test_setup(random__fails_with_the_kernel, empty),
		cmocka_unit_test_setup(random__is_another_in_the_child_of_a_fork, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
