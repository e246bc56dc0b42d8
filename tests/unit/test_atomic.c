// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an atomic operation makes of 64 bits, against RFC 7306's own pseudocode.
#include "core/atomic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* RFC 7306 5.1.1, bit for bit. */
static uint64_t fetch_add_of_rfc(uint64_t original, uint64_t add_data, uint64_t add_mask)
{
	uint64_t value = 0, carry = 0;

	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t sum = carry + (original >> bit & 1) + (add_data >> bit & 1);

		value |= (sum & 1) << bit;
		carry = sum >> 1 && !(add_mask >> bit & 1);
	}
	return value;
}

static uint64_t fetch_add(uint64_t old, uint64_t add, uint64_t mask)
{
	const struct rdmap_atomic_req req = { .op = RDMAP_FETCH_ADD,
					      .add_swap_data = add,
					      .add_swap_mask = mask };

	return aw_atomic_next(&req, old);
}

/* xorshift64: every mask, as good as. */
static uint64_t draw(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void aw_atomic_next__fetch_add(void **state)
{
	(void)state;
	assert_int_equal(fetch_add(40, 2, 0), 42);
	assert_int_equal(fetch_add(UINT64_MAX, 1, 0), 0);
	assert_int_equal(fetch_add(5, 0, 0), 5);
	assert_int_equal(fetch_add(5, UINT64_MAX, 0), 4);
	/* Two fields of 32 bits: no carry from the lower into the upper. */
	assert_int_equal(fetch_add(0x00000001ffffffff, 0x0000000100000001, 0x8000000080000000),
			 0x0000000200000000);
	/* 64 fields of one bit. */
	assert_int_equal(fetch_add(0xf0f0, 0xffff, UINT64_MAX), 0x0f0f);
}

static void aw_atomic_next__fetch_add_as_the_rfc(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	(void)state;
	for (unsigned int i = 0; i < 10000; i++) {
		uint64_t old = draw(&seed), add = draw(&seed), mask = draw(&seed);

		if (i % 2)
			mask &= draw(&seed) & draw(&seed);
		assert_int_equal(fetch_add(old, add, mask), fetch_add_of_rfc(old, add, mask));
	}
}

/* RFC 7306 5.1.2. */
static void aw_atomic_next__cmp_swap(void **state)
{
	static const struct {
		uint64_t compare, compare_mask, swap, swap_mask, next;
	} cases[] = {
		{ 0x1122, UINT64_MAX, 0x99, UINT64_MAX, 0x99 },
		{ 0x1123, UINT64_MAX, 0x99, UINT64_MAX, 0x1122 },
		{ 0xff22, 0x00ff, 0x99, UINT64_MAX, 0x99 },
		{ 0xff23, 0x00ff, 0x99, UINT64_MAX, 0x1122 },
		{ 0x1122, UINT64_MAX, 0x9988, 0xff00, 0x9922 },
		{ 0x1122, UINT64_MAX, 0x9988, 0, 0x1122 },
		{ 7, 0, 0x9988, UINT64_MAX, 0x9988 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rdmap_atomic_req req = {
			.op = RDMAP_CMP_SWAP,
			.add_swap_data = cases[i].swap,
			.add_swap_mask = cases[i].swap_mask,
			.compare_data = cases[i].compare,
			.compare_mask = cases[i].compare_mask,
		};

		assert_int_equal(aw_atomic_next(&req, 0x1122), cases[i].next);
	}
}

/* Not a number but octets: they stand in memory as they came, whatever this host's order is. */
static void aw_atomic_next__write(void **state)
{
	static const uint8_t octets[AW_ATOMIC_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const struct rdmap_atomic_req req = {
		.op = RDMAP_ATOMIC_WRITE,
		.add_swap_data = aw_atomic_write_data(octets),
	};
	uint64_t next = aw_atomic_next(&req, UINT64_MAX);

	(void)state;
	assert_int_equal(req.add_swap_data, 0x0102030405060708);
	assert_memory_equal(&next, octets, sizeof(octets));
	assert_int_equal(aw_atomic_right(&req), AW_ACCESS_REMOTE_WRITE);
}

/* RFC 7306 figure 5: two of sixteen; and the Atomic Write. */
static void aw_atomic_known__operations(void **state)
{
	(void)state;
	for (uint8_t op = 0; op < 16; op++) {
		const struct rdmap_atomic_req req = { .op = op };

		assert_int_equal(aw_atomic_known(&req), op == 0 || op == 2 || op == 15);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_atomic_next__fetch_add),
		cmocka_unit_test(aw_atomic_next__fetch_add_as_the_rfc),
		cmocka_unit_test(aw_atomic_next__cmp_swap),
		cmocka_unit_test(aw_atomic_next__write),
		cmocka_unit_test(aw_atomic_known__operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
