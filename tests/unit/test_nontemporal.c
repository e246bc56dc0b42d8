// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The copy past the cache is memcpy's: for every alignment of both ends, and not a byte beyond them.
#include "net/mem/nontemporal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
	LINE = 64,
	LEN_MAX = 4 * LINE,
	AROUND = LINE,
	SIZE = AROUND + LINE + LEN_MAX + AROUND,
	FILLER = 0xa5,
};

static _Alignas(LINE) uint8_t from[SIZE], to[SIZE], expected[SIZE];

static void compare(size_t dst, size_t src, size_t len)
{
	memset(to, FILLER, SIZE);
	memset(expected, FILLER, SIZE);
	memcpy(expected + AROUND + dst, from + src, len);
	aw_nontemporal_copy(to + AROUND + dst, from + src, len);
	assert_memory_equal(to, expected, SIZE);
}

static void nontemporal__as_memcpy(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (size_t dst = 0; dst < LINE; dst++)
		for (size_t len = 0; len <= LEN_MAX; len++)
			compare(dst, (dst * 5 + len) % LINE, len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nontemporal__as_memcpy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
