// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files of suppressions.
#include "check/report/suppress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct aw_suppressions suppressions;
static char why[AW_SUPPRESS_WHY_MAX];

static bool read_bytes(const char *bytes, size_t len)
{
	char path[] = "/tmp/anywarp-suppress-XXXXXX";
	int fd = mkstemp(path);
	bool is_right;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	why[0] = '\0';
	is_right = aw_suppress_read(path, &suppressions, why);
	unlink(path);
	return is_right;
}

static bool read_lines(const char *text)
{
	return read_bytes(text, strlen(text));
}

static const struct aw_trace trace = {
	.frames = 2,
	.frame = { { .function = "ibv_post_send",
		     .file = "/usr/include/infiniband/verbs.h",
		     .module = "/opt/lib/libmine.so.1" },
		   { .function = "send_one",
		     .file = "/src/my program/send.c",
		     .module = "/opt/bin/mine" } },
};

static void matches__rule_function_file_and_library(void **state)
{
	static const struct {
		const char *line;
		bool is_match;
	} lines[] = {
		{ "leak", true },
		{ "leak:send_one", true },
		{ "leak:send_*", true },
		{ "leak:send.c", true },
		{ "leak:/src/*/send.c", true },
		{ "leak:libmine.so*", true },
		{ "  leak:send_one\t # known\r", true },
		{ "# leak", false },
		{ "", false },
		{ "leak:send", false },
		{ "leak:receive*", false },
		{ "overlap:send_one", false },
		{ "overlap", false },
		{ "overlap\n\n#\nleak:sen?_one", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(read_lines(lines[i].line));
		if (aw_suppress_matches(&suppressions, AW_RULE_LEAK, &trace) != lines[i].is_match)
			fail_msg("%s", lines[i].line);
	}
}

static void read__an_error_names_the_line(void **state)
{
	static const char *const wrong[][2] = {
		{ "leak\n\nleek:x\n", ", line 3: 'leek:x': no such rule: a line is RULE" },
		{ "leak:", ", line 1: 'leak:'" },
		{ "# x\n:send", ", line 2: ':send'" },
		{ "leak overlap", ", line 1: 'leak overlap'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(read_lines(wrong[i][0]));
		if (!strstr(why, wrong[i][1]) || !strstr(why, "source-changed") ||
		    !strstr(why, "destroyed-in-use"))
			fail_msg("%s: %s", wrong[i][0], why);
		assert_false(aw_suppress_matches(&suppressions, AW_RULE_LEAK, &trace));
	}
}

static void read__a_file_that_cannot_be_read(void **state)
{
	(void)state;
	assert_false(aw_suppress_read("/no/such/file", &suppressions, why));
	assert_string_equal(why, "cannot read '/no/such/file': No such file or directory");
	assert_false(aw_suppress_read("/", &suppressions, why));
	assert_non_null(strstr(why, "Is a directory"));
}

static void read__at_the_bounds(void **state)
{
	static char bytes[AW_SUPPRESS_BYTES_MAX];
	size_t len = 0;

	(void)state;
	memset(bytes, '#', sizeof(bytes));
	assert_true(read_bytes(bytes, sizeof(bytes) - 1));
	assert_false(read_bytes(bytes, sizeof(bytes)));
	assert_non_null(strstr(why, "has more than 32767 bytes"));
	for (int i = 0; i < AW_SUPPRESS_MAX; i++)
		len += (size_t)sprintf(bytes + len, "leak:f\n");
	assert_true(read_bytes(bytes, len));
	assert_int_equal(suppressions.count, AW_SUPPRESS_MAX);
	len += (size_t)sprintf(bytes + len, "leak:f");
	assert_false(read_bytes(bytes, len));
	assert_non_null(strstr(why, "line 513: more than 512 lines"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches__rule_function_file_and_library),
		cmocka_unit_test(read__an_error_names_the_line),
		cmocka_unit_test(read__a_file_that_cannot_be_read),
		cmocka_unit_test(read__at_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
