// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that refuse, fall silent, break off or speak something else while a connection starts.
#include "cm.h"
#include "raw.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SHORT_MS 200

struct half { /* one id, whose other end is a bare TCP socket */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *server;
	int listener, fd;
};

/* Our client's Request arrived at a TCP server. */
static void open_client(struct half *half)
{
	uint8_t request[RAW_REQUEST_LEN];
	uint16_t port;

	memset(half, 0, sizeof(*half));
	half->listener = raw_listen(&port);
	half->channel = rdma_create_event_channel();
	half->id = cm_resolved(half->channel, "127.0.0.1", port);
	assert_int_equal(rdma_connect(half->id, NULL), 0);
	half->fd = raw_accept(half->listener);
	raw_recv(half->fd, request, sizeof(request));
	assert_memory_equal(request, "MPA ID Req Frame", 16);
}

/* A TCP client is connected to our listener. */
static void open_server(struct half *half)
{
	memset(half, 0, sizeof(*half));
	half->listener = -1;
	half->channel = rdma_create_event_channel();
	half->id = cm_listener(half->channel, "127.0.0.1", 0);
	half->fd = raw_connect(cm_port(half->id));
}

static void take_request(struct half *half)
{
	struct rdma_cm_event *event = cm_expect(half->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	half->server = event->id;
	rdma_ack_cm_event(event);
	cm_make_qp(half->server);
}

static void close_half(struct half *half)
{
	if (half->fd >= 0)
		close(half->fd);
	if (half->listener >= 0)
		close(half->listener);
	if (half->server)
		cm_destroy(half->server);
	cm_destroy(half->id);
	cm_expect_none(half->channel);
	rdma_destroy_event_channel(half->channel);
}

static void client__silent_server(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	open_client(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	raw_expect_end(half.fd);
	close_half(&half);
}

static void client__server_closes(void **state)
{
	struct half half;

	(void)state;
	open_client(&half);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	close_half(&half);
}

static void client__half_reply(void **state)
{
	struct half half;

	(void)state;
	open_client(&half);
	raw_send(half.fd, "MPA ID Rep", 10);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	close_half(&half);
}

static void client__not_mpa(void **state)
{
	struct half half;

	(void)state;
	open_client(&half);
	raw_send(half.fd, "220 mail.example ESMTP\r\n", 24);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	raw_expect_end(half.fd);
	close_half(&half);
}

static void server__silent_client(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	open_server(&half);
	raw_expect_end(half.fd);
	close_half(&half);
}

static void server__not_mpa(void **state)
{
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, "GET / HTTP/1.0\r\n\r\n", 18);
	raw_expect_end(half.fd);
	close_half(&half);
}

static void server__half_request(void **state)
{
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN - 1);
	close(half.fd);
	half.fd = -1;
	close_half(&half);
}

static void server__reject(void **state)
{
	uint8_t reply[24 + 2];
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	take_request(&half);
	assert_int_equal(rdma_reject(half.server, "no", 2), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame", 16);
	assert_true(reply[16] & 0x20);
	assert_memory_equal(reply + 24, "no", 2);
	raw_expect_end(half.fd);
	assert_int_equal(rdma_accept(half.server, NULL), -1);
	assert_int_equal(errno, EINVAL);
	close_half(&half);
}

/* The responder must not transmit before the peer's first FPDU, which never comes. */
static void server__silent_after_reply(void **state)
{
	uint8_t reply[24];
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame", 16);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	raw_expect_end(half.fd);
	close_half(&half);
}

static void server__client_closes_after_reply(void **state)
{
	uint8_t reply[24];
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	close_half(&half);
}

static void server__disconnect_before_first_fpdu(void **state)
{
	uint8_t reply[24];
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_int_equal(rdma_disconnect(half.server), 0);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_half(&half);
}

/* Revision 1 has no peer-to-peer model: the Reply establishes. */
static void server__revision_1(void **state)
{
	static const uint8_t request[20] = "MPA ID Req Frame\x40\x01\0";
	uint8_t reply[20];
	struct half half;

	(void)state;
	open_server(&half);
	raw_send(half.fd, request, sizeof(request));
	take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_int_equal(reply[17], 1);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_half(&half);
}

static int reset_bounds(void **state)
{
	(void)state;
	cm_set_startup_ms(10000);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, reset_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client__silent_server),
		TEST(client__server_closes),
		TEST(client__half_reply),
		TEST(client__not_mpa),
		TEST(server__silent_client),
		TEST(server__not_mpa),
		TEST(server__half_request),
		TEST(server__reject),
		TEST(server__silent_after_reply),
		TEST(server__client_closes_after_reply),
		TEST(server__disconnect_before_first_fpdu),
		TEST(server__revision_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
