// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a program, and who reads the log, hear of a stream's end: graceful, half-closed, reset, and
// by a Terminate either way.
#include "cm.h"
#include "half.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first that is more than the news of the peer's first message. */
static void expect_async(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_COMM_EST };

	while (event.event_type == IBV_EVENT_COMM_EST) {
		assert_int_equal(ibv_get_async_event(context, &event), 0);
		ibv_ack_async_event(&event);
	}
	assert_int_equal(event.event_type, type);
}

/* RFC 5040 4.8: layer, type and code, no headers. */
static void send_terminate(int fd, uint8_t layer_type, uint8_t code)
{
	const uint8_t ulpdu[18 + 4] = {
		0x41, 0x47, [9] = 2, [13] = 1, [18] = layer_type, [19] = code
	};

	raw_send_fpdu(fd, ulpdu, sizeof(ulpdu));
}

static void end__graceful(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	assert_int_equal(rdma_disconnect(half.server), 0);
	raw_expect_end(half.fd);
	close(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

/* The peer's half is closed: ours follows, and the peer sees our FIN. */
static void end__half_closed(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	assert_int_equal(shutdown(half.fd, SHUT_WR), 0);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void be_reset(void)
{
	struct half half;

	half_established(&half);
	raw_reset(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	half_close(&half);
}

static void log_reset(void)
{
	cm_expect_log(be_reset, ": peer vanished: mpa: tcp connection closed, terminated or lost");
}

static void end__reset(void **state)
{
	(void)state;
	assert_int_equal(cm_in_child(log_reset), 0);
}

static void hear_terminate(void)
{
	struct ibv_recv_wr *bad, wr = { 0 };
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	struct half half;

	half_established(&half);
	assert_int_equal(ibv_post_recv(half.server->qp, &wr, &bad), 0);
	send_terminate(half.fd, 0x01, 0x02);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, -EREMOTEIO);
	expect_async(half.server->verbs, IBV_EVENT_QP_FATAL);
	assert_int_equal(rdma_get_recv_comp(half.server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	raw_expect_end(half.fd);
	half_close(&half);
}

/* The QP, the peer, whose error it was, in words and in numbers. */
static void log_terminate(void)
{
	cm_expect_log(hear_terminate, "warn: qp 0x");
	cm_expect_log(hear_terminate, " peer 127.0.0.1:");
	cm_expect_log(hear_terminate, ": peer terminated the stream: "
				      "rdmap: access rights violation (0/1/0x02)\n");
}

static void end__terminate_received(void **state)
{
	(void)state;
	assert_int_equal(cm_in_child(log_terminate), 0);
}

static void hear_odd_terminate(void)
{
	struct half half;

	half_established(&half);
	send_terminate(half.fd, 0x13, 0x77);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, -EREMOTEIO);
	half_close(&half);
}

/* A code that no RFC has is told by its numbers. */
static void log_odd_terminate(void)
{
	cm_expect_log(hear_odd_terminate, "unknown error (1/3/0x77)\n");
}

static void end__unknown_terminate_received(void **state)
{
	(void)state;
	assert_int_equal(cm_in_child(log_odd_terminate), 0);
}

/* A Send for which no receive is posted. */
static void cause_terminate(void)
{
	static const uint8_t send[18 + 1] = { 0x41, 0x43, [13] = 1 };
	uint8_t ulpdu[RAW_ULPDU_MAX];
	struct half half;

	half_established(&half);
	raw_send_fpdu(half.fd, send, sizeof(send));
	assert_true(raw_recv_fpdu(half.fd, ulpdu) >= 18 + 4);
	assert_int_equal(ulpdu[1] & 0xf, 7);
	assert_int_equal(ulpdu[18], 0x12);
	assert_int_equal(ulpdu[19], 0x02);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, -EPROTO);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void log_cause(void)
{
	cm_expect_log(cause_terminate, ": stream terminated, by an error of the peer: "
				       "ddp: no buffer available (1/2/0x02)\n");
}

static void end__terminate_sent(void **state)
{
	(void)state;
	assert_int_equal(cm_in_child(log_cause), 0);
}

/* A synchronous id learns it from rdma_disconnect. */
static void end__terminate_received_synchronously(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	assert_int_equal(rdma_migrate_id(half.server, NULL), 0);
	send_terminate(half.fd, 0x01, 0x02);
	raw_expect_end(half.fd);
	expect_async(half.server->verbs, IBV_EVENT_QP_FATAL);
	errno = 0;
	while (rdma_disconnect(half.server) == 0 && !half.server->event)
		;
	assert_int_equal(errno, EREMOTEIO);
	assert_int_equal(half.server->event->event, RDMA_CM_EVENT_DISCONNECTED);
	half_close(&half);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First those whose children need a process that never called the library. */
		cmocka_unit_test(end__reset),
		cmocka_unit_test(end__terminate_received),
		cmocka_unit_test(end__unknown_terminate_received),
		cmocka_unit_test(end__terminate_sent),
		cmocka_unit_test(end__graceful),
		cmocka_unit_test(end__half_closed),
		cmocka_unit_test(end__terminate_received_synchronously),
	};

	setenv("ANYWARP_LOG", "info", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
