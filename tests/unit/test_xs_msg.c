// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The octets of rsockets' protocol, as its design guide and rdma-core's peers have them.
#include "xsock/stream/msg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* rdma-core's on a little-endian machine: 384 credits, two entries, half of 128 KiB. */
static const uint8_t rdma_core[AW_XS_HELLO_LEN] = {
	1,    2,    0x01, 0x80, 0,    0,    0,	  0, /* version, IOMAP, credits, reserved */
	0x00, 0x00, 0x7f, 0x01, 0x02, 0x03, 0x04, 0x05, /* SGL: address */
	0x00, 0x00, 0xa1, 0xa2, 0x00, 0x00, 0x00, 0x02, /* key, entries */
	0x00, 0x00, 0x7f, 0x11, 0x12, 0x13, 0x14, 0x15, /* buffer: address */
	0x00, 0x00, 0xb1, 0xb2, 0x00, 0x01, 0x00, 0x00, /* key, octets */
};

static void hello_get__rdma_core(void **state)
{
	struct aw_xs_hello hello;

	(void)state;
	assert_true(aw_xs_hello_get(rdma_core, sizeof(rdma_core), &hello));
	assert_false(hello.net);
	assert_false(hello.anywarp);
	assert_int_equal(hello.ext, 0);
	assert_int_equal(hello.credits, 384);
	assert_int_equal(hello.iomaps, 0);
	assert_int_equal(hello.sgl.addr, 0x7f0102030405);
	assert_int_equal(hello.sgl.key, 0xa1a2);
	assert_int_equal(hello.sgl.len, 2);
	assert_int_equal(hello.data.addr, 0x7f1112131415);
	assert_int_equal(hello.data.key, 0xb1b2);
	assert_int_equal(hello.data.len, 65536);
}

static void hello_get__too_short_or_another_version(void **state)
{
	uint8_t octets[AW_XS_HELLO_LEN];
	struct aw_xs_hello hello;

	(void)state;
	assert_false(aw_xs_hello_get(rdma_core, AW_XS_HELLO_LEN - 1, &hello));
	assert_false(aw_xs_hello_get(rdma_core, 0, &hello));
	memcpy(octets, rdma_core, sizeof(octets));
	octets[0] = 2;
	assert_false(aw_xs_hello_get(octets, sizeof(octets), &hello));
}

static void hello_get__iomaps_only_with_their_flag(void **state)
{
	uint8_t octets[AW_XS_HELLO_LEN];
	struct aw_xs_hello hello;

	(void)state;
	memcpy(octets, rdma_core, sizeof(octets));
	octets[7] = 130; /* 2 times 256 */
	assert_true(aw_xs_hello_get(octets, sizeof(octets), &hello));
	assert_int_equal(hello.iomaps, 512);
	octets[7] = 128;
	assert_true(aw_xs_hello_get(octets, sizeof(octets), &hello));
	assert_int_equal(hello.iomaps, 128);
	octets[1] = 1;
	assert_true(aw_xs_hello_get(octets, sizeof(octets), &hello));
	assert_int_equal(hello.iomaps, 0);
	assert_true(hello.net);
}

static void hello_put__as_rdma_core_but_for_what_it_reserves(void **state)
{
	const struct aw_xs_hello hello = {
		.credits = 384,
		.sgl = { 0x7f0102030405, 0xa1a2, 2 },
		.data = { 0x7f1112131415, 0xb1b2, 65536 },
	};
	struct aw_xs_hello ours = hello, back;
	uint8_t octets[AW_XS_HELLO_LEN];

	(void)state;
	aw_xs_hello_put(octets, &hello);
	assert_memory_equal(octets, rdma_core, sizeof(octets));
	ours.anywarp = true;
	ours.ext = AW_XS_EXT_URGENT;
	aw_xs_hello_put(octets, &ours);
	assert_memory_equal(octets, rdma_core, 4);
	assert_memory_equal(octets + 7, rdma_core + 7, AW_XS_HELLO_LEN - 7);
	assert_true(aw_xs_hello_get(octets, sizeof(octets), &back));
	assert_true(back.anywarp);
	assert_int_equal(back.ext, AW_XS_EXT_URGENT);
}

static void iomaps_round__to_what_an_octet_tells(void **state)
{
	static const uint16_t cases[][2] = {
		{ 0, 0 },     { 1, 1 },	    { 128, 128 },     { 129, 128 },	{ 255, 128 },
		{ 256, 256 }, { 700, 512 }, { 32512, 32512 }, { 32513, 32512 }, { 65535, 32512 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(aw_xs_iomaps_round(cases[i][0]), cases[i][1]);
}

static void msg_put__three_bits_and_29(void **state)
{
	uint8_t octets[AW_XS_MSG_LEN];
	uint32_t op, data;

	(void)state;
	aw_xs_msg_put(octets, true, AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN);
	assert_memory_equal(octets, "\xe0\x00\x00\x02", 4);
	aw_xs_msg_put(octets, false, AW_XS_OP_CREDIT, 0x1234);
	assert_memory_equal(octets, "\x34\x12\x00\x80", 4);
	aw_xs_msg_put(octets, false, AW_XS_OP_DATA, AW_XS_MSG_DATA_MAX);
	aw_xs_msg_get(octets, false, &op, &data);
	assert_int_equal(op, AW_XS_OP_DATA);
	assert_int_equal(data, AW_XS_MSG_DATA_MAX);
}

static void iomap_put__either_order(void **state)
{
	const struct aw_xs_iomap map = { 0x0102030405060708,
					 { 0x1112131415161718, 0xa1a2a3a4, 0xb1b2b3b4 } };
	uint8_t octets[AW_XS_IOMAP_LEN];
	struct aw_xs_iomap back;

	(void)state;
	aw_xs_iomap_put(octets, true, &map);
	assert_memory_equal(octets,
			    "\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18"
			    "\xa1\xa2\xa3\xa4\xb1\xb2\xb3\xb4",
			    AW_XS_IOMAP_LEN);
	aw_xs_iomap_put(octets, false, &map);
	assert_memory_equal(octets,
			    "\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11"
			    "\xa4\xa3\xa2\xa1\xb4\xb3\xb2\xb1",
			    AW_XS_IOMAP_LEN);
	aw_xs_iomap_get(octets, false, &back);
	assert_memory_equal(&back, &map, sizeof(map));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_put__as_rdma_core_but_for_what_it_reserves),
		cmocka_unit_test(hello_get__rdma_core),
		cmocka_unit_test(hello_get__too_short_or_another_version),
		cmocka_unit_test(hello_get__iomaps_only_with_their_flag),
		cmocka_unit_test(iomaps_round__to_what_an_octet_tells),
		cmocka_unit_test(msg_put__three_bits_and_29),
		cmocka_unit_test(iomap_put__either_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
