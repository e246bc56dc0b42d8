// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pieces of the grammars of options.
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void cut__takes_the_separator_too(void **state)
{
	struct aw_slice rest = aw_slice_of("a=b=");

	(void)state;
	assert_true(aw_slice_equals(aw_slice_cut(&rest, '='), "a"));
	assert_true(aw_slice_equals(rest, "b="));
	assert_true(aw_slice_equals(aw_slice_cut(&rest, '='), "b"));
	assert_int_equal(rest.len, 0);
	assert_int_equal(aw_slice_cut(&rest, '=').len, 0);
	assert_int_equal(aw_slice_of(NULL).len, 0);
}

static void find__whole_words_alone(void **state)
{
	static const char *const words[] = { "off", "on" };
	size_t found = 7;

	(void)state;
	assert_false(aw_slice_find(aw_slice_of("o"), words, 2, &found));
	assert_false(aw_slice_find(aw_slice_of("one"), words, 2, &found));
	assert_false(aw_slice_find(aw_slice_of(""), words, 2, &found));
	assert_false(aw_slice_find(aw_slice_of("on"), words, 1, &found));
	assert_int_equal(found, 7);
	assert_true(aw_slice_find((struct aw_slice){ "once", 2 }, words, 2, &found));
	assert_int_equal(found, 1);
}

static void number__in_its_bounds(void **state)
{
	static const unsigned long maxima[] = { 0, 1, 9, 10, 99, 100, 65535, ULONG_MAX - 1 };
	unsigned long number;
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
		snprintf(text, sizeof(text), "%lu", maxima[i]);
		assert_true(aw_slice_number(aw_slice_of(text), maxima[i], &number));
		assert_int_equal(number, maxima[i]);
		snprintf(text, sizeof(text), "%lu", maxima[i] + 1);
		assert_false(aw_slice_number(aw_slice_of(text), maxima[i], &number));
	}
	assert_true(aw_slice_number(aw_slice_of("0"), 0, &number));
	assert_true(aw_slice_number((struct aw_slice){ "123", 2 }, 12, &number));
	assert_int_equal(number, 12);
}

static void number__digits_alone(void **state)
{
	static const char *const wrong[] = {
		"", "-1", "+1", " 1", "1 ", "1k", "0x1", "/", ":", "99999999999999999999",
	};
	unsigned long number = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(aw_slice_number(aw_slice_of(wrong[i]), ULONG_MAX, &number));
	assert_int_equal(number, 7);
}

static void quote__cuts_and_replaces(void **state)
{
	char text[4 + 8];

	(void)state;
	assert_int_equal(aw_slice_quote(aw_slice_of("a\n\x80z"), 4, text), 8);
	assert_string_equal(text, "'a?\?z': ");
	assert_int_equal(aw_slice_quote(aw_slice_of("abcde"), 4, text), sizeof(text) - 1);
	assert_string_equal(text, "'abcd...': ");
	assert_int_equal(aw_slice_quote(aw_slice_of(""), 4, text), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut__takes_the_separator_too),
		cmocka_unit_test(find__whole_words_alone),
		cmocka_unit_test(number__in_its_bounds),
		cmocka_unit_test(number__digits_alone),
		cmocka_unit_test(quote__cuts_and_replaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
