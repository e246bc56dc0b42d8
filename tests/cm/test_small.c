// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first use of the libraries, by a thread with the smallest stack that there is. The stack is filled with a pattern before.
#include "cm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATTERN 0xa5
#define DEPTH_MAX 2048

static void *do_nothing(void *unused)
{
	return unused;
}

static void *use_connection(void *unused)
{
	struct cm_ends ends;

	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
	return unused;
}

/* Returns how many bytes of its stack a thread that calls fn uses. */
static size_t depth_of(void *(*fn)(void *unused))
{
	size_t bytes = (size_t)sysconf(_SC_THREAD_STACK_MIN), guard = (size_t)sysconf(_SC_PAGESIZE);
	size_t unused = 0;
	unsigned char *map = mmap(NULL, guard + bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t small;
	pthread_t thread;

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map, guard, PROT_NONE), 0);
	memset(map + guard, PATTERN, bytes);
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstack(&small, map + guard, bytes), 0);
	assert_int_equal(pthread_create(&thread, &small, fn, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	while (unused < bytes && map[guard + unused] == PATTERN)
		unused++;
	munmap(map, guard + bytes);
	return bytes - unused;
}

static void first_use__on_the_smallest_stack(void **state)
{
	size_t base = depth_of(do_nothing), depth = depth_of(use_connection) - base;

	(void)state;
	print_message("first use: %zu bytes of stack\n", depth);
	assert_true(depth <= DEPTH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_use__on_the_smallest_stack),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
