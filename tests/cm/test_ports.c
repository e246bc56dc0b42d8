// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The source ports of ids that connect, on a host that has few.
#define _GNU_SOURCE /* unshare */
#include "cm.h"

#include "../lib/own_host.h"

#include <errno.h>

#define SERVICE 9000 /* of the listener: outside of both ranges */
#define PORTS 10

/* 100 ports, of which 10 are reserved. */
static bool enter_host_of_few_ports(void)
{
	return enter_own_host() &&
	       set_sysctl("/proc/sys/net/ipv4/ip_local_port_range", "40000 40099") &&
	       set_sysctl("/proc/sys/net/ipv4/ip_local_reserved_ports", "40001-40009,40050");
}

static bool is_free_port(uint16_t port)
{
	return port == 40000 || (port >= 40010 && port <= 40099 && port != 40050);
}

static struct rdma_cm_id *addressed(void)
{
	struct sockaddr_storage dst = cm_address("127.0.0.1", 9);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(cm_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 1000), 0);
	cm_expect_ack(cm_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

/* Each id has a port of its own until none is found; then TCP is to choose as the id connects. */
static void resolve_from_few_ports(void)
{
	struct rdma_cm_id *ids[100];
	bool taken[100] = { false };
	unsigned int count = 0;

	if (!enter_host_of_few_ports())
		_exit(CM_CHILD_SKIPS);
	cm_channel = rdma_create_event_channel();
	while (count < 100 && cm_port(ids[count] = addressed()) != 0) {
		uint16_t port = cm_port(ids[count++]);

		assert_true(is_free_port(port) && !taken[port - 40000]);
		taken[port - 40000] = true;
	}
	assert_int_equal(count, 90);
	for (unsigned int i = 0; i <= count; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(cm_channel);
}

static void resolve__a_port_of_the_hosts_range(void **state)
{
	(void)state;
	cm_pass_in_child(resolve_from_few_ports);
}

/* A listener at SERVICE on all addresses, and a host of PORTS ports. */
static void open_service(struct cm_ends *ends)
{
	struct sockaddr_storage any = cm_address("0.0.0.0", SERVICE);

	if (!enter_own_host() ||
	    !set_sysctl("/proc/sys/net/ipv4/ip_local_port_range", "40000 40009"))
		_exit(CM_CHILD_SKIPS);
	ends->passive = rdma_create_event_channel();
	ends->active = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(ends->passive, &ends->listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(ends->listener, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(ends->listener, 0), 0);
}

/* Every port has a connection to one address. Another address is reached all the same, by a port that both share. */
static void connect_beside_all(void)
{
	struct cm_ends ends;
	struct rdma_cm_id *ids[2 * PORTS];

	open_service(&ends);
	for (int i = 0; i < PORTS; i++) {
		ends.client = cm_resolved(ends.active, "127.0.0.1", SERVICE);
		assert_int_not_equal(cm_port(ends.client), 0);
		cm_ends_connect(&ends);
		ids[2 * i] = ends.client;
		ids[2 * i + 1] = ends.server;
	}
	ends.client = cm_resolved(ends.active, "127.0.0.2", SERVICE);
	assert_int_equal(cm_port(ends.client), 0);
	cm_ends_connect(&ends);
	assert_in_range(cm_port(ends.client), 40000, 40009);
	cm_destroy(ends.client);
	cm_destroy(ends.server);
	/* The first address has no port left. */
	ends.client = cm_resolved(ends.active, "127.0.0.1", SERVICE);
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_CONNECT_ERROR, -EADDRNOTAVAIL);
	cm_destroy(ends.client);
	for (int i = 0; i < 2 * PORTS; i++)
		cm_destroy(ids[i]);
	rdma_destroy_id(ends.listener);
	rdma_destroy_event_channel(ends.passive);
	rdma_destroy_event_channel(ends.active);
}

static void connect__shares_a_port_between_destinations(void **state)
{
	(void)state;
	cm_pass_in_child(connect_beside_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolve__a_port_of_the_hosts_range),
		cmocka_unit_test(connect__shares_a_port_between_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
