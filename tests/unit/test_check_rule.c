// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The texts of the rules, and lists of their names.
#include "check/report/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/report/wanted.h"

#include <stdio.h>
#include <string.h>

static void texts__are_complete(void **state)
{
	(void)state;
	for (int i = 0; i < AW_RULES; i++) {
		const struct aw_rule_text *text = &aw_rule_texts[i];

		assert_non_null(text->name);
		assert_true(text->name[0] && strspn(text->name, "abcdefghijklmnopqrstuvwxyz-") ==
						     strlen(text->name));
		assert_in_range(text->class, i ? aw_rule_texts[i - 1].class : 1, 10);
		assert_true(text->title[0] && text->reference[0] && text->remedy[0]);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(text->name, aw_rule_texts[j].name);
	}
}

/* The command writes titles, references and remedies into JSON as they are. A report puts a full stop behind each. */
static void texts__need_no_escapes(void **state)
{
	(void)state;
	for (int i = 0; i < AW_RULES; i++) {
		const char *const texts[] = { aw_rule_texts[i].title, aw_rule_texts[i].reference,
					      aw_rule_texts[i].remedy };

		for (int j = 0; j < 3; j++) {
			for (const char *at = texts[j]; *at; at++)
				assert_true(*at >= ' ' && *at < 0x7f && *at != '"' && *at != '\\');
			assert_int_not_equal(texts[j][strlen(texts[j]) - 1], '.');
		}
	}
}

static void parse__all_and_none(void **state)
{
	struct aw_slice wrong;
	uint64_t set = 7;

	(void)state;
	assert_true(aw_wanted_parse(aw_slice_of(""), &set, &wrong));
	assert_true(set == AW_WANTED_ALL);
	assert_true(aw_wanted_parse(aw_slice_of("none"), &set, &wrong));
	assert_true(set == 0);
	assert_true(aw_wanted_parse(aw_slice_of("all"), &set, &wrong));
	for (int i = 0; i < AW_RULES; i++)
		assert_true(aw_wanted_has(set, (enum aw_rule)i));
}

static void parse__names(void **state)
{
	struct aw_slice wrong;
	uint64_t set;

	(void)state;
	assert_true(aw_wanted_parse(aw_slice_of("leak+overlap+leak"), &set, &wrong));
	for (int i = 0; i < AW_RULES; i++)
		assert_int_equal(aw_wanted_has(set, (enum aw_rule)i),
				 i == AW_RULE_LEAK || i == AW_RULE_OVERLAP);
}

static void parse__wrong_name_is_told(void **state)
{
	static const char *const lists[][2] = { { "leak+leek", "leek" }, { "leak+", "" },
						{ "+leak", "" },	 { "all+leak", "all" },
						{ "Leak", "Leak" },	 { "leak++overlap", "" } };

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct aw_slice wrong = { NULL, 0 };
		uint64_t set = 7;

		assert_false(aw_wanted_parse(aw_slice_of(lists[i][0]), &set, &wrong));
		assert_true(aw_slice_equals(wrong, lists[i][1]));
		assert_true(set == 7);
	}
}

static void names__of_all_rules_with_a_bound(void **state)
{
	char text[1024], brief[20];

	(void)state;
	aw_wanted_names(text, sizeof(text));
	assert_non_null(strstr(text, "source-changed sink-written "));
	assert_string_equal(text + strlen(text) - strlen(" destroyed-in-use"), " destroyed-in-use");
	assert_true(strlen(text) < 640); /* NAMES_MAX of those that print them */
	aw_wanted_names(brief, sizeof(brief));
	assert_string_equal(brief, "source-changed sink");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts__are_complete),
		cmocka_unit_test(texts__need_no_escapes),
		cmocka_unit_test(parse__all_and_none),
		cmocka_unit_test(parse__names),
		cmocka_unit_test(parse__wrong_name_is_told),
		cmocka_unit_test(names__of_all_rules_with_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
