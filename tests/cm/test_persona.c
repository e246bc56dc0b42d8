// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the iwarp persona refuses, and says of it.
#include "cm.h"

#include <errno.h>

static void join_group(void)
{
	struct rdma_cm_id *id = cm_bound(cm_channel, "127.0.0.1");
	struct sockaddr_storage group = cm_address("239.7.7.1", 0);

	assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	rdma_destroy_id(id);
}

static void make_ud_id(void)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_UDP), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
}

static void make_address_handle(void)
{
	struct ibv_context **devices = rdma_get_devices(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(devices[0]);
	struct ibv_ah_attr attr = { .port_num = 1 };

	assert_non_null(pd);
	assert_null(ibv_create_ah(pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	rdma_free_devices(devices);
}

/* Users see this at the default level, and little more than the errno from their programs. */
static void refusal__names_the_persona(void **state)
{
	(void)state;
	cm_expect_log(join_group, "anywarp run --persona roce");
	cm_expect_log(make_ud_id, "anywarp run --persona roce");
	cm_expect_log(make_address_handle, "anywarp run --persona roce");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(refusal__names_the_persona) };

	return cmocka_run_group_tests(tests, cm_open_channel, cm_close_channel);
}
