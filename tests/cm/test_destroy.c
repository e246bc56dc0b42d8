// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_destroy_id in every state, and what the other end hears; the backlog's bound.
#include "cm.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static void destroy__before_connect(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_id(cm_bound(channel, "127.0.0.1"));
	rdma_destroy_id(cm_listener(channel, "127.0.0.1", 1));
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	cm_expect_none(channel);
	cm_destroy(cm_resolved(channel, "127.0.0.1", 1));
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
}

static void destroy__connecting(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	cm_destroy(ends.client);
	ends.client = NULL;
	/* Whether the Request was faster is open; neither may leave anything behind. */
	assert_int_equal(rdma_destroy_id(ends.listener), 0);
	ends.listener = NULL;
	cm_ends_close(&ends);
}

static void destroy__request_taken(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	cm_destroy(ends.server);
	ends.server = NULL;
	cm_expect_ack(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_ends_close(&ends);
}

static void destroy__listener_with_request(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	struct pollfd pfd = { .fd = ends.passive->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	assert_int_equal(rdma_destroy_id(ends.listener), 0);
	ends.listener = NULL;
	cm_expect_none(ends.passive);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	cm_ends_close(&ends);
}

static void destroy__listener_before_accept(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	assert_int_equal(rdma_destroy_id(ends.listener), 0);
	ends.listener = NULL;
	cm_ends_accept(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void destroy__connected(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	cm_destroy(ends.client);
	ends.client = NULL;
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_ends_close(&ends);
}

/* The QP outlives the id, but not its stream. */
static void destroy__connected_before_qp(void **state)
{
	struct cm_ends ends;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	rdma_destroy_qp(ends.client);
	attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	struct ibv_cq *cq = ibv_create_cq(ends.client->verbs, 4, NULL, NULL, 0);

	attr.send_cq = attr.recv_cq = cq;
	assert_int_equal(rdma_create_qp(ends.client, NULL, &attr), 0);
	struct ibv_qp *qp = ends.client->qp;

	cm_ends_connect(&ends);
	assert_int_equal(rdma_destroy_id(ends.client), 0);
	ends.client = NULL;
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cm_ends_close(&ends);
}

static void destroy__disconnected_unseen(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_ends_close(&ends);
}

static atomic_bool acked;

static void *ack_when_destroying(void *event)
{
	/* Nothing tells that the other thread waits already; either order must do. */
	atomic_store(&acked, true);
	rdma_ack_cm_event(event);
	return NULL;
}

static void destroy__waits_for_ack(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	pthread_t thread;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	event = cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(pthread_create(&thread, NULL, ack_when_destroying, event), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_true(atomic_load(&acked));
	assert_int_equal(pthread_join(thread, NULL), 0);
	rdma_destroy_event_channel(channel);
}

#define CLIENTS 4

static void backlog__overflow(void **state)
{
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_event_channel *active[CLIENTS];
	struct rdma_cm_id *listener = cm_listener(passive, "127.0.0.1", 2), *clients[CLIENTS];

	(void)state;
	for (int i = 0; i < CLIENTS; i++) {
		active[i] = rdma_create_event_channel();
		clients[i] = cm_resolved(active[i], "127.0.0.1", cm_port(listener));
		assert_int_equal(rdma_connect(clients[i], NULL), 0);
		if (i >= 2)
			cm_expect_ack(active[i], RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		else
			assert_int_equal(
				poll(&(struct pollfd){ .fd = passive->fd, .events = POLLIN }, 1,
				     EVENT_MS),
				1);
	}
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *event = cm_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		assert_int_equal(rdma_reject(id, NULL, 0), 0);
		rdma_destroy_id(id);
	}
	for (int i = 0; i < CLIENTS; i++) {
		if (i < 2)
			cm_expect_ack(active[i], RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		cm_destroy(clients[i]);
		rdma_destroy_event_channel(active[i]);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(passive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(destroy__before_connect),
		cmocka_unit_test(destroy__connecting),
		cmocka_unit_test(destroy__request_taken),
		cmocka_unit_test(destroy__listener_with_request),
		cmocka_unit_test(destroy__listener_before_accept),
		cmocka_unit_test(destroy__connected),
		cmocka_unit_test(destroy__connected_before_qp),
		cmocka_unit_test(destroy__disconnected_unseen),
		cmocka_unit_test(destroy__waits_for_ack),
		cmocka_unit_test(backlog__overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
