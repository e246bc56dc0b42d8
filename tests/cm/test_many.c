// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many connections at once: all work, and nothing of them stays behind, no fd and no thread.
#include "cm.h"

#include <dirent.h>
#include <pthread.h>
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

/* Of one of many connections: the first ones' TIMEWAIT_EXIT may be there before the last one's DISCONNECTED. */
static void expect_disconnected(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	do {
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
		assert_int_equal(event->status, 0);
		type = event->event;
		assert_int_equal(rdma_ack_cm_event(event), 0);
	} while (type == RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_string_equal(rdma_event_str(type), rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
}

/* The progress thread ends a socket's last seconds by itself; so the connections stay orderly. */
static void connect_many(size_t count)
{
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(passive, "127.0.0.1", 0);
	struct rdma_cm_id *clients[CONNECTIONS] = { 0 }, *servers[CONNECTIONS] = { 0 };
	uint8_t octets[2][CONNECTIONS] = { 0 }, *out = octets[0], *in = octets[1];
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
	struct ibv_mr *mr = rdma_reg_msgs(servers[0], octets, sizeof(octets));

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rdma_post_recv(servers[i], NULL, in + i, 1, mr), 0);
		assert_int_equal(rdma_accept(servers[i], NULL), 0);
	}
	for (size_t i = 0; i < count; i++) {
		cm_expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
		cm_expect_ack(active, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	for (size_t i = 0; i < count; i++) {
		out[i] = (uint8_t)i;
		assert_int_equal(rdma_post_send(clients[i], NULL, out + i, 1, mr, 0), 0);
		assert_int_equal(rdma_get_send_comp(clients[i], &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(rdma_get_recv_comp(servers[i], &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(in[i], i);
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(rdma_disconnect(clients[i]), 0);
	for (size_t i = 0; i < count; i++) {
		expect_disconnected(passive);
		expect_disconnected(active);
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

#define IN_TURN 300

struct client {
	uint16_t port;
	pthread_barrier_t established; /* the server has seen all its events */
};

/* A client's thread connects ids one after the other, and ends the connections when the server has seen all of them. NULL: all were connected. */
static void *connect_in_turn(void *arg)
{
	struct client *client = arg;
	struct sockaddr_storage to = cm_address("127.0.0.1", client->port);
	struct rdma_cm_id *ids[IN_TURN];

	for (size_t i = 0; i < IN_TURN; i++) {
		struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

		if (rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP) != 0 ||
		    rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&to, EVENT_MS) != 0 ||
		    rdma_resolve_route(ids[i], EVENT_MS) != 0 ||
		    rdma_create_qp(ids[i], NULL, &attr) != 0 || rdma_connect(ids[i], NULL) != 0)
			return "a client's connect failed";
	}
	pthread_barrier_wait(&client->established);
	for (size_t i = 0; i < IN_TURN; i++)
		rdma_destroy_ep(ids[i]);
	return NULL;
}

/* As with an adapter. A client that is connected may connect its next id before rdma_accept has returned. */
static void many__are_established_before_the_next_request(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(channel, "127.0.0.1", 0);
	struct rdma_cm_id *servers[IN_TURN];
	struct client client = { .port = cm_port(listener) };
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(pthread_barrier_init(&client.established, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, connect_in_turn, &client), 0);
	for (size_t i = 0; i < IN_TURN; i++) {
		struct rdma_cm_event *event = cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

		servers[i] = event->id;
		rdma_ack_cm_event(event);
		cm_make_qp(servers[i]);
		assert_int_equal(rdma_accept(servers[i], NULL), 0);
		cm_expect_ack(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	pthread_barrier_wait(&client.established);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	/* They come in any order, and an id takes its own event along when it is destroyed. */
	for (size_t i = 0; i < IN_TURN; i++)
		expect_disconnected(channel);
	for (size_t i = 0; i < IN_TURN; i++)
		cm_destroy(servers[i]);
	pthread_barrier_destroy(&client.established);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
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
		cmocka_unit_test(many__are_established_before_the_next_request),
		cmocka_unit_test(many__leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
