// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of ANYWARP_CHECK, and what a process makes of the variable.
#include "check/base/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void parse__absent_list_is_the_defaults(void **state)
{
	static const char *const texts[] = { NULL, "" };
	struct aw_check_settings settings;
	char why[AW_CHECK_WHY_MAX];

	(void)state;
	for (int i = 0; i < 2; i++) {
		memset(&settings, 0xff, sizeof(settings));
		assert_true(aw_check_settings_parse(texts[i], &settings, why));
		assert_int_equal(settings.rules.len, 0);
		assert_int_equal(settings.suppress.len, 0);
		assert_int_equal(settings.like.len, 0);
		assert_true(settings.explain_on);
		assert_false(settings.halt_on);
		assert_false(settings.vary_on);
		assert_int_equal(settings.exit_status, 66);
	}
}

static void parse__every_key(void **state)
{
	struct aw_check_settings settings;
	char why[AW_CHECK_WHY_MAX];

	(void)state;
	assert_true(aw_check_settings_parse(
		"rules=leak+overlap,explain=off,halt=on,exit=255,suppress=/a=b,vary=4294967295,like=mlx5",
		&settings, why));
	assert_true(aw_slice_equals(settings.rules, "leak+overlap"));
	assert_true(aw_slice_equals(settings.suppress, "/a=b"));
	assert_true(aw_slice_equals(settings.like, "mlx5"));
	assert_false(settings.explain_on);
	assert_true(settings.halt_on);
	assert_true(settings.vary_on);
	assert_true(settings.vary_seed == 4294967295ul);
	assert_int_equal(settings.exit_status, 255);
}

static void parse__an_error_names_position_and_what_is_right(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "halt=yes", "at 1: 'halt=yes': halt must be on or off" },
		{ "halt=on,explain=", "at 9: 'explain=': explain must be on or off" },
		{ "halt=on,", NULL }, /* what follows the last comma is nothing */
		{ ",halt=on", "at 1: '': no such key: the keys are rules, explain" },
		{ "exit=256", "at 1: 'exit=256': exit must be a number from 0 to 255" },
		{ "exit=-1", "exit must be a number from 0 to 255" },
		{ "vary=4294967296", "vary must be a seed, a number from 0 to 4294967295" },
		{ "vary", "at 1: 'vary': vary must be a seed" },
		{ "rules=", "rules must be all, none, or names" },
		{ "like=", "like must be the name of an adapter" },
		{ "suppress=", "suppress must be the path of a file" },
		{ "halt=on,rule=leak", "at 9: 'rule=leak': no such key" },
		{ "halt=on,halt=off", "at 9: 'halt=off': the key stands in the list twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct aw_check_settings settings = { .exit_status = 7 };
		char why[AW_CHECK_WHY_MAX] = "";
		bool is_right = aw_check_settings_parse(wrong[i].text, &settings, why);

		assert_int_equal(is_right, wrong[i].why == NULL);
		if (!wrong[i].why)
			continue;
		assert_int_equal(settings.exit_status, 7);
		if (!strstr(why, wrong[i].why))
			fail_msg("%s: %s", wrong[i].text, why);
	}
}

static void settings__are_a_copy_and_tell_positions(void **state)
{
	char *text = getenv("ANYWARP_CHECK");

	(void)state;
	assert_int_equal(aw_check_settings()->exit_status, 3);
	memset(text, 'x', strlen(text));
	assert_true(aw_slice_equals(aw_check_settings()->rules, "leak"));
	assert_int_equal(aw_check_settings_position(aw_check_settings()->rules),
			 strlen("exit=3,rules=") + 1);
}

/* The library reads its settings before main. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__absent_list_is_the_defaults),
		cmocka_unit_test(parse__every_key),
		cmocka_unit_test(parse__an_error_names_position_and_what_is_right),
		cmocka_unit_test(settings__are_a_copy_and_tell_positions),
	};

	if (argc == 1) {
		char *again[] = { argv[0], (char *)"again", NULL };

		setenv("ANYWARP_CHECK", "exit=3,rules=leak", 1);
		execv("/proc/self/exe", again);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
