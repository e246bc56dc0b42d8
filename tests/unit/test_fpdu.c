// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDU sizes, markers and the CRC over both, against RFC 5044's figures and by brute force.
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* The sizes the other way round: one octet at a time. */
static size_t marked_size_by_count(uint32_t pos, size_t n)
{
	size_t size = 0;

	while (n > 0) {
		size_t step = (pos + size) % 512 == 0 ? 4 : 1;

		n -= step == 1;
		size += step;
	}
	return size;
}

static void assert_crc(const uint8_t *fpdu, size_t size)
{
	uint32_t crc = crc32c_final(crc32c_update(CRC32C_INIT, fpdu, size - FPDU_CRC_LEN));

	assert_int_equal(get_le32(fpdu + size - FPDU_CRC_LEN), crc);
}

static void fpdu_pad__makes_whole_words(void **state)
{
	(void)state;
	assert_int_equal(fpdu_pad(0), 2);
	assert_int_equal(fpdu_pad(1), 1);
	assert_int_equal(fpdu_pad(2), 0);
	assert_int_equal(fpdu_pad(3), 3);
	for (size_t len = 0; len <= FPDU_ULPDU_MAX; len++) {
		assert_in_range(fpdu_pad(len), 0, 3);
		assert_int_equal(fpdu_size(len) % 4, 0);
	}
}

static void fpdu_size__limits(void **state)
{
	(void)state;
	assert_int_equal(fpdu_size(0), 8);
	assert_int_equal(fpdu_size(42), 48);
	assert_int_equal(fpdu_size(FPDU_ULPDU_MAX), 65544);
}

static void fpdu_max__is_the_worst_case(void **state)
{
	size_t worst = 0;

	(void)state;
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		size_t size = fpdu_marked_size(pos, fpdu_size(FPDU_ULPDU_MAX));

		assert_int_equal(size, marked_size_by_count(pos, fpdu_size(FPDU_ULPDU_MAX)));
		worst = size > worst ? size : worst;
	}
	assert_int_equal(worst, FPDU_MAX);
}

/* RFC 5044 4.2: FPDUPTR has 16 bits. The longest marked ULPDU keeps to them, no longer one does. */
static void fpdu_ulpdu_marked_max__is_exact(void **state)
{
	size_t size = fpdu_size(FPDU_ULPDU_MARKED_MAX);
	size_t furthest = 0;
	size_t furthest_beyond = 0;

	(void)state;
	for (size_t first = 4; first < 512; first += 4) {
		for (size_t k = 0; first + 508 * k < size + 4; k++) {
			if (first + 508 * k < size && first + 512 * k > furthest)
				furthest = first + 512 * k;
			if (first + 512 * k > furthest_beyond)
				furthest_beyond = first + 512 * k;
		}
	}
	assert_in_range(furthest, 0, 0xffff);
	assert_true(furthest_beyond > 0xffff);
}

static void fpdu_marked_size__by_count(void **state)
{
	(void)state;
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		for (size_t n = 0; n < 1600; n++)
			assert_int_equal(fpdu_marked_size(pos, n), marked_size_by_count(pos, n));
	}
}

static void fpdu_marked_size__position_wraps(void **state)
{
	(void)state;
	assert_int_equal(fpdu_marked_size(0xfffffffc, 4), 4);
	assert_int_equal(fpdu_marked_size(0xfffffffc, 5), 9);
	assert_int_equal(fpdu_marked_size(0xfffffe00, 508), 512);
	assert_int_equal(fpdu_marked_size(0xfffffe00, 509), 517);
}

static size_t worst_size(size_t ulpdu_len, int markers_on)
{
	size_t worst = 0;

	for (uint32_t pos = 0; pos < 512; pos += 4) {
		size_t size = fpdu_marked_size(pos, fpdu_size(ulpdu_len));

		worst = size > worst ? size : worst;
	}
	return markers_on ? worst : fpdu_size(ulpdu_len);
}

static void fpdu_mulpdu__fits_and_next_does_not(void **state)
{
	(void)state;
	for (size_t emss = 150; emss < 70000; emss += emss < 2200 ? 1 : 61) {
		size_t plain = fpdu_mulpdu(emss, 0);
		size_t marked = fpdu_mulpdu(emss, 1);

		assert_true(worst_size(plain, 0) <= emss);
		assert_true(worst_size(marked, 1) <= emss);
		if (plain < FPDU_MULPDU_MAX)
			assert_true(worst_size(plain + 1, 0) > emss);
		if (marked < FPDU_MULPDU_MAX && emss % 4 == 0)
			assert_true(worst_size(marked + 1, 1) > emss);
	}
}

static void fpdu_mulpdu__rfc5044_formula(void **state)
{
	(void)state;
	assert_int_equal(fpdu_mulpdu(1460, 0), 1454);
	assert_int_equal(fpdu_mulpdu(1460, 1), 1442);
	assert_int_equal(fpdu_mulpdu(1449, 0), 1442);
	assert_int_equal(fpdu_mulpdu(8948, 1), 8948 - 6 - 4 * 18);
}

static void fpdu_mulpdu__bounds(void **state)
{
	(void)state;
	assert_int_equal(fpdu_mulpdu(0, 0), 128);
	assert_int_equal(fpdu_mulpdu(0, 1), 128);
	assert_int_equal(fpdu_mulpdu(136, 0), 130);
	assert_int_equal(fpdu_mulpdu(133, 0), 128);
	/* RFC 5044 3: not all that the length field could say. */
	assert_int_equal(fpdu_mulpdu(64774, 0), 64768 - 2);
	assert_int_equal(fpdu_mulpdu(64776, 0), 64768);
	assert_int_equal(fpdu_mulpdu(SIZE_MAX, 0), 64768);
	assert_int_equal(fpdu_mulpdu(SIZE_MAX, 1), 64768);
}

/* The ULPDU of RFC 5044's figures 5 and 6: a Send of 24 zero octets. */
static void put_figure_fpdu(uint8_t *p, uint8_t msn, uint32_t crc_octets)
{
	memset(p, 0, 48);
	p[1] = 0x2a;
	p[2] = 0x41;
	p[3] = 0x43;
	p[15] = msn;
	put_be32(p + 44, crc_octets);
}

static void fpdu_insert_markers__rfc5044_figure_5(void **state)
{
	uint8_t fpdu[48], wire[52];

	(void)state;
	put_figure_fpdu(fpdu, 1, 0x52239983);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 48, 0), 52);
	assert_int_equal(fpdu_len_at(0), 4);
	assert_int_equal(get_be32(wire), 0);
	assert_memory_equal(wire + 4, fpdu, 48);
	assert_crc(wire, 52);
}

static void fpdu_insert_markers__rfc5044_figure_6(void **state)
{
	uint8_t fpdu[48], wire[52];

	(void)state;
	put_figure_fpdu(fpdu, 2, 0x84925898);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 48, 0x1ec), 52);
	assert_int_equal(fpdu_len_at(0x1ec), 0);
	assert_int_equal(get_be32(wire + 20), 0x14);
	assert_memory_equal(wire, fpdu, 20);
	assert_memory_equal(wire + 24, fpdu + 20, 28);
	assert_crc(wire, 52);
}

/* A Send of 16 octets as Linux's siw sends it. */
static void crc__siw_frame(void **state)
{
	static const uint8_t fpdu[] = {
		0x00, 0x22, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x56, 0x09, 0x3c, 0x0e, 0x93, 0x70,
		0xf5, 0x55, 0x89, 0x00, 0x00, 0x00, 0x00, 0x40, 0x22, 0xe6, 0x22, 0x25
	};

	(void)state;
	assert_int_equal(sizeof(fpdu), fpdu_size(0x22));
	assert_crc(fpdu, sizeof(fpdu));
}

static void fpdu_insert_markers__between_pad_and_crc(void **state)
{
	uint8_t fpdu[48], wire[52];

	(void)state;
	put_figure_fpdu(fpdu, 2, 0xaabbccdd);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 48, 512 - 44), 52);
	assert_int_equal(get_be32(wire + 44), 44);
	assert_int_equal(get_be32(wire + 48), 0xaabbccdd);
}

static void fpdu_insert_markers__due_behind_the_crc_is_the_next_ones(void **state)
{
	uint8_t fpdu[48], wire[52];

	(void)state;
	put_figure_fpdu(fpdu, 2, 0xaabbccdd);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 48, 512 - 48), 48);
	assert_memory_equal(wire, fpdu, 48);
}

static void fpdu_insert_markers__empty_ulpdu(void **state)
{
	static const uint8_t fpdu[8] = { 0, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd };
	static const uint8_t before[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd };
	static const uint8_t inside[12] = { 0, 0, 0, 0, 0, 0, 0, 4, 0xaa, 0xbb, 0xcc, 0xdd };
	uint8_t wire[12];

	(void)state;
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 8, 1024), 12);
	assert_memory_equal(wire, before, 12);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 8, 508), 12);
	assert_memory_equal(wire, inside, 12);
	assert_int_equal(fpdu_insert_markers(wire, fpdu, 0, 0), 0);
}

/* All of an FPDU's markers point at the same place, its length field. */
static void fpdu_insert_markers__several(void **state)
{
	static uint8_t fpdu[1200], wire[1212];

	(void)state;
	memset(fpdu, 0xee, sizeof(fpdu));
	assert_int_equal(fpdu_insert_markers(wire, fpdu, sizeof(fpdu), 512), sizeof(wire));
	assert_int_equal(get_be32(wire), 0);
	assert_int_equal(get_be32(wire + 512), 508);
	assert_int_equal(get_be32(wire + 1024), 1020);
}

static void fpdu_remove_markers__largest_fpdu(void **state)
{
	size_t n = fpdu_size(FPDU_ULPDU_MARKED_MAX);
	uint8_t *fpdu = malloc(n);
	uint8_t *wire = malloc(FPDU_MAX);

	(void)state;
	for (size_t i = 0; i < n; i++)
		fpdu[i] = (uint8_t)(i >> 8 ^ i);
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		size_t size = fpdu_insert_markers(wire, fpdu, n, pos);
		int bad = -1;

		assert_int_equal(size, fpdu_marked_size(pos, n));
		assert_int_equal(fpdu_remove_markers(wire, size, pos, &bad), n);
		assert_int_equal(bad, 0);
		assert_memory_equal(wire, fpdu, n);
	}
	free(wire);
	free(fpdu);
}

static int removed_is_bad(const uint8_t *marked, uint32_t marker)
{
	uint8_t wire[52];
	int bad;

	memcpy(wire, marked, 52);
	put_be32(wire + 20, marker);
	assert_int_equal(fpdu_remove_markers(wire, 52, 0x1ec, &bad), 48);
	return bad;
}

/* Figure 6 with other markers: reserved bits and the low two bits are ignored. */
static void fpdu_remove_markers__wrong_fpduptr(void **state)
{
	uint8_t fpdu[48], wire[52];

	(void)state;
	put_figure_fpdu(fpdu, 2, 0);
	fpdu_insert_markers(wire, fpdu, 48, 0x1ec);
	assert_false(removed_is_bad(wire, 0x14));
	assert_false(removed_is_bad(wire, 0xffff0014));
	assert_false(removed_is_bad(wire, 0x17));
	assert_true(removed_is_bad(wire, 0x10));
	assert_true(removed_is_bad(wire, 0x18));
	assert_true(removed_is_bad(wire, 0));
	assert_true(removed_is_bad(wire, 0x8014));
}

static void fpdu_remove_markers__first_must_be_zero(void **state)
{
	uint8_t wire[12] = { 0, 0, 0, 4 };
	int bad;

	(void)state;
	assert_int_equal(fpdu_remove_markers(wire, 12, 0, &bad), 8);
	assert_true(bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fpdu_pad__makes_whole_words),
		cmocka_unit_test(fpdu_size__limits),
		cmocka_unit_test(fpdu_max__is_the_worst_case),
		cmocka_unit_test(fpdu_ulpdu_marked_max__is_exact),
		cmocka_unit_test(fpdu_marked_size__by_count),
		cmocka_unit_test(fpdu_marked_size__position_wraps),
		cmocka_unit_test(fpdu_mulpdu__fits_and_next_does_not),
		cmocka_unit_test(fpdu_mulpdu__rfc5044_formula),
		cmocka_unit_test(fpdu_mulpdu__bounds),
		cmocka_unit_test(fpdu_insert_markers__rfc5044_figure_5),
		cmocka_unit_test(fpdu_insert_markers__rfc5044_figure_6),
		cmocka_unit_test(crc__siw_frame),
		cmocka_unit_test(fpdu_insert_markers__between_pad_and_crc),
		cmocka_unit_test(fpdu_insert_markers__due_behind_the_crc_is_the_next_ones),
		cmocka_unit_test(fpdu_insert_markers__empty_ulpdu),
		cmocka_unit_test(fpdu_insert_markers__several),
		cmocka_unit_test(fpdu_remove_markers__largest_fpdu),
		cmocka_unit_test(fpdu_remove_markers__wrong_fpduptr),
		cmocka_unit_test(fpdu_remove_markers__first_must_be_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
