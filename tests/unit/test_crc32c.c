// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The check values of RFC 3720 B.4, and the table against the polynomial bit by bit.
#include "wire/crc32c.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t crc(const void *data, size_t len)
{
	return crc32c_final(crc32c_update(CRC32C_INIT, data, len));
}

/* What put_le32() sends must be these four octets. */
static void assert_on_wire(const uint8_t *data, size_t len, uint32_t octets_be)
{
	uint8_t wire[4];

	put_le32(wire, crc(data, len));
	assert_int_equal(get_be32(wire), octets_be);
}

static uint32_t crc_bit_by_bit(uint32_t reg, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len * 8; i++) {
		uint32_t bit = (reg ^ data[i / 8] >> i % 8) & 1;

		reg = reg >> 1 ^ (bit ? 0x82f63b78 : 0);
	}
	return reg;
}

static void crc32c_update__rfc3720_check_values(void **state)
{
	uint8_t data[32];
	static const uint8_t read_pdu[48] = {
		0x01, 0xc0, 0, 0, [16] = 0x14, [22] = 4, [27] = 0x14, [31] = 0x18, 0x28, [40] = 2
	};

	(void)state;
	for (int i = 0; i < 32; i++)
		data[i] = 0;
	assert_on_wire(data, 32, 0xaa36918a);
	for (int i = 0; i < 32; i++)
		data[i] = 0xff;
	assert_on_wire(data, 32, 0x43aba862);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)i;
	assert_on_wire(data, 32, 0x4e79dd46);
	for (int i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	assert_on_wire(data, 32, 0x5cdb3f11);
	assert_on_wire(read_pdu, 48, 0x563a96d9);
}

static void crc32c_update__ascii_digits(void **state)
{
	(void)state;
	assert_int_equal(crc("123456789", 9), 0xe3069283);
}

static void crc32c_update__nothing(void **state)
{
	(void)state;
	assert_int_equal(crc32c_update(0x12345678, "", 0), 0x12345678);
}

static void crc32c_update__equals_the_polynomial(void **state)
{
	uint8_t data[300];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i * 7 + 3 * i + 1);
	for (size_t start = 0; start < 8; start++)
		for (size_t len = 0; len <= sizeof(data) - start; len++)
			assert_int_equal(crc32c_update(CRC32C_INIT, data + start, len),
					 crc_bit_by_bit(CRC32C_INIT, data + start, len));
}

/* Every octet value at every place of the eight-octet step, so every table entry is used. */
static void crc32c_update__every_table_entry(void **state)
{
	(void)state;
	for (size_t place = 0; place < 8; place++) {
		for (int value = 0; value < 256; value++) {
			uint8_t data[8] = { 0 };

			data[place] = (uint8_t)value;
			assert_int_equal(crc32c_update(0, data, 8), crc_bit_by_bit(0, data, 8));
		}
	}
}

static void crc32c_update__in_two_pieces(void **state)
{
	uint8_t data[64];
	uint32_t whole;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	whole = crc32c_update(CRC32C_INIT, data, sizeof(data));
	for (size_t cut = 0; cut <= sizeof(data); cut++) {
		uint32_t reg = crc32c_update(CRC32C_INIT, data, cut);

		assert_int_equal(crc32c_update(reg, data + cut, sizeof(data) - cut), whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_update__rfc3720_check_values),
		cmocka_unit_test(crc32c_update__ascii_digits),
		cmocka_unit_test(crc32c_update__nothing),
		cmocka_unit_test(crc32c_update__equals_the_polynomial),
		cmocka_unit_test(crc32c_update__every_table_entry),
		cmocka_unit_test(crc32c_update__in_two_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
