// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many connections at once: all work, and nothing of them stays behind, no fd and no thread.
#include "cm.h"

#include <dirent.h>
#include <string.h>

#define CONNECTIONS 100

static unsigned int entries(const char *path)
{
	unsigned int count = 0;
	DIR *dir = opendir(path);

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* The progress thread ends a socket's last seconds by itself; so the connections stay orderly. */
static void connect_many(size_t count)
{
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(passive, "127.0.0.1", 0);
	struct rdma_cm_id *clients[CONNECTIONS] = { 0 }, *servers[CONNECTIONS] = { 0 };
	uint8_t octet[2] = { 0 };
	struct ibv_wc wc;

	for (size_t i = 0; i < count; i++) {
		clients[i] = cm_resolved(active, "127.0.0.1", cm_port(listener));
		assert_int_equal(rdma_connect(clients[i], NULL), 0);
	}
	for (size_t i = 0; i < count; i++) {
		struct rdma_cm_event *event = cm_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

		servers[i] = event->id;
		rdma_ack_cm_event(event);
		cm_make_qp(servers[i]);
	}
	struct ibv_mr *mr = rdma_reg_msgs(servers[0], octet, sizeof(octet));

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rdma_post_recv(servers[i], NULL, octet, 1, mr), 0);
		assert_int_equal(rdma_accept(servers[i], NULL), 0);
	}
	for (size_t i = 0; i < count; i++) {
		cm_expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
		cm_expect_ack(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	for (size_t i = 0; i < count; i++) {
		octet[1] = (uint8_t)i;
		assert_int_equal(rdma_post_send(clients[i], NULL, octet + 1, 1, mr, 0), 0);
		assert_int_equal(rdma_get_send_comp(clients[i], &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rdma_get_recv_comp(servers[i], &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(rdma_disconnect(clients[i]), 0);
	for (size_t i = 0; i < count; i++) {
		cm_expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
		cm_expect_ack(active, RDMA_CM_EVENT_DISCONNECTED, 0);
	}
	rdma_dereg_mr(mr);
	for (size_t i = 0; i < count; i++) {
		cm_destroy(clients[i]);
		cm_destroy(servers[i]);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(passive);
	rdma_destroy_event_channel(active);
}

static void many__leave_nothing(void **state)
{
	(void)state;
	connect_many(1);
	unsigned int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");

	connect_many(CONNECTIONS);
	assert_int_equal(entries("/proc/self/fd"), fds);
	assert_int_equal(entries("/proc/self/task"), threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many__leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
