// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The CRC of any string, cut anywhere, equals the polynomial applied bit by bit.
#include "prop/prop.h"

#include "wire/crc32c.h"

static uint32_t bit_by_bit(uint32_t reg, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		reg ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			reg = reg >> 1 ^ (reg & 1 ? 0x82f63b78 : 0);
	}
	return reg;
}

void prop_run(struct bytes *b)
{
	uint32_t reg = bytes_u32(b);
	uint16_t cut = bytes_u16(b);
	size_t len;
	uint8_t *data = bytes_rest(b, SIZE_MAX, &len);
	uint32_t whole = crc32c_update(reg, data, len);
	size_t at = cut % (len + 1);

	PROP(whole == bit_by_bit(reg, data, len));
	PROP(crc32c_update(crc32c_update(reg, data, at), data + at, len - at) == whole);
	free(data);
}
