// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer on a given socket whose program comes late: it is waited for as TCP waits, but a frame that it has begun
// must come in time. That the time is over is seen by a connection of rdma_cm's own, begun later, which ends by it.
#include "anywarp/cm.h"
#include "given.h"
#include "raw.h"
#include "start_up.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORT_MS 30
#define LONG_PD 512 /* octets of private data */
#define DRIP_MS 10
#define DRIPS_MAX 400 /* many times the bound, and not yet the frame */

/* Everything that was begun before, and is bounded, has failed. */
static void outlast_start_up(void)
{
	struct half other;

	half_open_client(&other);
	cm_expect_ack(other.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	half_close(&other);
}

static struct half waiting;

static void wait_for_reply(void)
{
	given_open_initiator(&waiting);
	outlast_start_up();
}

static void wait_for_request(void)
{
	given_open_responder(&waiting);
	outlast_start_up();
}

static void late__reply(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	wait_for_reply();
	cm_expect_none(waiting.channel);
	send_reply(waiting.fd, C, WRITE, 1);
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	half_close(&waiting);
}

static void late__request(void **state)
{
	uint8_t reply[RAW_REQUEST_LEN];

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	wait_for_request();
	cm_expect_none(waiting.channel);
	raw_send(waiting.fd, raw_request, sizeof(raw_request));
	half_take_request(&waiting);
	assert_int_equal(rdma_accept(waiting.server, NULL), 0);
	raw_recv(waiting.fd, reply, sizeof(reply));
	/* The first FPDU may be as late. */
	outlast_start_up();
	cm_expect_none(waiting.channel);
	raw_send_fpdu(waiting.fd, raw_rtr_write, RAW_RTR_WRITE_LEN);
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	half_close(&waiting);
}

/* Who wonders why nothing happens finds it in the log. */
static void late__log_tells(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	cm_expect_log(wait_for_reply, ": no mpa reply yet");
	half_close(&waiting);
	cm_expect_log(wait_for_request, ": no mpa request yet");
	half_close(&waiting);
}

static void late__half_a_reply(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	wait_for_reply();
	raw_send(waiting.fd, "MPA ID Rep", 10);
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	raw_expect_end(waiting.fd);
	half_close(&waiting);
}

static void late__half_a_request(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	wait_for_request();
	raw_send(waiting.fd, raw_request, 1);
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	raw_expect_end(waiting.fd);
	half_close(&waiting);
}

static bool has_event(const struct half *half, int timeout_ms)
{
	struct pollfd pfd = { .fd = half->channel->fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) > 0;
}

/* Each further octet gains nothing. */
static void late__dripping_request(void **state)
{
	uint8_t frame[RAW_REQUEST_LEN];
	int drips = 0;

	(void)state;
	cm_set_startup_ms(10 * SHORT_MS);
	given_open_responder(&waiting);
	memcpy(frame, raw_request, sizeof(frame));
	frame[18] = LONG_PD >> 8;
	frame[19] = LONG_PD & 0xff;
	raw_send(waiting.fd, frame, sizeof(frame));
	for (; drips < DRIPS_MAX && !has_event(&waiting, DRIP_MS); drips++)
		raw_send(waiting.fd, "x", 1);
	assert_true(drips < DRIPS_MAX);
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
	half_close(&waiting);
}

/* It would wait for ever, and nobody could end it. */
static void late__synchronous_accept(void **state)
{
	struct rdma_cm_id *listener, *server;
	struct ibv_qp_init_attr attr = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	int fds[2];

	(void)state;
	cm_set_startup_ms(SHORT_MS);
	given_pair(fds);
	assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(anywarp_cm_respond(listener, fds[0]), 0);
	raw_send(fds[1], raw_request, sizeof(raw_request));
	assert_int_equal(rdma_get_request(listener, &server), 0);
	assert_int_equal(rdma_create_qp(server, NULL, &attr), 0);
	assert_int_equal(rdma_accept(server, NULL), -1);
	assert_int_equal(errno, ETIMEDOUT);
	cm_destroy(server);
	rdma_destroy_id(listener);
	close(fds[1]);
}

/* The end of the wait is the peer's, or our own. */
static void late__peer_leaves(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	wait_for_reply();
	close(waiting.fd);
	waiting.fd = -1;
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	half_close(&waiting);
	wait_for_request();
	close(waiting.fd);
	waiting.fd = -1;
	cm_expect_ack(waiting.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	half_close(&waiting);
}

static void late__destroyed(void **state)
{
	(void)state;
	cm_set_startup_ms(SHORT_MS);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			wait_for_reply();
		else
			wait_for_request();
		cm_destroy(waiting.id);
		waiting.id = NULL;
		raw_expect_end(waiting.fd);
		half_close(&waiting);
	}
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(late__reply),
		TEST(late__request),
		TEST(late__log_tells),
		TEST(late__half_a_reply),
		TEST(late__half_a_request),
		TEST(late__dripping_request),
		TEST(late__synchronous_accept),
		TEST(late__peer_leaves),
		TEST(late__destroyed),
	};

	setenv("ANYWARP_LOG", "info", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
