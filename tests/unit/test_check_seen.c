// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of what was reported.
#include "check/report/seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void find__once_for_a_key(void **state)
{
	struct aw_seen *first, *second;
	bool is_new;

	(void)state;
	first = aw_seen_find(AW_RULE_LEAK, 5, &is_new);
	assert_true(is_new);
	assert_int_equal(first->rule, AW_RULE_LEAK);
	second = aw_seen_find(AW_RULE_LEAK, 6, &is_new);
	assert_true(is_new);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(aw_seen_find(AW_RULE_LEAK, 5, &is_new), first);
	assert_false(is_new);
	assert_true(aw_seen_find(AW_RULE_LEAK, 0, &is_new));
	assert_true(is_new);
	aw_seen_find(AW_RULE_LEAK, 0, &is_new);
	assert_false(is_new);
}

/* A rule that is first broken when the table is full is still reported. */
static void find__at_the_bound(void **state)
{
	unsigned at = 0, count = 0;
	struct aw_seen *shared;
	bool is_new;

	(void)state;
	while (aw_seen_next(&at))
		count++;
	/* All keys want the same place. */
	for (uint64_t i = count; i < AW_SEEN_MAX; i++) {
		aw_seen_find(AW_RULE_OVERLAP, 100 + i, &is_new);
		assert_true(is_new);
	}
	shared = aw_seen_find(AW_RULE_OVERLAP, 7777, &is_new);
	assert_true(is_new);
	assert_ptr_equal(aw_seen_find(AW_RULE_OVERLAP, 8888, &is_new), shared);
	assert_false(is_new);
	aw_seen_find(AW_RULE_CQ_OVERRUN, 9999, &is_new);
	assert_true(is_new);
	aw_seen_find(AW_RULE_OVERLAP, 100 + AW_SEEN_MAX - 1, &is_new);
	assert_false(is_new);
	for (at = 0, count = 0; aw_seen_next(&at);)
		count++;
	assert_int_equal(count, AW_SEEN_MAX + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__once_for_a_key),
		cmocka_unit_test(find__at_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
