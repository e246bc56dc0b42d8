// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of a UD datagram against the octets of docs/roce-ud.md, and the 40 octets before a
// receive against RFC 791 and RFC 8200.
#include "wire/ud.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum {
	MAGIC = 0,
	VERSION = 4,
	FLAGS = 5,
	SL = 6,
	ZERO = 7,
	DEST_QPN = 8,
	SRC_QPN = 12,
	IMM = 20,
};

static const uint8_t known[UD_HDR_LEN + 3] = {
	'a',  'w',  'D',  'S',	1,    3,    5,	  0, /* version, flags, sl, zero */
	0,    0x12, 0x34, 0x56, 0,    0x65, 0x43, 0x21, /* QPNs */
	0x01, 0x23, 0x45, 0x67, 0xde, 0xad, 0xbe, 0xef, /* Q_Key, immediate data */
	'x',  'y',  'z',
};

static void ud_parse__every_field(void **state)
{
	struct ud_hdr hdr;

	(void)state;
	assert_true(ud_parse(known, sizeof(known), &hdr));
	assert_int_equal(hdr.flags, UD_FLAG_IMM | UD_FLAG_SOLICITED);
	assert_int_equal(hdr.sl, 5);
	assert_int_equal(hdr.dest_qpn, 0x123456);
	assert_int_equal(hdr.src_qpn, 0x654321);
	assert_int_equal(hdr.qkey, 0x01234567);
	assert_int_equal(hdr.imm, 0xdeadbeef);
}

static void ud_build__is_what_is_parsed(void **state)
{
	uint8_t octets[UD_HDR_LEN];
	struct ud_hdr hdr;

	(void)state;
	assert_true(ud_parse(known, sizeof(known), &hdr));
	ud_build(&hdr, octets);
	assert_memory_equal(octets, known, sizeof(octets));
}

static void ud_build__no_immediate_is_zero(void **state)
{
	const struct ud_hdr hdr = { .imm = 7 };
	uint8_t octets[UD_HDR_LEN];

	(void)state;
	ud_build(&hdr, octets);
	assert_int_equal(octets[IMM + 3], 0);
}

static void ud_parse__length_at_the_bounds(void **state)
{
	static uint8_t datagram[UD_DATAGRAM_MAX + 1];
	struct ud_hdr hdr;

	(void)state;
	memcpy(datagram, known, UD_HDR_LEN);
	assert_false(ud_parse(datagram, 0, &hdr));
	assert_false(ud_parse(datagram, UD_HDR_LEN - 1, &hdr));
	assert_true(ud_parse(datagram, UD_HDR_LEN, &hdr));
	assert_true(ud_parse(datagram, UD_DATAGRAM_MAX, &hdr));
	assert_false(ud_parse(datagram, UD_DATAGRAM_MAX + 1, &hdr));
}

static void ud_parse__what_means_nothing(void **state)
{
	static const struct {
		int at;
		uint8_t value;
	} wrong[] = {
		{ MAGIC, 'b' },	   { MAGIC + 3, 's' },
		{ VERSION, 0 },	   { VERSION, 2 },
		{ FLAGS, 7 },	   { FLAGS, 0x83 },
		{ SL, 16 },	   { SL, 255 },
		{ ZERO, 1 },	   { DEST_QPN, 1 },
		{ SRC_QPN, 0x80 }, { FLAGS, 2 }, /* immediate data that are not there */
	};
	struct ud_hdr hdr;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t octets[sizeof(known)];

		memcpy(octets, known, sizeof(octets));
		octets[wrong[i].at] = wrong[i].value;
		assert_false(ud_parse(octets, sizeof(octets), &hdr));
	}
}

static void ud_addr__of_both_families(void **state)
{
	const uint8_t group4[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	const uint8_t host4[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
	const uint8_t beyond4[16] = { [10] = 0xff, 0xff, 240, 0, 0, 1 };
	const uint8_t group6[16] = { 0xff, 2, [15] = 1 };
	const uint8_t host6[16] = { 0x20, 1, 0x0d, 0xb8, [15] = 1 };

	(void)state;
	assert_true(gid_is_ipv4(group4) && ud_addr_is_multicast(group4));
	assert_true(gid_is_ipv4(host4) && !ud_addr_is_multicast(host4));
	assert_false(ud_addr_is_multicast(beyond4));
	assert_true(!gid_is_ipv4(group6) && ud_addr_is_multicast(group6));
	assert_true(!gid_is_ipv4(host6) && !ud_addr_is_multicast(host6));
}

static void ud_grh_build__ipv4(void **state)
{
	const struct ud_route route = {
		.src = { [10] = 0xff, 0xff, 192, 0, 2, 1 },
		.dst = { [10] = 0xff, 0xff, 192, 0, 2, 2 },
		.traffic_class = 0x28,
		.hop_limit = 64,
	};
	/* 20 + 8 + 24 + 100 octets; the checksum is worked out by hand. */
	static const uint8_t header[20] = { 0x45, 0x28, 0,   152, 0, 0, 0x40, 0, 64, 17,
					    0xb6, 0x29, 192, 0,	  2, 1, 192,  0, 2,  2 };
	static const uint8_t zeros[20];
	uint8_t grh[UD_GRH_LEN];

	(void)state;
	memset(grh, 0xaa, sizeof(grh));
	ud_grh_build(&route, 100, grh);
	assert_memory_equal(grh, zeros, 20);
	assert_memory_equal(grh + 20, header, 20);
}

static void ud_grh_build__ipv6(void **state)
{
	const struct ud_route route = {
		.src = { 0x20, 1, 0x0d, 0xb8, [15] = 1 },
		.dst = { 0x20, 1, 0x0d, 0xb8, [15] = 2 },
		.traffic_class = 0xab,
		.hop_limit = 3,
	};
	static const uint8_t begin[8] = { 0x6a, 0xb0, 0, 0, 0, 132, 17, 3 };
	uint8_t grh[UD_GRH_LEN];

	(void)state;
	ud_grh_build(&route, 100, grh);
	assert_memory_equal(grh, begin, sizeof(begin));
	assert_memory_equal(grh + 8, route.src, 16);
	assert_memory_equal(grh + 24, route.dst, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ud_parse__every_field),
		cmocka_unit_test(ud_build__is_what_is_parsed),
		cmocka_unit_test(ud_build__no_immediate_is_zero),
		cmocka_unit_test(ud_parse__length_at_the_bounds),
		cmocka_unit_test(ud_parse__what_means_nothing),
		cmocka_unit_test(ud_addr__of_both_families),
		cmocka_unit_test(ud_grh_build__ipv4),
		cmocka_unit_test(ud_grh_build__ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
