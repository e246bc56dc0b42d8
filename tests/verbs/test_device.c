// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device, its attributes, port, GID and P_Key tables.
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Headers before rdma-core 60 do not declare it. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

static void get_device_list__one_rnic(void **state)
{
	int count = 7;
	struct ibv_device **list = ibv_get_device_list(&count);

	(void)state;
	assert_int_equal(count, 1);
	assert_null(list[1]);
	assert_string_equal(ibv_get_device_name(list[0]), "anywarp0");
	assert_int_equal(list[0]->node_type, IBV_NODE_RNIC);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_get_device_index(list[0]), -1);
	assert_true(ibv_get_device_guid(list[0]) != 0);
	ibv_free_device_list(list);
}

static void open_device__twice_gives_two_contexts(void **state)
{
	struct ibv_context *a = device_open(), *b = device_open();

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_int_not_equal(a->async_fd, b->async_fd);
	assert_true(fcntl(a->async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(a->num_comp_vectors >= 1);
	assert_int_equal(ibv_close_device(a), 0);
	assert_int_equal(ibv_close_device(b), 0);
}

static void close_device__before_its_objects(void **state)
{
	struct ibv_context *context = device_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	(void)state;
	assert_non_null(pd);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void query_device__limits_of_the_promise(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	assert_true(attr.max_qp >= 65536);
	assert_true(attr.max_qp_wr >= 16384);
	assert_true(attr.max_sge >= 30);
	assert_true(attr.max_sge_rd >= 30);
	assert_true(attr.max_srq_wr >= 16384);
	assert_true(attr.max_mr_size == UINT64_MAX);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_GLOB);
	assert_int_equal(attr.max_mw, 65536);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_false(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	assert_true(attr.fw_ver[0]);
	assert_true(attr.node_guid == ibv_get_device_guid(f->context->device));
}

static void query_device_ex__same_as_query_device(void **state)
{
	struct fixture *f = *state;
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	memset(&ex, 0xff, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal(ex.phys_port_cnt_ex, 1);
	assert_int_equal(ex.tm_caps.max_num_tags, 0);
	assert_true(ex.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(ex.hca_core_clock, 1000000);
	assert_int_equal(ex.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(ex.cq_mod_caps.max_cq_period, UINT16_MAX);
	assert_int_equal(ibv_query_device_ex(f->context, &input, &ex), EINVAL);
}

static void query_port__active_ethernet(void **state)
{
	struct fixture *f = *state;
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(f->context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= attr.max_mtu);
	assert_true(attr.gid_tbl_len >= 1);
	assert_true(attr.max_msg_sz >= 0x80000000u);
	assert_int_equal(ibv_query_port(f->context, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(f->context, 2, &attr), EINVAL);
}

/* Four lanes of 25 Gb/s are no slower than memcpy. */
static void query_port__faster_than_a_copy(void **state)
{
	struct fixture *f = *state;
	struct ibv_port_attr attr;
	uint64_t speed = 0;

	assert_int_equal(ibv_query_port(f->context, 1, &attr), 0);
	assert_int_equal(attr.active_width, 2);
	assert_int_equal(attr.active_speed, 32);
	assert_int_equal(ibv_query_port_speed(f->context, 1, &speed), 0);
	assert_int_equal(speed, 1000);
}

/* The exported function is for programs whose struct ended where port_cap_flags2 begins. */
static void query_port__old_function_writes_48_octets(void **state)
{
	struct fixture *f = *state;
	union {
		struct ibv_port_attr attr;
		uint8_t octets[64];
	} u;

	memset(&u, 0xa5, sizeof(u));
	assert_int_equal((ibv_query_port)(f->context, 1, (struct _compat_ibv_port_attr *)&u), 0);
	assert_int_equal(u.attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(u.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	for (size_t i = 48; i < sizeof(u); i++)
		assert_int_equal(u.octets[i], 0xa5);
}

static void query_gid__every_index_of_the_table(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry entries[256];
	struct ibv_port_attr attr;
	union ibv_gid gid;
	ssize_t count = ibv_query_gid_table(f->context, entries, 256, 0);

	assert_true(count >= 1);
	assert_int_equal(ibv_query_port(f->context, 1, &attr), 0);
	assert_int_equal(attr.gid_tbl_len, count);
	for (int i = 0; i < count; i++) {
		struct ibv_gid_entry entry;

		assert_int_equal(ibv_query_gid(f->context, 1, i, &gid), 0);
		assert_memory_equal(&gid, &entries[i].gid, sizeof(gid));
		assert_int_equal(ibv_query_gid_ex(f->context, 1, (uint32_t)i, &entry, 0), 0);
		assert_memory_equal(&entry, &entries[i], sizeof(entry));
		assert_int_equal(entry.gid_index, i);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_IB);
		assert_true(entry.ndev_ifindex != 0);
	}
	assert_int_equal(ibv_query_gid(f->context, 1, (int)count, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(f->context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(f->context, 2, 0, &gid), -1);
}

static void query_gid_table__has_the_loopback_address_last(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry entries[256];
	ssize_t count = ibv_query_gid_table(f->context, entries, 256, 0);
	static const uint8_t loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	bool seen = false;

	for (ssize_t i = 0; i < count; i++) {
		bool is_loopback = !memcmp(&entries[i].gid, loopback, 13) ||
				   IN6_IS_ADDR_LOOPBACK((struct in6_addr *)&entries[i].gid);

		assert_true(is_loopback || !seen);
		seen = seen || is_loopback;
	}
	assert_true(seen);
}

/* The struct may grow, and a program may be of before or after that. */
static void query_gid_ex__for_a_program_that_knows_more_or_less(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry known;
	struct {
		struct ibv_gid_entry entry;
		uint64_t newer;
	} found;

	assert_int_equal(ibv_query_gid_ex(f->context, 1, 0, &known, 0), 0);
	memset(&found, 0xff, sizeof(found));
	assert_int_equal(_ibv_query_gid_ex(f->context, 1, 0, &found.entry, 0, sizeof(found)), 0);
	assert_memory_equal(&found.entry, &known, sizeof(known));
	assert_int_equal(found.newer, 0);
	memset(&found, 0xff, sizeof(found));
	assert_int_equal(_ibv_query_gid_ex(f->context, 1, 0, &found.entry, 0, sizeof(known.gid)),
			 0);
	assert_memory_equal(&found.entry.gid, &known.gid, sizeof(known.gid));
	assert_int_equal(found.entry.gid_index, UINT32_MAX);
}

static void query_gid_table__bad_arguments(void **state)
{
	struct fixture *f = *state;
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_table(f->context, &entry, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(f->context, &entry, 1, 1), -EOPNOTSUPP);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 0, &entry, 1), EOPNOTSUPP);
	assert_int_equal(ibv_query_gid_ex(f->context, 1, 5000, &entry, 0), EINVAL);
}

static void query_pkey__one(void **state)
{
	struct fixture *f = *state;
	__be16 pkey;

	assert_int_equal(ibv_query_pkey(f->context, 1, 0, &pkey), 0);
	assert_int_equal(ibv_get_pkey_index(f->context, 1, pkey), 0);
	assert_int_equal(ibv_query_pkey(f->context, 1, 1, &pkey), -1);
	assert_int_equal(errno, EINVAL);
}

static void fork_init__never_needed(void **state)
{
	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

static void unsupported__says_so(void **state)
{
	struct fixture *f = *state;
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_xrcd_init_attr xrcd = { 0 };

	FAILS_WITH(EOPNOTSUPP, ibv_create_ah(f->pd, &ah));
	FAILS_WITH(EOPNOTSUPP, ibv_open_xrcd(f->context, &xrcd));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_device_list__one_rnic),
		cmocka_unit_test(open_device__twice_gives_two_contexts),
		cmocka_unit_test(close_device__before_its_objects),
		WITH(query_device__limits_of_the_promise),
		WITH(query_device_ex__same_as_query_device),
		WITH(query_port__active_ethernet),
		WITH(query_port__faster_than_a_copy),
		WITH(query_port__old_function_writes_48_octets),
		WITH(query_gid__every_index_of_the_table),
		WITH(query_gid_table__has_the_loopback_address_last),
		WITH(query_gid_ex__for_a_program_that_knows_more_or_less),
		WITH(query_gid_table__bad_arguments),
		WITH(query_pkey__one),
		cmocka_unit_test(fork_init__never_needed),
		WITH(unsupported__says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
