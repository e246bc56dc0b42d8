// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/verbs.h>

enum {
	GIDS = 4,
	PORT = 1
};

static const union ibv_gid gids[GIDS] = {
	{ .raw = { 0xfe, 0x80, [15] = 1 } }, // on the link of interface 10
	{ .raw = { [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7 } },
	{ .raw = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 } },
	{ .raw = { 0xfe, 0x80, [15] = 1 } }, // and of 13
};

// The port's GID table, in place of the device.
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	(void)context;
	(void)flags;
	(void)size;
	if (port_num != PORT || index >= GIDS)
		return EINVAL;
	*entry = (struct ibv_gid_entry){ .gid = gids[index], .ndev_ifindex = 10 + index };
	return 0;
}

static struct ibv_ah_attr created;

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	static struct ibv_ah ah;

	(void)pd;
	created = *attr;
	return &ah;
}

static struct ibv_grh ipv6_header(const union ibv_gid *from, const union ibv_gid *to)
{
	struct ibv_grh grh = { .version_tclass_flow = htonl(6u << 28 | 0x5au << 20 | 0xabcde) };

	grh.sgid = *from;
	grh.dgid = *to;
	return grh;
}

static struct ibv_grh ipv4_header(void)
{
	static const uint8_t header[20] = { [0] = 0x45, [1] = 0x28, [8] = 61, [12] = 192, [14] = 2,
					    [15] = 5,	[16] = 192, [18] = 2, [19] = 7 };
	struct ibv_grh grh;

	memset(&grh, 0, sizeof(grh));
	memcpy((uint8_t *)&grh + 20, header, sizeof(header));
	return grh;
}

static void init_ah_from_wc__without_grh_is_local(void **state)
{
	struct ibv_wc wc = { .slid = 0x1234, .sl = 3, .dlid_path_bits = 5 };
	struct ibv_ah_attr attr;

	(void)state;
	memset(&attr, 0xff, sizeof(attr));
	assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, NULL, &attr), 0);
	assert_int_equal(attr.dlid, 0x1234);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.src_path_bits, 5);
	assert_int_equal(attr.port_num, PORT);
	assert_int_equal(attr.is_global, 0);
}

static void init_ah_from_wc__ipv6(void **state)
{
	static const union ibv_gid sender = { .raw = { 0x20, 0x01, [15] = 0x42 } };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = ipv6_header(&sender, &gids[2]);
	struct ibv_ah_attr attr;

	(void)state;
	assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, &grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(&attr.grh.dgid, &sender, sizeof(sender));
	assert_int_equal(attr.grh.sgid_index, 2);
	assert_int_equal(attr.grh.flow_label, 0xabcde);
	assert_int_equal(attr.grh.traffic_class, 0x5a);
	assert_int_equal(attr.grh.hop_limit, 0xff);
}

// The link that the work completion tells; where it tells none, the first.
static void init_ah_from_wc__equal_addresses_of_two_links(void **state)
{
	static const union ibv_gid sender = { .raw = { 0xfe, 0x80, [15] = 2 } };
	static const uint32_t told[][2] = { { 10, 0 }, { 13, 3 }, { 0, 0 }, { 77, 0 } };
	struct ibv_grh grh = ipv6_header(&sender, &gids[0]);
	struct ibv_ah_attr attr;

	(void)state;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .vendor_err = told[i][0] };

		assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, &grh, &attr), 0);
		assert_int_equal(attr.grh.sgid_index, told[i][1]);
	}
}

static void init_ah_from_wc__ipv4(void **state)
{
	static const union ibv_gid sender = {
		.raw = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 5 }
	};
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = ipv4_header();
	struct ibv_ah_attr attr;

	(void)state;
	assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, &grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &sender, sizeof(sender));
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.traffic_class, 0x28);
	assert_int_equal(attr.grh.hop_limit, 61);
}

static void init_ah_from_wc__unknown_receiver_fails(void **state)
{
	static const union ibv_gid stranger = { .raw = { 0x20, 0x02 } };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = ipv6_header(&gids[0], &stranger);
	struct ibv_ah_attr attr;

	(void)state;
	assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, &grh, &attr), -1);
}

static void init_ah_from_wc__neither_header_fails(void **state)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	struct ibv_grh grh;

	(void)state;
	memset(&grh, 0, sizeof(grh));
	errno = 0;
	assert_int_equal(ibv_init_ah_from_wc(NULL, PORT, &wc, &grh, &attr), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

static void create_ah_from_wc__uses_the_attributes(void **state)
{
	struct ibv_pd pd = { .context = NULL };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh good = ipv4_header();
	struct ibv_grh bad;

	(void)state;
	memset(&bad, 0, sizeof(bad));
	assert_non_null(ibv_create_ah_from_wc(&pd, &wc, &good, PORT));
	assert_int_equal(created.grh.sgid_index, 1);
	assert_null(ibv_create_ah_from_wc(&pd, &wc, &bad, PORT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_ah_from_wc__without_grh_is_local),
		cmocka_unit_test(init_ah_from_wc__ipv6),
		cmocka_unit_test(init_ah_from_wc__equal_addresses_of_two_links),
		cmocka_unit_test(init_ah_from_wc__ipv4),
		cmocka_unit_test(init_ah_from_wc__unknown_receiver_fails),
		cmocka_unit_test(init_ah_from_wc__neither_header_fails),
		cmocka_unit_test(create_ah_from_wc__uses_the_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
