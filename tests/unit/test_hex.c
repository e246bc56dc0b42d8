// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes become digits and bytes again.
#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void hex__every_byte(void **state)
{
	unsigned char bytes[256], back[256];
	char text[2 * 256 + 1];

	(void)state;
	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	aw_hex_write(text, bytes, sizeof(bytes));
	assert_int_equal(strlen(text), 2 * sizeof(bytes));
	assert_memory_equal(text + 2 * 0x9a, "9a9b", 4);
	assert_true(aw_hex_read(text, back, sizeof(back)));
	assert_memory_equal(back, bytes, sizeof(bytes));
}

static void hex__stops_at_another_character(void **state)
{
	unsigned char bytes[2];

	(void)state;
	assert_false(aw_hex_read("", bytes, 1));
	assert_false(aw_hex_read("1", bytes, 1));
	assert_false(aw_hex_read("12", bytes, 2));
	assert_false(aw_hex_read("12 4", bytes, 2));
	assert_false(aw_hex_read("0g", bytes, 1));
	assert_true(aw_hex_read("", bytes, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex__every_byte),
		cmocka_unit_test(hex__stops_at_another_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
