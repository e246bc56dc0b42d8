// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private data of connections between two QPs of the roce persona, octet by octet.
#include "wire/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* docs/roce-persona.md: QP 0x123456 at ::ffff:192.0.2.1, in its third RTR, calls QP 0xabcdef. */
static const uint8_t octets[PAIR_LEN] = {
	'a',  'w',  'R', 'C', 1, 0, 0, 1, 0, 0, 0, 3, 0,    0x12, 0x34, 0x56, 0, 0xab,
	0xcd, 0xef, 0,	 0,   0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192,	0,    2, 1,
};

static const struct pair value = {
	.incarnation = 3,
	.src_qpn = 0x123456,
	.dst_qpn = 0xabcdef,
	.keeps = true,
	.src_gid = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
};

static void pair_put__as_documented(void **state)
{
	uint8_t p[PAIR_LEN];

	(void)state;
	memset(p, 0x55, sizeof(p));
	pair_put(&value, p);
	assert_memory_equal(p, octets, sizeof(p));
}

static void pair_get__as_documented(void **state)
{
	struct pair pair;

	(void)state;
	assert_true(pair_get(octets, sizeof(octets), &pair));
	assert_int_equal(pair.answer, PAIR_OK);
	assert_int_equal(pair.type, PAIR_RC);
	assert_int_equal(pair.incarnation, 3);
	assert_int_equal(pair.src_qpn, 0x123456);
	assert_int_equal(pair.dst_qpn, 0xabcdef);
	assert_memory_equal(pair.src_gid, value.src_gid, GID_LEN);
	assert_true(pair.keeps);
}

static void pair_get__more_octets_are_a_later_version_s(void **state)
{
	uint8_t p[PAIR_LEN + 1] = { 0 };
	struct pair pair;

	(void)state;
	memcpy(p, octets, sizeof(octets));
	p[7] = 0xfe; /* abilities of a later version */
	assert_true(pair_get(p, sizeof(p), &pair));
	assert_false(pair.keeps);
}

static void refused(size_t at, uint8_t octet)
{
	uint8_t p[PAIR_LEN];
	struct pair pair;

	memcpy(p, octets, sizeof(p));
	p[at] = octet;
	assert_false(pair_get(p, sizeof(p), &pair));
}

static void pair_get__refuses_what_it_does_not_know(void **state)
{
	struct pair pair;

	(void)state;
	assert_false(pair_get(octets, PAIR_LEN - 1, &pair));
	assert_false(pair_get(octets, 0, &pair));
	refused(0, 'b');
	refused(3, 'c');
	refused(4, 0);
	refused(4, 2);
	refused(5, PAIR_OTHER_TYPE + 1);
	refused(12, 1); /* a QPN has 24 bits */
	refused(16, 1);
}

static void pair_put__every_answer_comes_back(void **state)
{
	(void)state;
	for (int answer = PAIR_OK; answer <= PAIR_OTHER_TYPE; answer++) {
		struct pair pair = value;
		uint8_t p[PAIR_LEN];

		pair.answer = (enum pair_answer)answer;
		pair_put(&pair, p);
		memset(&pair, 0, sizeof(pair));
		assert_true(pair_get(p, sizeof(p), &pair));
		assert_int_equal(pair.answer, answer);
	}
}

/* Of an XRC initiator alone, and one of an earlier version waits for ever. */
static void pair_put__every_rnr_retry_comes_back(void **state)
{
	struct pair pair = value;
	uint8_t p[PAIR_LEN];

	(void)state;
	pair_put(&pair, p);
	p[6] = PAIR_XRC_INITIATOR;
	assert_true(pair_get(p, sizeof(p), &pair));
	assert_int_equal(pair.rnr_retry, PAIR_RNR_RETRY_ENDLESS);
	for (uint8_t retry = 0; retry <= PAIR_RNR_RETRY_ENDLESS; retry++) {
		pair = value;
		pair.type = PAIR_XRC_INITIATOR;
		pair.rnr_retry = retry;
		pair_put(&pair, p);
		memset(&pair, 0, sizeof(pair));
		assert_true(pair_get(p, sizeof(p), &pair));
		assert_int_equal(pair.rnr_retry, retry);
		assert_true(pair.keeps);
	}
	assert_int_equal(p[7], 0x01);
	p[6] = PAIR_XRC_TARGET;
	p[7] = 0x0f;
	assert_true(pair_get(p, sizeof(p), &pair));
	assert_int_equal(pair.rnr_retry, 0);
}

/* One of a later version is no error: no QP here is of that type. */
static void pair_put__every_type_comes_back(void **state)
{
	(void)state;
	for (int type = 0; type <= UINT8_MAX; type++) {
		struct pair pair = value;
		uint8_t p[PAIR_LEN];

		pair.type = (uint8_t)type;
		pair_put(&pair, p);
		assert_int_equal(p[6], type);
		memset(&pair, 0, sizeof(pair));
		assert_true(pair_get(p, sizeof(p), &pair));
		assert_int_equal(pair.type, type);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair_put__as_documented),
		cmocka_unit_test(pair_get__as_documented),
		cmocka_unit_test(pair_get__more_octets_are_a_later_version_s),
		cmocka_unit_test(pair_get__refuses_what_it_does_not_know),
		cmocka_unit_test(pair_put__every_answer_comes_back),
		cmocka_unit_test(pair_put__every_rnr_retry_comes_back),
		cmocka_unit_test(pair_put__every_type_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
