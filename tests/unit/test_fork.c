// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Handlers of a fork run by their ranks, and only those that the fork has prepared.
#include "net/base/fork.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char calls[32];

static void note(char call)
{
	size_t len = strlen(calls);

	if (len < sizeof(calls) - 1)
		calls[len] = call;
}

static void outer_prepare(void)
{
	note('P');
}

static void outer_parent(void)
{
	note('Q');
}

static void outer_child(void)
{
	note('C');
}

static const struct aw_fork_handlers outer = {
	.prepare = outer_prepare,
	.parent = outer_parent,
	.child = outer_child,
};

static void inner_parent(void)
{
	note('q');
}

static void inner_child(void)
{
	note('c');
}

static const struct aw_fork_handlers late = { .parent = inner_parent, .child = inner_child };

/* While the fork is under way another rank comes. */
static void inner_prepare(void)
{
	note('p');
	aw_fork_register(AW_FORK_CM_IDS, &late);
}

static const struct aw_fork_handlers inner = {
	.prepare = inner_prepare,
	.parent = inner_parent,
	.child = inner_child,
};

static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER;

static bool is_free(void)
{
	bool taken = pthread_mutex_trylock(&guarded) == 0;

	if (taken)
		pthread_mutex_unlock(&guarded);
	return taken;
}

static void note_free(void)
{
	note(is_free() ? 'f' : '!');
}

static void note_held(void)
{
	note(is_free() ? '!' : 'h');
}

static const struct aw_fork_handlers locked = {
	.lock = &guarded,
	.prepare = note_free,
	.parent = note_held,
	.child = note_held,
};

/* What the child of a fork has noted, with its parent's calls before; expects as many forks more. */
static void check_child(const char *expected)
{
	uint32_t generation = aw_fork_generation();
	pid_t pid;
	int status;

	memset(calls, 0, sizeof(calls));
	pid = fork();
	if (pid == 0)
		_exit(strcmp(calls, expected) != 0 || aw_fork_generation() != generation + 1 ||
		      !is_free());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(aw_fork_generation(), generation);
}

static void fork__calls_by_rank(void **state)
{
	(void)state;
	aw_fork_register(AW_FORK_STAT, &inner);
	aw_fork_register(AW_FORK_HANDLING, &outer);
	check_child("PpcC");
	assert_string_equal(calls, "PpqQ");
}

/* The rank that the fork before has brought has no prepare: its ends are called, between the others'. */
static void fork__calls_what_came_during_another(void **state)
{
	(void)state;
	check_child("PpccC");
	assert_string_equal(calls, "PpqqQ");
}

static void fork__holds_the_lock(void **state)
{
	(void)state;
	aw_fork_register(AW_FORK_GIDS, &locked);
	check_child("PfpchcC");
	assert_string_equal(calls, "PfpqhqQ");
	assert_true(is_free());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork__calls_by_rank),
		cmocka_unit_test(fork__calls_what_came_during_another),
		cmocka_unit_test(fork__holds_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
