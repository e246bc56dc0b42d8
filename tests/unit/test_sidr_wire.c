// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service ID resolution against the octets of docs/roce-ud.md.
#include "wire/sidr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const uint8_t reply[] = {
	'a', 'w',  'S',	 'I',  1,    2,	   0,	 2, /* version, kind, status, pd_len */
	1,   2,	   3,	 4,    5,    6,	   7,	 8, /* id */
	0,   0x12, 0x34, 0x56, 0x01, 0x23, 0x45, 0x67, /* QPN, Q_Key */
	'h', 'i',
};

static void sidr_parse__reply(void **state)
{
	struct sidr_msg msg;

	(void)state;
	assert_true(sidr_parse(reply, sizeof(reply), &msg));
	assert_int_equal(msg.kind, SIDR_REPLY);
	assert_int_equal(msg.status, SIDR_SUCCESS);
	assert_int_equal(msg.id, 0x0102030405060708);
	assert_int_equal(msg.qpn, 0x123456);
	assert_int_equal(msg.qkey, 0x01234567);
	assert_int_equal(msg.pd_len, 2);
	assert_memory_equal(msg.pd, "hi", 2);
}

static void sidr_build__is_what_is_parsed(void **state)
{
	uint8_t octets[SIDR_MAX];
	struct sidr_msg msg;

	(void)state;
	assert_true(sidr_parse(reply, sizeof(reply), &msg));
	assert_int_equal(sidr_build(&msg, octets), sizeof(reply));
	assert_memory_equal(octets, reply, sizeof(reply));
}

static void sidr_build__most_private_data(void **state)
{
	static const uint8_t pd[SIDR_PD_MAX] = { [SIDR_PD_MAX - 1] = 9 };
	struct sidr_msg msg = { .kind = SIDR_REQUEST, .pd_len = SIDR_PD_MAX, .pd = pd };
	uint8_t octets[SIDR_MAX];

	(void)state;
	assert_int_equal(sidr_build(&msg, octets), SIDR_MAX);
	assert_true(sidr_parse(octets, SIDR_MAX, &msg));
	assert_int_equal(msg.pd[SIDR_PD_MAX - 1], 9);
}

static void sidr_parse__what_means_nothing(void **state)
{
	static const struct {
		int at;
		uint8_t value;
	} wrong[] = {
		{ 0, 'b' }, { 4, 2 }, { 5, 0 }, { 5, 3 }, { 5, 1 }, { 7, 1 }, { 7, 3 }, { 16, 1 },
	};
	struct sidr_msg msg;

	(void)state;
	for (size_t len = 0; len < sizeof(reply); len++)
		assert_false(sidr_parse(reply, len, &msg));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t octets[sizeof(reply)];

		memcpy(octets, reply, sizeof(octets));
		octets[wrong[i].at] = wrong[i].value;
		assert_false(sidr_parse(octets, sizeof(octets), &msg));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sidr_parse__reply),
		cmocka_unit_test(sidr_build__is_what_is_parsed),
		cmocka_unit_test(sidr_build__most_private_data),
		cmocka_unit_test(sidr_parse__what_means_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
