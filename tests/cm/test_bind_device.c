// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which addresses name a device when an id is bound to them, and where ids of the others get theirs. With a network namespace
// of its own (with-net) this host has an address beside loopback.
#include "cm.h"

#include <errno.h>
#include <stdlib.h>

/* As with Linux's rdma_cm, where loopback is no device's address. */
static void bind__wildcards_and_loopback_name_none(void **state)
{
	const char *const ips[] = { "0.0.0.0",	 "::",	"::ffff:0.0.0.0",   "127.0.0.1",
				    "127.9.9.9", "::1", "::ffff:127.0.0.1", "::ffff:127.9.9.9" };

	(void)state;
	for (size_t i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		struct rdma_cm_id *id = cm_bound(cm_channel, ips[i]);

		assert_null(id->verbs);
		assert_null(id->pd);
		assert_int_equal(id->port_num, 0);
		rdma_destroy_id(id);
	}
}

static void bind__others_name_it(void **state)
{
	const char *ip = getenv("ANYWARP_TEST_NET");

	(void)state;
	if (!ip)
		skip();
	struct rdma_cm_id *id = cm_bound(cm_channel, ip);

	assert_non_null(id->verbs);
	assert_non_null(id->pd);
	assert_int_equal(id->port_num, 1);
	cm_make_qp(id);
	cm_destroy(id);
}

/* A listener there serves its own address alone, and what comes to it has a device. */
static void listen__loopback(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	assert_null(ends.listener->verbs);
	assert_non_null(ends.server->verbs);
	struct rdma_cm_id *other = cm_resolved(cm_channel, "127.0.0.2", cm_port(ends.listener));

	assert_int_equal(rdma_connect(other, NULL), 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_destroy(other);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void listen__passive_endpoint_at_loopback(void **state)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_id *listener, *id, *client;
	struct rdma_addrinfo *res;

	(void)state;
	assert_int_equal(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res), 0);
	assert_int_equal(rdma_create_ep(&listener, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	assert_null(listener->verbs);
	assert_null(listener->pd);
	assert_int_equal(rdma_listen(listener, 1), 0);
	client = cm_resolved(cm_channel, "127.0.0.1", cm_port(listener));
	assert_int_equal(rdma_connect(client, NULL), 0);
	assert_int_equal(rdma_get_request(listener, &id), 0);
	assert_non_null(id->qp);
	assert_ptr_equal(id->qp->pd, client->pd);
	cm_destroy(client);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void resolve__bound_to_loopback(void **state)
{
	struct rdma_cm_id *listener = cm_listener(cm_channel, "127.0.0.1", 1);
	struct rdma_cm_id *client = cm_bound(cm_channel, "127.0.0.2");
	struct sockaddr_storage dst = cm_address("127.0.0.1", cm_port(listener));
	uint16_t port = cm_port(client);

	(void)state;
	assert_int_equal(rdma_resolve_addr(client, NULL, (struct sockaddr *)&dst, 1), 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_non_null(client->verbs);
	assert_non_null(client->pd);
	assert_int_equal(client->port_num, 1);
	assert_int_equal(cm_port(client), port);
	cm_make_qp(client);
	cm_destroy(client);
	rdma_destroy_id(listener);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cm_open_channel, cm_close_channel)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bind__wildcards_and_loopback_name_none),
		TEST(bind__others_name_it),
		TEST(listen__loopback),
		TEST(listen__passive_endpoint_at_loopback),
		TEST(resolve__bound_to_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
