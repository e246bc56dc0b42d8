// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The permutation of the STags' indexes.
#include "../lib/emulated.h"
#include "core/stag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct aw_stag_secret secret = {
	{ { 0x0123456789abcdef, 0xfedcba9876543210 },
	  { 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9 },
	  { 0x94d049bb133111eb, 0x2545f4914f6cdd1d },
	  { 0xd6e8feb86659fd93, 0xa0761d6478bd642f } },
};

static void aw_stag_scramble__is_a_permutation(void **state)
{
	bool *seen = calloc(AW_STAG_INDEX_MAX + 1, sizeof(*seen));
	uint32_t step = is_emulated() ? 61 : 1; /* all sixteen million take minutes there */

	(void)state;
	assert_non_null(seen);
	/* cmocka's assertions are calls, which would take most of the time: they are made where there is one to fail. */
	for (uint32_t index = 0; index <= AW_STAG_INDEX_MAX; index += step) {
		uint32_t scrambled = aw_stag_scramble(&secret, index);

		if (scrambled > AW_STAG_INDEX_MAX || seen[scrambled] ||
		    aw_stag_unscramble(&secret, scrambled) != index)
			fail_msg("index %u is scrambled to %u", index, scrambled);
		seen[scrambled] = true;
	}
	free(seen);
}

/* What a peer would try: the neighbours of one that it knows. */
static void aw_stag_scramble__leaves_no_neighbours(void **state)
{
	unsigned int near = 0;

	(void)state;
	for (uint32_t index = 0; index < 10000; index++) {
		uint32_t one = aw_stag_scramble(&secret, index);
		uint32_t next = aw_stag_scramble(&secret, index + 1);

		near += (one > next ? one - next : next - one) < 256;
	}
	assert_true(near < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_stag_scramble__is_a_permutation),
		cmocka_unit_test(aw_stag_scramble__leaves_no_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
