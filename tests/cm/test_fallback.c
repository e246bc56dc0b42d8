// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RFC 6581 10: a peer that knows only MPA revision 1 is asked again in revision 1, once, over another
// connection; and what must not happen while or although that is so.
#include "cm.h"
#include "half.h"
#include "raw.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SHORT_MS 1000 /* what is to come before it is over comes on a busy machine as well */

static const uint8_t plain_reply[RAW_PLAIN_LEN] = "MPA ID Rep Frame\x40\x01\0";

/* The peer is on its next connection now; the one before is closed. */
static void accept_next(struct half *half)
{
	close(half->fd);
	half->fd = raw_accept(half->listener);
}

/* The peer's listener may just have been closed, and another one be there: the Request is the same. */
static void expect_repeat(struct half *half)
{
	uint8_t request[RAW_REQUEST_LEN];

	accept_next(half);
	raw_recv(half->fd, request, sizeof(request));
	assert_memory_equal(request, "MPA ID Req Frame", 16);
	assert_int_equal(request[16] & 0x50, 0x50);
	assert_int_equal(request[17], 2);
}

/* The peer closes on revision 2. */
static void accept_again(struct half *half)
{
	expect_repeat(half);
	accept_next(half);
}

/* A Request of revision 1: no S, CRC wanted, the program's private data alone. */
static void expect_plain_request(struct half *half, const void *pd, uint8_t pd_len)
{
	uint8_t request[RAW_PLAIN_LEN + 255];

	raw_recv(half->fd, request, RAW_PLAIN_LEN + (size_t)pd_len);
	assert_memory_equal(request, "MPA ID Req Frame", 16);
	assert_int_equal(request[16], 0x40);
	assert_int_equal(request[17], 1);
	assert_int_equal(request[18], 0);
	assert_int_equal(request[19], pd_len);
	assert_memory_equal(request + RAW_PLAIN_LEN, pd, pd_len);
}

static void expect_no_other_connection(struct half *half)
{
	assert_int_equal(raw_pending(half->listener), 0);
}

static void establish(struct half *half)
{
	raw_send(half->fd, plain_reply, sizeof(plain_reply));
	cm_expect_ack(half->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void fallback__peer_closes(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	establish(&half);
	expect_no_other_connection(&half);
	half_close(&half);
}

/* The port that the program may have chosen is free again, and used again. */
static void fallback__peer_resets(void **state)
{
	uint8_t request[RAW_REQUEST_LEN];
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_reset(half.fd);
	half.fd = raw_accept(half.listener);
	raw_recv(half.fd, request, sizeof(request)); /* a reset before it is no answer to it */
	raw_reset(half.fd);
	half.fd = raw_accept(half.listener);
	assert_int_equal(getpeername(half.fd, (struct sockaddr *)&peer, &len), 0);
	assert_int_equal(peer.sin_port, rdma_get_src_port(half.id));
	expect_plain_request(&half, "", 0);
	establish(&half);
	half_close(&half);
}

/* A new listener where one was closed with a connection that it had not read: that knows revision 2. */
static void fallback__listener_began_anew(void **state)
{
	static const uint8_t reply[RAW_REQUEST_LEN] =
		"MPA ID Rep Frame\x50\x02\0\x04\x80\x10\x80\x10";
	uint8_t rtr[RAW_ULPDU_MAX];
	struct half half;

	(void)state;
	half_open_client(&half);
	expect_repeat(&half);
	raw_send(half.fd, reply, sizeof(reply));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_not_equal(raw_recv_fpdu(half.fd, rtr), 0);
	expect_no_other_connection(&half);
	half_close(&half);
}

/* It took RFC 6581's octets for private data. */
static void fallback__reply_of_revision_1(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_send(half.fd, plain_reply, sizeof(plain_reply));
	raw_expect_end(half.fd);
	accept_next(&half);
	expect_plain_request(&half, "", 0);
	establish(&half);
	half_close(&half);
}

/* The longest that the API takes, and the Reads that were asked for, are asked for again. */
static void fallback__parameters_are_kept(void **state)
{
	uint8_t pd[255], request[RAW_REQUEST_LEN + sizeof(pd)];
	struct rdma_conn_param param = {
		.private_data = pd,
		.private_data_len = sizeof(pd),
		.responder_resources = 5,
		.initiator_depth = 3,
	};
	struct rdma_cm_event *event;
	struct half half;

	(void)state;
	for (size_t i = 0; i < sizeof(pd); i++)
		pd[i] = (uint8_t)(i * 7);
	half_connect_client(&half, &param);
	memset(pd, 0, sizeof(pd)); /* the program's again once rdma_connect returned */
	raw_recv(half.fd, request, sizeof(request));
	accept_again(&half);
	expect_plain_request(&half, request + RAW_REQUEST_LEN, sizeof(pd));
	raw_send(half.fd, plain_reply, sizeof(plain_reply));
	event = cm_expect(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(event->param.conn.responder_resources, 5);
	assert_int_equal(event->param.conn.initiator_depth, 3);
	rdma_ack_cm_event(event);
	half_close(&half);
}

/* Without an RTR the initiator's own message is the first, and must not wait for anything. */
static void fallback__initiator_sends_first(void **state)
{
	uint8_t fpdu[2 + 18 + 4 + 4];
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	establish(&half);
	assert_int_equal(rdma_post_send(half.id, NULL, "ping", 4, NULL, IBV_SEND_INLINE), 0);
	raw_recv(half.fd, fpdu, sizeof(fpdu));
	assert_int_equal(fpdu[1], 18 + 4);
	assert_int_equal(fpdu[3] & 0xf, 3);
	assert_memory_equal(fpdu + 20, "ping", 4);
	half_close(&half);
}

static void fallback__only_once(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	expect_no_other_connection(&half);
	half_close(&half);
}

static void fallback__second_is_rejected(void **state)
{
	static const uint8_t reject[RAW_PLAIN_LEN + 2] = "MPA ID Rep Frame\x60\x01\0\002no";
	struct rdma_cm_event *event;
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	raw_send(half.fd, reject, sizeof(reject));
	event = cm_expect(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	assert_int_equal(event->param.conn.private_data_len, 2);
	assert_memory_equal(event->param.conn.private_data, "no", 2);
	rdma_ack_cm_event(event);
	half_close(&half);
}

/* Nobody listens any more: what the program hears is the last failure. */
static void fallback__nobody_there(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	close(half.listener);
	half.listener = -1;
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	half_close(&half);
}

static void fallback__not_after_a_reject(void **state)
{
	static const uint8_t reject[RAW_PLAIN_LEN] = "MPA ID Rep Frame\x60\x01\0";
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_send(half.fd, reject, sizeof(reject));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	expect_no_other_connection(&half);
	half_close(&half);
}

static void fallback__not_after_a_timeout(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	half_open_client(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	expect_no_other_connection(&half);
	half_close(&half);
}

static void fallback__not_after_half_a_reply(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_send(half.fd, "MPA ID Rep", 10);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	expect_no_other_connection(&half);
	half_close(&half);
}

/* The id is destroyed while its last connection waits for a Reply. */
static void fallback__destroyed_meanwhile(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(10 * EVENT_MS); /* nothing else may end it */
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	cm_destroy(half.id);
	half.id = NULL;
	raw_expect_end(half.fd);
	half_close(&half);
}

/* And at any moment around the first one's end. */
static void fallback__destroyed_at_any_time(void **state)
{
	struct half half;

	(void)state;
	for (int i = 0; i < 200; i++) {
		half_open_client(&half);
		if (i & 1)
			raw_reset(half.fd);
		else
			close(half.fd);
		half.fd = -1;
		if (i % 3 == 0)
			usleep((useconds_t)(i * 2)); /* to meet other moments, not to wait */
		half_close(&half);
	}
}

static void fallback__qp_destroyed_meanwhile(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	rdma_destroy_qp(half.id);
	raw_send(half.fd, plain_reply, sizeof(plain_reply));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNABORTED);
	half_close(&half);
}

static void fallback__disconnect_meanwhile(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	accept_again(&half);
	expect_plain_request(&half, "", 0);
	assert_int_equal(rdma_disconnect(half.id), -1);
	assert_int_equal(errno, EINVAL);
	establish(&half);
	half_close(&half);
}

/* Where the client's side closed first TCP may keep its port, and then another one has to do. */
static void fallback__source_port(void **state)
{
	struct sockaddr_in first, second;
	socklen_t len = sizeof(first);
	struct half half;

	(void)state;
	half_open_client(&half);
	assert_int_equal(getpeername(half.fd, (struct sockaddr *)&first, &len), 0);
	assert_int_equal(first.sin_port, rdma_get_src_port(half.id));
	raw_send(half.fd, plain_reply, sizeof(plain_reply));
	raw_expect_end(half.fd);
	accept_next(&half);
	assert_int_equal(getpeername(half.fd, (struct sockaddr *)&second, &len), 0);
	assert_int_equal(second.sin_addr.s_addr, first.sin_addr.s_addr);
	expect_plain_request(&half, "", 0);
	establish(&half);
	assert_int_equal(second.sin_port, rdma_get_src_port(half.id));
	half_close(&half);
}

static struct rdma_cm_id *resolved_sync(uint16_t port)
{
	struct sockaddr_storage dst = cm_address("127.0.0.1", port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	cm_make_qp(id);
	return id;
}

/* A synchronous id waits through all the connections. */
static void fallback__synchronous(void **state)
{
	struct half half = { .fd = -1 };
	struct raw_server server;
	uint16_t port;

	(void)state;
	half.listener = raw_listen(&port);
	half.channel = rdma_create_event_channel();
	half.id = resolved_sync(port);
	raw_server_start(&server, half.listener, plain_reply, sizeof(plain_reply));
	assert_int_equal(rdma_connect(half.id, NULL), 0);
	assert_int_equal(half.id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	half.fd = raw_server_join(&server);
	half_close(&half);
}

#define TEST(f) cmocka_unit_test_setup(f, cm_reset_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fallback__peer_closes),
		TEST(fallback__peer_resets),
		TEST(fallback__listener_began_anew),
		TEST(fallback__reply_of_revision_1),
		TEST(fallback__parameters_are_kept),
		TEST(fallback__initiator_sends_first),
		TEST(fallback__only_once),
		TEST(fallback__second_is_rejected),
		TEST(fallback__nobody_there),
		TEST(fallback__not_after_a_reject),
		TEST(fallback__not_after_a_timeout),
		TEST(fallback__not_after_half_a_reply),
		TEST(fallback__destroyed_meanwhile),
		TEST(fallback__destroyed_at_any_time),
		TEST(fallback__qp_destroyed_meanwhile),
		TEST(fallback__disconnect_meanwhile),
		TEST(fallback__source_port),
		TEST(fallback__synchronous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
