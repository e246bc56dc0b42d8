// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The values of settings: which are right, and what a user is told of a wrong one.
#include "base/setting.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char logged[2 * AW_LOG_LINE_MAX];

static void keep_line(const char *line, size_t len)
{
	assert_true(strlen(logged) + len < sizeof(logged));
	strncat(logged, line, len);
}

struct aw_log_output aw_log_output = { .write = keep_line, .once = PTHREAD_ONCE_INIT };

static void parse__each_word(void **state)
{
	(void)state;
	for (enum aw_setting setting = 0; setting < AW_SETTINGS; setting++) {
		char words[64] = "", *rest = words, *word;
		unsigned long value, expected = 0;

		if (!aw_setting_words(setting))
			continue;
		strncat(words, aw_setting_words(setting), sizeof(words) - 1);
		while ((word = strsep(&rest, " "))) {
			assert_int_equal(aw_setting_parse(setting, word, &value), AW_SETTING_RIGHT);
			assert_int_equal(value, expected++);
		}
		assert_in_range(expected, 2, 4);
	}
}

static void parse__number_in_its_bounds(void **state)
{
	unsigned long value = 1;

	(void)state;
	assert_int_equal(aw_setting_parse(AW_SETTING_PAIR_MS, "0", &value), AW_SETTING_RIGHT);
	assert_int_equal(value, 0);
	assert_int_equal(aw_setting_parse(AW_SETTING_PAIR_MS, "60000", &value), AW_SETTING_RIGHT);
	assert_int_equal(value, 60000);
	assert_int_equal(aw_setting_parse(AW_SETTING_PAIR_MS, "60001", &value), AW_SETTING_WRONG);
	assert_int_equal(value, 60000);
	assert_int_equal(aw_setting_parse(AW_SETTING_VARY, "4294967295", &value), AW_SETTING_RIGHT);
	assert_true(value == 4294967295u);
	assert_int_equal(aw_setting_parse(AW_SETTING_VARY, "4294967296", &value), AW_SETTING_WRONG);
}

static void parse__unset_or_empty(void **state)
{
	(void)state;
	for (enum aw_setting setting = 0; setting < AW_SETTINGS; setting++) {
		unsigned long value = 7;

		assert_int_equal(aw_setting_parse(setting, NULL, &value), AW_SETTING_UNSET);
		assert_int_equal(aw_setting_parse(setting, "", &value), AW_SETTING_UNSET);
		assert_int_equal(value, 7);
	}
}

static void parse__wrong(void **state)
{
	static const char *const texts[] = { "x",      " ",	  "On",
					     "on off", "auto on", "-1",
					     "5ms",    "0x10",	  "99999999999999999999" };

	(void)state;
	for (enum aw_setting setting = 0; setting < AW_SETTINGS; setting++)
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			unsigned long value = 7;

			assert_int_equal(aw_setting_parse(setting, texts[i], &value),
					 AW_SETTING_WRONG);
			assert_int_equal(value, 7);
		}
}

static void explain__names_the_variable_and_its_values(void **state)
{
	char why[AW_SETTING_WHY_MAX], text[200];

	(void)state;
	aw_setting_explain(AW_SETTING_LOG, "verbose", why);
	assert_string_equal(why, "ANYWARP_LOG is 'verbose': it must be error, warn, info or debug");
	aw_setting_explain(AW_SETTING_RECORD, "\033[2J", why);
	assert_string_equal(why, "ANYWARP_SOCKETS_RECORD is '?[2J': it must be on, off or tls");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	aw_setting_explain(AW_SETTING_PAIR_MS, text, why);
	assert_non_null(strstr(why, "xxx...': it must be a number from 0 to 60000"));
}

static void read__logs_a_wrong_value(void **state)
{
	unsigned long value = 7;

	(void)state;
	setenv("ANYWARP_HOST_PATH", "maybe", 1);
	assert_int_equal(aw_setting_read(AW_SETTING_HOST_PATH, "nothing connects", &value),
			 AW_SETTING_WRONG);
	assert_int_equal(value, 7);
	assert_non_null(strstr(logged, " error: ANYWARP_HOST_PATH is 'maybe': it must be auto, on "
				       "or off; nothing connects\n"));
	logged[0] = '\0';
	setenv("ANYWARP_HOST_PATH", "off", 1);
	assert_int_equal(aw_setting_read(AW_SETTING_HOST_PATH, "nothing connects", &value),
			 AW_SETTING_RIGHT);
	assert_int_equal(value, 2);
	assert_string_equal(logged, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__each_word),
		cmocka_unit_test(parse__number_in_its_bounds),
		cmocka_unit_test(parse__unset_or_empty),
		cmocka_unit_test(parse__wrong),
		cmocka_unit_test(explain__names_the_variable_and_its_values),
		cmocka_unit_test(read__logs_a_wrong_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
