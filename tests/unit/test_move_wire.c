// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of a move, to the octet; and what is none of them.
#include "wire/ddp.h"
#include "wire/move.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define LEN_MAX (MOVE_HDR_LEN + MOVE_DATA_MAX)
#define UNTOUCHED 0x77

static const struct kind {
	enum move_kind kind;
	size_t len; /* of the whole ULPDU */
} kinds[] = {
	{ MOVE_HELLO, 30 },
	{ MOVE_VERDICT, 18 },
	{ MOVE_LAST, 2 },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct move_msg message(enum move_kind kind)
{
	struct move_msg msg = { .kind = kind };

	for (uint8_t i = 0; i < MOVE_DATA_MAX; i++)
		msg.data[i] = i + 1;
	return msg;
}

static void move_put__each_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		const struct move_msg msg = message(kinds[i].kind);
		uint8_t wire[LEN_MAX + 1];

		memset(wire, UNTOUCHED, sizeof(wire));
		assert_int_equal(move_data_len(kinds[i].kind), kinds[i].len - MOVE_HDR_LEN);
		assert_int_equal(move_put(&msg, wire), kinds[i].len);
		assert_int_equal(wire[0], 0);
		assert_int_equal(wire[1], i + 1);
		assert_memory_equal(wire + 2, msg.data, kinds[i].len - 2);
		assert_int_equal(wire[kinds[i].len], UNTOUCHED);
	}
}

static void move_get__each_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		const struct move_msg sent = message(kinds[i].kind);
		struct move_msg msg;
		uint8_t wire[LEN_MAX];

		memset(&msg, UNTOUCHED, sizeof(msg));
		assert_true(move_get(wire, move_put(&sent, wire), &msg));
		assert_int_equal(msg.kind, sent.kind);
		assert_memory_equal(msg.data, sent.data, move_data_len(sent.kind));
	}
}

static void assert_no_message(const uint8_t *wire, size_t len)
{
	struct move_msg msg, untouched;

	memset(&msg, UNTOUCHED, sizeof(msg));
	untouched = msg;
	assert_false(move_get(wire, len, &msg));
	assert_memory_equal(&msg, &untouched, sizeof(msg));
}

static void move_get__every_other_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		const struct move_msg sent = message(kinds[i].kind);
		uint8_t wire[2 * LEN_MAX] = { 0 };

		move_put(&sent, wire);
		for (size_t len = 0; len < sizeof(wire); len++)
			if (len != kinds[i].len)
				assert_no_message(wire, len);
	}
}

static void move_get__every_other_kind(void **state)
{
	uint8_t wire[LEN_MAX] = { 0 };

	(void)state;
	for (unsigned int kind = 0; kind <= UINT8_MAX; kind++) {
		wire[1] = (uint8_t)kind;
		for (size_t i = 0; i < KINDS; i++)
			if (kinds[i].kind != kind)
				assert_no_message(wire, kinds[i].len);
	}
}

/* A first octet with any bit in it is a DDP segment's, or wrong there, too. */
static void move_get__every_other_first_octet(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		const struct move_msg sent = message(kinds[i].kind);
		uint8_t wire[LEN_MAX];

		move_put(&sent, wire);
		for (unsigned int first = 1; first <= UINT8_MAX; first++) {
			wire[0] = (uint8_t)first;
			assert_no_message(wire, kinds[i].len);
		}
	}
}

/* A peer that knows none of them refuses each. */
static void move_put__is_no_segment(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		const struct move_msg msg = message(kinds[i].kind);
		struct ddp_hdr hdr;
		uint8_t wire[LEN_MAX];

		assert_int_not_equal(ddp_get(wire, move_put(&msg, wire), &hdr), AW_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(move_put__each_kind),
		cmocka_unit_test(move_get__each_kind),
		cmocka_unit_test(move_get__every_other_length),
		cmocka_unit_test(move_get__every_other_kind),
		cmocka_unit_test(move_get__every_other_first_octet),
		cmocka_unit_test(move_put__is_no_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
