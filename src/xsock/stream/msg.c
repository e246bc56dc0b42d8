// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Getters and putters at named offsets.
#include "xsock/stream/msg.h"

#include <string.h>

#define VERSION 1
#define FLAG_NET 1
#define FLAG_IOMAP 2
#define EXT_MAGIC 0x6177 /* "aw" */
#define OP_SHIFT 29

enum {
	HELLO_VERSION = 0,
	HELLO_FLAGS = 1,
	HELLO_CREDITS = 2,
	HELLO_EXT_MAGIC = 4,
	HELLO_EXT = 6,
	HELLO_IOMAPS = 7,
	HELLO_SGL = 8,
	HELLO_DATA = 24,

	SGE_ADDR = 0,
	SGE_KEY = 8,
	SGE_LEN = 12,

	IOMAP_OFFSET = 0,
	IOMAP_SGE = 8,
};

/* Writes value as n bytes; net: big-endian. */
static void put_number(uint8_t *bytes, size_t n, bool net, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		bytes[net ? n - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get_number(const uint8_t *bytes, size_t n, bool net)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)bytes[net ? n - 1 - i : i] << 8 * i;
	return value;
}

bool aw_xs_host_is_net(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

/* One byte expresses up to 128 entries exactly, or a multiple of 256. */
static uint8_t encode_iomaps(uint16_t n)
{
	return n <= 128 ? (uint8_t)n : (uint8_t)(128 | n >> 8);
}

static uint16_t decode_iomaps(uint8_t byte)
{
	return byte <= 128 ? byte : (uint16_t)((byte & 127) << 8);
}

uint16_t aw_xs_iomaps_round(uint16_t n)
{
	if (n > AW_XS_IOMAPS_MAX)
		return AW_XS_IOMAPS_MAX;
	return decode_iomaps(encode_iomaps(n));
}

void aw_xs_hello_put(uint8_t bytes[AW_XS_HELLO_LEN], const struct aw_xs_hello *hello)
{
	memset(bytes, 0, AW_XS_HELLO_LEN);
	bytes[HELLO_VERSION] = VERSION;
	bytes[HELLO_FLAGS] = (uint8_t)(FLAG_IOMAP | (hello->net ? FLAG_NET : 0));
	put_number(bytes + HELLO_CREDITS, 2, true, hello->credits);
	if (hello->anywarp) {
		put_number(bytes + HELLO_EXT_MAGIC, 2, true, EXT_MAGIC);
		bytes[HELLO_EXT] = hello->ext;
	}
	bytes[HELLO_IOMAPS] = encode_iomaps(hello->iomaps);
	aw_xs_sge_put(bytes + HELLO_SGL, true, &hello->sgl);
	aw_xs_sge_put(bytes + HELLO_DATA, true, &hello->data);
}

bool aw_xs_hello_get(const uint8_t *bytes, size_t len, struct aw_xs_hello *hello)
{
	if (len < AW_XS_HELLO_LEN || bytes[HELLO_VERSION] != VERSION)
		return false;
	hello->net = bytes[HELLO_FLAGS] & FLAG_NET;
	hello->credits = (uint16_t)get_number(bytes + HELLO_CREDITS, 2, true);
	hello->anywarp = get_number(bytes + HELLO_EXT_MAGIC, 2, true) == EXT_MAGIC;
	hello->ext = hello->anywarp ? bytes[HELLO_EXT] : 0;
	hello->iomaps = bytes[HELLO_FLAGS] & FLAG_IOMAP ? decode_iomaps(bytes[HELLO_IOMAPS]) : 0;
	aw_xs_sge_get(bytes + HELLO_SGL, true, &hello->sgl);
	aw_xs_sge_get(bytes + HELLO_DATA, true, &hello->data);
	return true;
}

void aw_xs_msg_put(uint8_t bytes[AW_XS_MSG_LEN], bool net, enum aw_xs_op op, uint32_t data)
{
	put_number(bytes, AW_XS_MSG_LEN, net, (uint32_t)op << OP_SHIFT | data);
}

void aw_xs_msg_get(const uint8_t bytes[AW_XS_MSG_LEN], bool net, uint32_t *op, uint32_t *data)
{
	uint32_t msg = (uint32_t)get_number(bytes, AW_XS_MSG_LEN, net);

	*op = msg >> OP_SHIFT;
	*data = msg & AW_XS_MSG_DATA_MAX;
}

void aw_xs_sge_put(uint8_t bytes[AW_XS_SGE_LEN], bool net, const struct aw_xs_sge *sge)
{
	put_number(bytes + SGE_ADDR, 8, net, sge->addr);
	put_number(bytes + SGE_KEY, 4, net, sge->key);
	put_number(bytes + SGE_LEN, 4, net, sge->len);
}

void aw_xs_sge_get(const uint8_t bytes[AW_XS_SGE_LEN], bool net, struct aw_xs_sge *sge)
{
	sge->addr = get_number(bytes + SGE_ADDR, 8, net);
	sge->key = (uint32_t)get_number(bytes + SGE_KEY, 4, net);
	sge->len = (uint32_t)get_number(bytes + SGE_LEN, 4, net);
}

void aw_xs_iomap_put(uint8_t bytes[AW_XS_IOMAP_LEN], bool net, const struct aw_xs_iomap *map)
{
	put_number(bytes + IOMAP_OFFSET, 8, net, map->offset);
	aw_xs_sge_put(bytes + IOMAP_SGE, net, &map->sge);
}

void aw_xs_iomap_get(const uint8_t bytes[AW_XS_IOMAP_LEN], bool net, struct aw_xs_iomap *map)
{
	map->offset = get_number(bytes + IOMAP_OFFSET, 8, net);
	aw_xs_sge_get(bytes + IOMAP_SGE, net, &map->sge);
}
