// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connect, accept, reject, disconnect over loopback: events in order and what they carry.
#define _GNU_SOURCE /* unshare */
#include "cm.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *const ips[] = { "127.0.0.1", "::1" };
static const uint8_t lengths[] = { 0, 1, 196, 255 };

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static uint8_t data[255];

static void fill_data(uint8_t seed)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + seed);
}

static struct rdma_conn_param param_of(uint8_t len, uint8_t resources, uint8_t depth)
{
	return (struct rdma_conn_param){
		.private_data = len ? data : NULL,
		.private_data_len = len,
		.responder_resources = resources,
		.initiator_depth = depth,
	};
}

static void assert_data(const struct rdma_cm_event *event, uint8_t len)
{
	assert_int_equal(event->param.conn.private_data_len, len);
	if (len)
		assert_memory_equal(event->param.conn.private_data, data, len);
	else
		assert_null(event->param.conn.private_data);
}

static void connect_with_data(const char *ip, uint8_t len)
{
	struct rdma_conn_param param = param_of(len, 3, 5);
	struct cm_ends ends;

	fill_data(len);
	cm_ends_open(&ends, ip);
	ends.listener->context = &ends;
	assert_int_equal(rdma_connect(ends.client, &param), 0);
	struct rdma_cm_event *event = cm_expect(ends.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_data(event, len);
	assert_int_equal(event->param.conn.responder_resources, 5);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	assert_ptr_equal(event->listen_id, ends.listener);
	assert_ptr_equal(event->id->context, &ends);
	assert_non_null(event->id->verbs);
	assert_ptr_equal(event->id->channel, ends.passive);
	assert_int_equal(rdma_get_src_port(event->id), rdma_get_src_port(ends.listener));
	ends.server = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(ends.server);

	fill_data((uint8_t)(len + 1));
	param = param_of(len, 4, 2);
	assert_int_equal(rdma_accept(ends.server, &param), 0);
	event = cm_expect(ends.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_data(event, len);
	assert_int_equal(event->param.conn.responder_resources, 2);
	assert_int_equal(event->param.conn.initiator_depth, 4);
	rdma_ack_cm_event(event);
	event = cm_expect(ends.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, 4);
	assert_int_equal(event->param.conn.initiator_depth, 2);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_get_dst_port(ends.server), rdma_get_src_port(ends.client));
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void connect__private_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ips); i++)
		for (size_t j = 0; j < ARRAY_LEN(lengths); j++)
			connect_with_data(ips[i], lengths[j]);
}

static void reject_with_data(const char *ip, uint8_t len)
{
	struct cm_ends ends;

	fill_data(len);
	cm_ends_open(&ends, ip);
	cm_ends_request(&ends);
	assert_int_equal(rdma_reject(ends.server, len ? data : NULL, len), 0);
	struct rdma_cm_event *event = cm_expect(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);

	assert_data(event, len);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_disconnect(ends.client), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_close(&ends);
}

static void reject__private_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ips); i++)
		for (size_t j = 0; j < ARRAY_LEN(lengths); j++)
			reject_with_data(ips[i], lengths[j]);
}

static void post_receive(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = { .wr_id = 7 }, *bad;

	assert_int_equal(ibv_post_recv(id->qp, &wr, &bad), 0);
}

static void expect_flushed(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
}

/* A program may free its buffers as their receives come back. */
static void reject__flushes(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	post_receive(ends.client);
	assert_int_equal(rdma_reject(ends.server, NULL, 0), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	expect_flushed(ends.client);
	cm_ends_close(&ends);
}

/* As rdma-core has it: no pointer, no data. */
static void connect__length_without_data(void **state)
{
	struct rdma_conn_param param = param_of(0, 1, 1);
	struct cm_ends ends;

	(void)state;
	param.private_data_len = 5;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_connect(ends.client, &param), 0);
	struct rdma_cm_event *event = cm_expect(ends.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	assert_data(event, 0);
	ends.server = event->id;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_reject(ends.server, NULL, 5), 0);
	event = cm_expect(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	assert_data(event, 0);
	rdma_ack_cm_event(event);
	cm_ends_close(&ends);
}

static void connect__refused_port(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ips); i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct rdma_cm_id *bound = cm_bound(channel, ips[i]);
		struct rdma_cm_id *id = cm_resolved(channel, ips[i], cm_port(bound));

		assert_int_equal(rdma_connect(id, NULL), 0);
		cm_expect_ack(channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		cm_destroy(id);
		cm_destroy(bound);
		rdma_destroy_event_channel(channel);
	}
}

static void connect__needs_qp(void **state)
{
	struct rdma_conn_param param = { .qp_num = 0xffffff };
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	rdma_destroy_qp(ends.client);
	assert_int_equal(rdma_connect(ends.client, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_connect(ends.client, &param), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_close(&ends);
}

static void connect__bad_param(void **state)
{
	struct rdma_conn_param param = param_of(0, 129, 1);
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_connect(ends.client, &param), -1);
	assert_int_equal(errno, EINVAL);
	param = param_of(0, 1, 129);
	assert_int_equal(rdma_connect(ends.client, &param), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_connect(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

/* A program that makes its QPs itself gives their numbers. */
static void connect__by_qp_number(void **state)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	struct ibv_qp *qp = ends.client->qp;

	ends.client->qp = NULL;
	param.qp_num = qp->qp_num;
	assert_int_equal(rdma_connect(ends.client, &param), 0);
	cm_ends_take_request(&ends);
	cm_ends_accept(&ends);
	assert_int_equal(rdma_establish(ends.client), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_disconnect(&ends);
	ends.client->qp = qp;
	cm_ends_close(&ends);
}

static void accept__needs_qp(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "::1");
	cm_ends_request(&ends);
	rdma_destroy_qp(ends.server);
	assert_int_equal(rdma_accept(ends.server, NULL), -1);
	assert_int_equal(errno, EINVAL);
	cm_make_qp(ends.server);
	cm_ends_accept(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void accept__peer_gone(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	post_receive(ends.server);
	cm_destroy(ends.client);
	ends.client = NULL;
	if (rdma_accept(ends.server, NULL) < 0)
		assert_int_equal(errno, ECONNRESET);
	else
		cm_expect_ack(ends.passive, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	expect_flushed(ends.server);
	cm_ends_close(&ends);
}

static void disconnect__by_server(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	assert_int_equal(rdma_disconnect(ends.server), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	assert_int_equal(rdma_disconnect(ends.server), 0);
	cm_ends_close(&ends);
}

static void disconnect__both_at_once(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	assert_int_equal(rdma_disconnect(ends.server), 0);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_ends_close(&ends);
}

static void disconnect__not_connected(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_disconnect(ends.client), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_disconnect(ends.listener), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_close(&ends);
}

static void disconnect__qp_destroyed(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	rdma_destroy_qp(ends.client);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_ends_close(&ends);
}

/* As with an adapter: a program that destroys its QP by itself hears that the connection is over. */
static void disconnect__qp_destroyed_by_ibv_destroy_qp(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_connect(&ends);
	assert_int_equal(ibv_destroy_qp(ends.client->qp), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	ends.client->qp = NULL;
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_expect_none(ends.active);
	assert_int_equal(ibv_destroy_cq(ends.client->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(ends.client->recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ends.client->send_cq_channel), 0);
	assert_int_equal(ibv_destroy_comp_channel(ends.client->recv_cq_channel), 0);
	cm_ends_close(&ends);
}

static void resolve__wrong_state(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	struct sockaddr_storage ss = cm_address("127.0.0.1", 1);

	assert_int_equal(rdma_resolve_route(ends.client, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_resolve_addr(ends.client, NULL, (struct sockaddr *)&ss, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_connect(ends.listener, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_accept(ends.client, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_reject(ends.client, NULL, 0), -1);
	assert_int_equal(errno, EINVAL);
	cm_ends_close(&ends);
}

static void resolve__no_broadcast(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage ss = cm_address("255.255.255.255", 1);
	struct rdma_cm_id *id;
	int ret;

	(void)state;
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1);
	assert_int_equal(ret, 0);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_ERROR);
	assert_true(event->status == -EACCES || event->status == -ENETUNREACH);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* In a network namespace of its own nothing is reachable. */
static void resolve_without_network(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage ss = cm_address("192.0.2.1", 1);
	struct rdma_cm_id *id;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		_exit(CM_CHILD_SKIPS);
	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ss, 1), -1);
	assert_int_equal(errno, ENETUNREACH);
	rdma_destroy_id(id);
}

static void resolve__unreachable(void **state)
{
	(void)state;
	cm_pass_in_child(resolve_without_network);
}

struct query {
	struct ibv_qp *qp;
	_Atomic bool over;
};

static enum ibv_qp_state state_asked(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* Asks until it is over. Without cmocka's assertions, which are of the main thread. Returns how often the state went back. */
static void *query_all_along(void *arg)
{
	static const int ranks[] = { [IBV_QPS_INIT] = 1,
				     [IBV_QPS_RTS] = 2,
				     [IBV_QPS_SQD] = 3,
				     [IBV_QPS_ERR] = 4,
				     [IBV_QPS_UNKNOWN] = 0 };
	struct query *q = arg;
	uintptr_t back = 0;
	int rank = 0;

	while (!atomic_load(&q->over)) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_UNKNOWN };

		(void)ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init);
		back += ranks[attr.qp_state] < rank;
		rank = ranks[attr.qp_state];
	}
	return (void *)back;
}

/* The progress thread shows a new state while the program's thread asks for it. */
static void query__while_the_state_changes(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct cm_ends ends;
		pthread_t thread;
		void *back;

		cm_ends_open(&ends, ips[0]);
		struct query q = { .qp = ends.client->qp };

		assert_int_equal(pthread_create(&thread, NULL, query_all_along, &q), 0);
		cm_ends_connect(&ends);
		assert_int_equal(state_asked(q.qp), IBV_QPS_RTS);
		cm_ends_disconnect(&ends);
		assert_int_equal(state_asked(q.qp), IBV_QPS_ERR);
		atomic_store(&q.over, true);
		assert_int_equal(pthread_join(thread, &back), 0);
		assert_null(back);
		cm_ends_close(&ends);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolve__unreachable),
		cmocka_unit_test(connect__private_data),
		cmocka_unit_test(reject__private_data),
		cmocka_unit_test(reject__flushes),
		cmocka_unit_test(connect__length_without_data),
		cmocka_unit_test(connect__refused_port),
		cmocka_unit_test(connect__needs_qp),
		cmocka_unit_test(connect__bad_param),
		cmocka_unit_test(connect__by_qp_number),
		cmocka_unit_test(accept__needs_qp),
		cmocka_unit_test(accept__peer_gone),
		cmocka_unit_test(disconnect__by_server),
		cmocka_unit_test(disconnect__both_at_once),
		cmocka_unit_test(disconnect__not_connected),
		cmocka_unit_test(disconnect__qp_destroyed),
		cmocka_unit_test(disconnect__qp_destroyed_by_ibv_destroy_qp),
		cmocka_unit_test(resolve__wrong_state),
		cmocka_unit_test(resolve__no_broadcast),
		cmocka_unit_test(query__while_the_state_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
