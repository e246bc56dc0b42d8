// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a wrong value of a variable does: an error that names it, and what holds without it.
#include "xsock/process/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "ANYWARP_OF_A_TEST"
#define LINE_BYTES_MAX 512

static char logged[LINE_BYTES_MAX]; /* of the call that came last */
static int log_fds[2]; /* a pipe in stderr's place */
static int stderr_kept;

static void log_begin(const char *value)
{
	if (value)
		setenv(NAME, value, 1);
	else
		unsetenv(NAME);
	assert_int_equal(pipe(log_fds), 0);
	stderr_kept = dup(STDERR_FILENO);
	dup2(log_fds[1], STDERR_FILENO);
}

static void log_end(void)
{
	ssize_t got;

	dup2(stderr_kept, STDERR_FILENO);
	close(stderr_kept);
	close(log_fds[1]);
	got = read(log_fds[0], logged, sizeof(logged) - 1);
	assert_true(got >= 0);
	logged[got] = 0;
	close(log_fds[0]);
}

static bool read_switch(const char *value, bool otherwise)
{
	bool is_on;

	log_begin(value);
	is_on = aw_env_switch(NAME, otherwise);
	log_end();
	return is_on;
}

static int read_number(const char *value)
{
	int number;

	log_begin(value);
	number = aw_env_number(NAME, 100, -1);
	log_end();
	return number;
}

static void switch__on_and_off(void **state)
{
	(void)state;
	assert_true(read_switch("on", false));
	assert_false(read_switch("off", true));
	assert_string_equal(logged, "");
}

static void switch__unset_or_empty(void **state)
{
	(void)state;
	assert_true(read_switch(NULL, true));
	assert_false(read_switch(NULL, false));
	assert_true(read_switch("", true));
	assert_string_equal(logged, "");
}

static void switch__wrong(void **state)
{
	(void)state;
	assert_true(read_switch("Off", true));
	assert_non_null(
		strstr(logged, " error: " NAME " is 'Off': it must be on or off; taken as on\n"));
	assert_false(read_switch("1", false));
	assert_non_null(strstr(logged, "taken as off"));
}

static void number__in_its_bounds(void **state)
{
	(void)state;
	assert_int_equal(read_number("0"), 0);
	assert_int_equal(read_number("100"), 100);
	assert_int_equal(read_number(NULL), -1);
	assert_int_equal(read_number(""), -1);
	assert_string_equal(logged, "");
}

static void number__wrong(void **state)
{
	static const char *const values[] = {
		"101", "-1", "5ms", "ten", "99999999999999999999", "0x10",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(read_number(values[i]), -1);
		assert_non_null(strstr(logged, " error: " NAME " is '"));
		assert_non_null(strstr(logged, values[i]));
		assert_non_null(strstr(logged, "it must be a number from 0 to 100"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch__on_and_off), cmocka_unit_test(switch__unset_or_empty),
		cmocka_unit_test(switch__wrong),      cmocka_unit_test(number__in_its_bounds),
		cmocka_unit_test(number__wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
