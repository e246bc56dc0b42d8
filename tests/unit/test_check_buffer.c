// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Text in a buffer of fixed size, JSON strings, parts of URIs.
#include "check/report/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void put__is_cut_at_the_end_of_the_room(void **state)
{
	char bytes[8];
	struct aw_buffer buffer = aw_buffer_of(bytes, sizeof(bytes));

	(void)state;
	aw_buffer_put(&buffer, "%s", "1234567");
	assert_false(buffer.is_cut);
	assert_string_equal(bytes, "1234567");
	aw_buffer_put(&buffer, "%s", "");
	assert_false(buffer.is_cut);
	aw_buffer_put(&buffer, "%s", "8");
	assert_true(buffer.is_cut);
	assert_string_equal(bytes, "1234567");
	assert_int_equal(buffer.len, 7);
}

static void put_json__escapes(void **state)
{
	static const char *const texts[][2] = {
		{ "", "\"\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\x7f\x01", "\"\\u000a\\u007f\\u0001\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xc3", "\"?\"" }, /* cut off */
		{ "\xc0\x80x", "\"??x\"" }, /* longer than it must be */
		{ "\xed\xa0\x80", "\"???\"" }, /* half of a pair of UTF-16 */
		{ "\xff", "\"?\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char bytes[64];
		struct aw_buffer buffer = aw_buffer_of(bytes, sizeof(bytes));

		aw_buffer_put_json(&buffer, texts[i][0]);
		assert_string_equal(bytes, texts[i][1]);
	}
}

static void put_uri__encodes_what_a_path_may_not_have(void **state)
{
	char bytes[64];
	struct aw_buffer buffer = aw_buffer_of(bytes, sizeof(bytes));

	(void)state;
	aw_buffer_put_uri(&buffer, "src/a b%c#\xc3\xa4~x_y-z.c");
	assert_string_equal(bytes, "src/a%20b%25c%23%C3%A4~x_y-z.c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__is_cut_at_the_end_of_the_room),
		cmocka_unit_test(put_json__escapes),
		cmocka_unit_test(put_uri__encodes_what_a_path_may_not_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
