// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that refuse, fall silent, break off or speak something else while a connection starts.
#include "cm.h"
#include "half.h"
#include "raw.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SHORT_MS 1000 /* what is to come before it is over comes on a busy machine as well */

static void client__silent_server(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	half_open_client(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void client__half_reply(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_send(half.fd, "MPA ID Rep", 10);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	half_close(&half);
}

static void client__not_mpa(void **state)
{
	struct half half;

	(void)state;
	half_open_client(&half);
	raw_send(half.fd, "220 mail.example ESMTP\r\n", 24);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void server__silent_client(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	half_open_server(&half);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void server__not_mpa(void **state)
{
	struct half half;

	(void)state;
	half_open_server(&half);
	raw_send(half.fd, "GET / HTTP/1.0\r\n\r\n", 18);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void server__half_request(void **state)
{
	struct half half;

	(void)state;
	half_open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN - 1);
	close(half.fd);
	half.fd = -1;
	half_close(&half);
}

static void server__reject(void **state)
{
	uint8_t reply[24 + 2];
	struct half half;

	(void)state;
	half_open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	half_take_request(&half);
	assert_int_equal(rdma_reject(half.server, "no", 2), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame", 16);
	assert_true(reply[16] & 0x20);
	assert_memory_equal(reply + 24, "no", 2);
	raw_expect_end(half.fd);
	assert_int_equal(rdma_accept(half.server, NULL), -1);
	assert_int_equal(errno, EINVAL);
	half_close(&half);
}

/* The responder must not transmit before the peer's first FPDU, which never comes. */
static void server__silent_after_reply(void **state)
{
	uint8_t reply[RAW_REQUEST_LEN];
	struct half half;

	(void)state;
	half_open_server(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	half_take_request(&half);
	cm_set_startup_ms(SHORT_MS);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame", 16);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void server__client_closes_after_reply(void **state)
{
	uint8_t reply[RAW_REQUEST_LEN];
	struct half half;

	(void)state;
	half_accepted(&half, reply);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	half_close(&half);
}

static void server__disconnect_before_first_fpdu(void **state)
{
	uint8_t reply[RAW_REQUEST_LEN];
	struct half half;

	(void)state;
	half_accepted(&half, reply);
	assert_int_equal(rdma_disconnect(half.server), 0);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

/* Revision 1 has no peer-to-peer model: the Reply establishes. */
static void server__revision_1(void **state)
{
	static const uint8_t request[20] = "MPA ID Req Frame\x40\x01\0";
	uint8_t reply[20];
	struct half half;

	(void)state;
	half_open_server(&half);
	raw_send(half.fd, request, sizeof(request));
	half_take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	raw_recv(half.fd, reply, sizeof(reply));
	assert_int_equal(reply[17], 1);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

#define TEST(f) cmocka_unit_test_setup(f, cm_reset_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client__silent_server),
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
