// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by ISA-L is that of the table, wherever the bytes lie and however they are cut.
#include "xsock/framed/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define MOST 20000u
#define INIT 0xffffffffu

static uint8_t bytes[MOST + 8];

static void fill(void)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static void crc__known_answer(void **state)
{
	(void)state;
	assert_int_equal(~aw_slot_crc(INIT, "123456789", 9), 0xe3069283u);
}

static void crc__is_the_tables(void **state)
{
	(void)state;
	fill();
	for (size_t len = 0; len <= MOST; len += len < 100 ? 1 : 1 + len / 9)
		for (size_t at = 0; at < 8; at++)
			assert_int_equal(aw_slot_crc(INIT, bytes + at, len),
					 aw_record_crc_portable(INIT, bytes + at, len));
}

static void crc__goes_on(void **state)
{
	uint32_t whole;

	(void)state;
	fill();
	whole = aw_slot_crc(INIT, bytes, MOST);
	for (size_t cut = 0; cut <= MOST; cut += 97)
		assert_int_equal(
			aw_slot_crc(aw_slot_crc(INIT, bytes, cut), bytes + cut, MOST - cut), whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc__known_answer),
		cmocka_unit_test(crc__is_the_tables),
		cmocka_unit_test(crc__goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
