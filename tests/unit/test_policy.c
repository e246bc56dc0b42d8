// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ANYWARP_MPA: what each word means, and that every wrong word is named with what would be right.
#include "net/base/policy.h"

#include "wire/mpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct aw_policy parsed(const char *list)
{
	struct aw_policy policy;
	char why[AW_POLICY_WHY_MAX] = "";

	if (!aw_policy_parse(list, &policy, why))
		fail_msg("%s: %s", list, why);
	return policy;
}

/* The error of list says all of the words; the policy is untouched. */
static void refused(const char *list, const char *item, const char *cause)
{
	struct aw_policy policy, before;
	char why[AW_POLICY_WHY_MAX] = "";

	memset(&policy, 0xa5, sizeof(policy));
	before = policy;
	assert_false(aw_policy_parse(list, &policy, why));
	assert_memory_equal(&policy, &before, sizeof(policy));
	if (!strstr(why, item) || !strstr(why, cause))
		fail_msg("'%s' gives: %s", list, why);
}

static void aw_policy_parse__nothing_is_the_default(void **state)
{
	struct aw_policy policy = parsed(NULL);

	(void)state;
	assert_true(aw_policy_is_default(&policy));
	policy = parsed("");
	assert_true(aw_policy_is_default(&policy));
	assert_int_equal(policy.revision, 2);
	assert_false(policy.markers);
	assert_true(policy.crc && !policy.crc_given);
	assert_true(policy.p2p);
	assert_int_equal(policy.rtr, MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ);
	assert_true(policy.extensions);
	assert_int_equal(policy.large_fpdus, AW_LARGE_AGREED);
	assert_false(policy.ird_ord_ulp);
}

static void aw_policy_parse__each_key(void **state)
{
	struct aw_policy policy;

	(void)state;
	policy = parsed("markers=on");
	assert_true(policy.markers && !aw_policy_is_default(&policy));
	policy = parsed("crc=on");
	assert_true(policy.crc && policy.crc_given);
	policy = parsed("crc=off");
	assert_true(!policy.crc && !policy.crc_given && !aw_policy_is_default(&policy));
	policy = parsed("revision=1");
	assert_true(policy.revision == 1 && !aw_policy_is_default(&policy));
	policy = parsed("p2p=off");
	assert_true(!policy.p2p && !aw_policy_is_default(&policy));
	policy = parsed("rtr=read");
	assert_true(policy.rtr == MPA_RTR_READ && !aw_policy_is_default(&policy));
	policy = parsed("extensions=off");
	assert_true(!policy.extensions && !aw_policy_is_default(&policy));
	policy = parsed("large_fpdus=off");
	assert_true(policy.large_fpdus == AW_LARGE_OFF && !aw_policy_is_default(&policy));
	policy = parsed("large_fpdus=any");
	assert_true(policy.large_fpdus == AW_LARGE_ANY && !aw_policy_is_default(&policy));
	policy = parsed("ird_ord=ulp");
	assert_true(policy.ird_ord_ulp && !aw_policy_is_default(&policy));
}

static void aw_policy_parse__every_set_of_rtrs(void **state)
{
	(void)state;
	assert_int_equal(parsed("rtr=send").rtr, MPA_RTR_SEND);
	assert_int_equal(parsed("rtr=write").rtr, MPA_RTR_WRITE);
	assert_int_equal(parsed("rtr=write+send").rtr, MPA_RTR_SEND | MPA_RTR_WRITE);
	assert_int_equal(parsed("rtr=send+read").rtr, MPA_RTR_SEND | MPA_RTR_READ);
	assert_int_equal(parsed("rtr=send+write+read").rtr,
			 MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ);
}

static void aw_policy_parse__words_that_repeat_the_default(void **state)
{
	struct aw_policy policy = parsed("markers=off,crc=on,revision=2,p2p=on,"
					 "rtr=read+write+send,extensions=on,ird_ord=auto,"
					 "large_fpdus=on");

	(void)state;
	assert_true(aw_policy_is_default(&policy));
}

static void aw_policy_parse__unknown_key(void **state)
{
	(void)state;
	refused("marker=on", "'marker=on'", "allowed are markers, crc, revision, p2p, rtr,");
	refused("crc=on,Markers=on", "'Markers=on'", "no such key");
	refused("=on", "'=on'", "no such key");
	refused(" crc=on", "' crc=on'", "no such key");
}

static void aw_policy_parse__wrong_value(void **state)
{
	(void)state;
	refused("markers=yes", "'markers=yes'", "must be on or off");
	refused("crc=", "'crc='", "must be on or off");
	refused("crc", "'crc'", "must be on or off");
	refused("crc=on+off", "'crc=on+off'", "must be on or off");
	refused("revision=3", "'revision=3'", "must be 1 or 2");
	refused("revision=0", "'revision=0'", "must be 1 or 2");
	refused("p2p=1", "'p2p=1'", "must be on or off");
	refused("ird_ord=none", "'ird_ord=none'", "must be auto or ulp");
	refused("extensions=o", "'extensions=o'", "must be on or off");
	refused("crc=on=off", "'crc=on=off'", "must be on or off");
}

static void aw_policy_parse__wrong_rtrs(void **state)
{
	(void)state;
	refused("rtr=", "'rtr='", "send, write, read");
	refused("rtr=atomic", "'rtr=atomic'", "send, write, read");
	refused("rtr=send+", "'rtr=send+'", "send, write, read");
	refused("rtr=+send", "'rtr=+send'", "send, write, read");
	refused("rtr=send++read", "'rtr=send++read'", "send, write, read");
	refused("rtr=send+send", "'rtr=send+send'", "send, write, read");
}

static void aw_policy_parse__empty_items(void **state)
{
	(void)state;
	refused(",", "''", "no such key");
	refused("crc=on,", "''", "no such key");
	refused(",crc=on", "''", "no such key");
	refused("crc=on,,p2p=on", "''", "no such key");
}

static void aw_policy_parse__given_twice(void **state)
{
	(void)state;
	refused("crc=on,p2p=on,crc=on", "'crc=on'", "crc is given twice");
}

static void aw_policy_parse__revision_1_has_nothing_enhanced(void **state)
{
	(void)state;
	refused("revision=1,p2p=on", "'p2p'", "needs revision=2");
	refused("extensions=on,revision=1", "'extensions'", "needs revision=2");
	refused("rtr=send,revision=1", "'rtr'", "needs revision=2");
	assert_int_equal(parsed("revision=1,p2p=off,extensions=off,ird_ord=ulp").revision, 1);
}

/* What a terminal would obey, or is long, is not repeated. */
static void aw_policy_parse__hostile_text(void **state)
{
	char long_list[1000];

	(void)state;
	refused("crc\033[2J=on", "'crc?[2J=on'", "no such key");
	memset(long_list, 'x', sizeof(long_list));
	long_list[sizeof(long_list) - 1] = '\0';
	refused(long_list, "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'",
		"large_fpdus, each as key=value");
}

static void printed(const char *list, const char *all)
{
	struct aw_policy policy = parsed(list);
	char text[AW_POLICY_TEXT_MAX];

	aw_policy_print(&policy, text);
	assert_string_equal(text, all);
}

static void aw_policy_print__says_all(void **state)
{
	(void)state;
	printed("", "markers=off,crc=on,revision=2,p2p=on,rtr=send+write+read,extensions=on,"
		    "ird_ord=auto,large_fpdus=on");
	printed("rtr=read,crc=off,markers=on,ird_ord=ulp,extensions=off,large_fpdus=off,p2p=off",
		"markers=on,crc=off,revision=2,p2p=off,rtr=read,extensions=off,ird_ord=ulp,"
		"large_fpdus=off");
	printed("revision=1", "markers=off,crc=on,revision=1,ird_ord=auto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_policy_parse__nothing_is_the_default),
		cmocka_unit_test(aw_policy_parse__each_key),
		cmocka_unit_test(aw_policy_parse__every_set_of_rtrs),
		cmocka_unit_test(aw_policy_parse__words_that_repeat_the_default),
		cmocka_unit_test(aw_policy_parse__unknown_key),
		cmocka_unit_test(aw_policy_parse__wrong_value),
		cmocka_unit_test(aw_policy_parse__wrong_rtrs),
		cmocka_unit_test(aw_policy_parse__empty_items),
		cmocka_unit_test(aw_policy_parse__given_twice),
		cmocka_unit_test(aw_policy_parse__revision_1_has_nothing_enhanced),
		cmocka_unit_test(aw_policy_parse__hostile_text),
		cmocka_unit_test(aw_policy_print__says_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
