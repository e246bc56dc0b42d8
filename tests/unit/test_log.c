// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The log's lines and levels, with an output of the test's own.
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char logged[4 * AW_LOG_LINE_MAX];
static size_t logged_len;

static void keep_line(const char *line, size_t len)
{
	assert_in_range(len, 1, AW_LOG_LINE_MAX);
	assert_true(logged_len + len < sizeof(logged));
	memcpy(logged + logged_len, line, len);
	logged_len += len;
	logged[logged_len] = '\0';
	errno = EIO;
}

struct aw_log_output aw_log_output = { .write = keep_line };

/* As a new process with this ANYWARP_LOG would begin. */
static void restart(const char *word, bool reports_level)
{
	static const pthread_once_t never = PTHREAD_ONCE_INIT;

	if (word)
		setenv("ANYWARP_LOG", word, 1);
	else
		unsetenv("ANYWARP_LOG");
	aw_log_output.once = never;
	aw_log_output.reports_level = reports_level;
	logged[0] = '\0';
	logged_len = 0;
}

static void log__lines_of_the_level_and_above(void **state)
{
	static const char *const words[] = { "error", "warn", "info", "debug" };

	(void)state;
	for (int level = AW_LOG_ERROR; level <= AW_LOG_DEBUG; level++) {
		char expected[AW_LOG_LINE_MAX] = "";

		restart(words[level], true);
		assert_int_equal(aw_log_level(), level);
		for (int line = AW_LOG_ERROR; line <= AW_LOG_DEBUG; line++)
			aw_log((enum aw_log_level)line, "line %d", line);
		for (int line = AW_LOG_ERROR; line <= level; line++)
			sprintf(expected + strlen(expected), "anywarp[%d] %s: line %d\n",
				(int)getpid(), words[line], line);
		assert_string_equal(logged, expected);
	}
}

static void log__unset_or_empty_is_error(void **state)
{
	(void)state;
	restart(NULL, true);
	assert_int_equal(aw_log_level(), AW_LOG_ERROR);
	restart("", true);
	assert_int_equal(aw_log_level(), AW_LOG_ERROR);
	assert_string_equal(logged, "");
}

static void log__unknown_level_is_reported_once(void **state)
{
	(void)state;
	restart("Info", true);
	aw_log(AW_LOG_INFO, "no line");
	assert_int_equal(aw_log_level(), AW_LOG_ERROR);
	assert_non_null(strstr(logged, " error: ANYWARP_LOG is 'Info': it must be error, warn, "
				       "info or debug; taken as error\n"));
	assert_ptr_equal(strchr(logged, '\n'), logged + logged_len - 1);
	restart("Info", false);
	aw_log(AW_LOG_INFO, "no line");
	assert_string_equal(logged, "");
}

static void log__long_line_is_cut(void **state)
{
	(void)state;
	restart(NULL, true);
	aw_log(AW_LOG_ERROR, "%*d", 2 * AW_LOG_LINE_MAX, 1);
	assert_int_equal(logged_len, AW_LOG_LINE_MAX);
	assert_int_equal(logged[logged_len - 1], '\n');
}

/* The loop may run in two seconds. */
static void log__has_room_for_ten_lines_a_second(void **state)
{
	int count = 0;

	(void)state;
	for (int i = 0; i < 100; i++)
		count += aw_log_has_room();
	assert_in_range(count, 10, 20);
}

static void log__keeps_errno(void **state)
{
	(void)state;
	restart(NULL, true);
	errno = EAGAIN;
	aw_log(AW_LOG_ERROR, "a line");
	assert_int_equal(errno, EAGAIN);
	assert_true(logged_len > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__lines_of_the_level_and_above),
		cmocka_unit_test(log__unset_or_empty_is_error),
		cmocka_unit_test(log__unknown_level_is_reported_once),
		cmocka_unit_test(log__long_line_is_cut),
		cmocka_unit_test(log__has_room_for_ten_lines_a_second),
		cmocka_unit_test(log__keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
