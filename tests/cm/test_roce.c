// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_cm in the roce persona: QPs of ids, and QPs that a program creates elsewhere and walks itself with
// what rdma_init_qp_attr says.
#include "cm.h"
#include "half.h"
#include "raw.h"

#include <stdlib.h>
#include <sys/socket.h>

/* InfiniBand's reasons of a REJ: the program's, and a service ID that nobody has. */
#define REASON_CONSUMER 28
#define REASON_SERVICE 8

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, 0, &init), 0);
	assert_int_equal(qp->state, attr.qp_state);
	return attr.qp_state;
}

static void id_s_qp__is_led_to_rts(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(ends.client->verbs->device->node_type, IBV_NODE_CA);
	assert_int_equal(state_of(ends.client->qp), IBV_QPS_INIT);
	cm_ends_connect(&ends);
	assert_int_equal(state_of(ends.client->qp), IBV_QPS_RTS);
	assert_int_equal(state_of(ends.server->qp), IBV_QPS_RTS);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static uint8_t timeout_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	return attr.timeout;
}

static void option__ack_timeout_is_the_qp_s(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	uint8_t client = 21, server = 31;
	struct cm_ends ends;
	int mask;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	assert_int_equal(rdma_set_option(ends.client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					 &client, 1),
			 0);
	cm_ends_request(&ends);
	assert_int_equal(rdma_set_option(ends.server, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					 &server, 1),
			 0);
	assert_int_equal(rdma_init_qp_attr(ends.server, &attr, &mask), 0);
	assert_int_equal(attr.timeout, server);
	assert_int_equal(rdma_accept(ends.server, NULL), 0);
	assert_int_equal(timeout_of(ends.server->qp), server);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(timeout_of(ends.client->qp), client);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

/* A QP that no id knows. */
static struct ibv_qp *qp_elsewhere(struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 16 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;

	*cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = *cq;
	qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(qp);
	return qp;
}

static void walk(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = to };
	int mask;

	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
	assert_int_equal(state_of(qp), to);
}

static void poll_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	do
		got = ibv_poll_cq(cq, 1, &wc);
	while (got == 0);
	assert_int_equal(got, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* An empty message. */
static void talk(struct ibv_qp *from, struct ibv_qp *to)
{
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad_send;

	assert_int_equal(ibv_post_recv(to, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(from, &send, &bad_send), 0);
	poll_one(from->send_cq);
	poll_one(to->recv_cq);
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_storage addr = cm_address("127.0.0.1", port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	cm_expect_ack(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static void qp_of_elsewhere__is_walked_by_the_program(void **state)
{
	struct rdma_event_channel *passive = rdma_create_event_channel();
	struct rdma_event_channel *active = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_listener(passive, "127.0.0.1", 1);
	struct rdma_cm_id *client = resolve(active, cm_port(listener)), *server;
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *ev;
	struct ibv_cq *client_cq, *server_cq;
	struct ibv_qp *client_qp = qp_elsewhere(client, &client_cq), *server_qp;

	(void)state;
	walk(client, client_qp, IBV_QPS_INIT);
	param.qp_num = client_qp->qp_num;
	assert_int_equal(rdma_connect(client, &param), 0);
	ev = cm_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	server = ev->id;
	rdma_ack_cm_event(ev);
	server_qp = qp_elsewhere(server, &server_cq);
	walk(server, server_qp, IBV_QPS_INIT);
	walk(server, server_qp, IBV_QPS_RTR);
	walk(server, server_qp, IBV_QPS_RTS);
	param.qp_num = server_qp->qp_num;
	assert_int_equal(rdma_accept(server, &param), 0);
	cm_expect_ack(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	walk(client, client_qp, IBV_QPS_RTR);
	walk(client, client_qp, IBV_QPS_RTS);
	assert_int_equal(rdma_establish(client), 0);
	cm_expect_ack(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	talk(client_qp, server_qp);
	talk(server_qp, client_qp);
	assert_int_equal(rdma_disconnect(client), 0);
	cm_expect_ack(passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	ibv_destroy_qp(client_qp);
	ibv_destroy_qp(server_qp);
	ibv_destroy_cq(client_cq);
	ibv_destroy_cq(server_cq);
	rdma_destroy_id(client);
	rdma_destroy_id(server);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(active);
	rdma_destroy_event_channel(passive);
}

static struct ibv_wc take_one(struct ibv_cq *cq)
{
	struct ibv_wc wc = { 0 };

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	return wc;
}

/* As on InfiniBand, where the QP is in the error state when the call returns; this peer's program does nothing any more. */
static void disconnect__a_silent_peer_is_not_waited_for(void **state)
{
	static const uint8_t message[18] = { 0x41, 0x43, [13] = 1 }; /* RFC 5040 4.4 */
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr read = { .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad_send;
	struct half half;

	(void)state;
	half_established(&half);
	for (; recv.wr_id <= 2; recv.wr_id++)
		assert_int_equal(ibv_post_recv(half.server->qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(half.server->qp, &read, &bad_send), 0);
	raw_send_fpdu(half.fd, message, sizeof(message));
	assert_int_equal(rdma_disconnect(half.server), 0);
	assert_int_equal(state_of(half.server->qp), IBV_QPS_ERR);
	assert_int_equal(take_one(half.server->send_cq).status, IBV_WC_WR_FLUSH_ERR);
	struct ibv_wc wc = take_one(half.server->recv_cq);

	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	wc = take_one(half.server->recv_cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

/* Else the program ends, and what TCP has still to deliver is reset by the next that the peer sends. */
static void disconnect__told_when_the_peer_has_ended_too(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	assert_int_equal(rdma_disconnect(half.server), 0);
	raw_expect_end(half.fd);
	cm_expect_none(half.channel);
	assert_int_equal(shutdown(half.fd, SHUT_WR), 0);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

/* The QP takes the stream with it. */
static void disconnect__told_when_the_qp_is_destroyed(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	assert_int_equal(rdma_disconnect(half.server), 0);
	cm_expect_none(half.channel);
	rdma_destroy_qp(half.server);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

static void rejected__as_the_program_said(void **state)
{
	struct rdma_cm_event *event;
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	assert_int_equal(rdma_reject(ends.server, "no", 2), 0);
	event = cm_expect(ends.active, RDMA_CM_EVENT_REJECTED, REASON_CONSUMER);
	assert_int_equal(event->param.conn.private_data_len, 2);
	rdma_ack_cm_event(event);
	cm_ends_close(&ends);
}

static void rejected__without_a_listener(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	rdma_destroy_id(ends.listener);
	ends.listener = NULL;
	assert_int_equal(rdma_connect(ends.client, NULL), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_REJECTED, REASON_SERVICE);
	cm_destroy(ends.client);
	rdma_destroy_event_channel(ends.active);
	rdma_destroy_event_channel(ends.passive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_s_qp__is_led_to_rts),
		cmocka_unit_test(option__ack_timeout_is_the_qp_s),
		cmocka_unit_test(qp_of_elsewhere__is_walked_by_the_program),
		cmocka_unit_test(disconnect__a_silent_peer_is_not_waited_for),
		cmocka_unit_test(disconnect__told_when_the_peer_has_ended_too),
		cmocka_unit_test(disconnect__told_when_the_qp_is_destroyed),
		cmocka_unit_test(rejected__as_the_program_said),
		cmocka_unit_test(rejected__without_a_listener),
	};

	setenv("ANYWARP_PERSONA", "roce", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
