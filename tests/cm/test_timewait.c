// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMA_CM_EVENT_TIMEWAIT_EXIT: after DISCONNECTED, once, on both ends, when the QP can be used
// again; and never behind the program's back.
#include "cm.h"
#include "half.h"
#include "raw.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SHORT_MS 20
#define LONG_MS 60000
#define MUCH (64u << 20) /* octets: more than two sockets take */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* No event in this time. */
static void stays_quiet(struct rdma_event_channel *channel, int ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, ms), 0);
}

static void both_open(struct cm_ends *ends)
{
	cm_ends_open(ends, "127.0.0.1");
	cm_ends_connect(ends);
}

static void timewait__once_on_both_ends(void **state)
{
	struct cm_ends ends;

	(void)state;
	both_open(&ends);
	cm_ends_disconnect(&ends);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	stays_quiet(ends.active, 5 * SHORT_MS);
	stays_quiet(ends.passive, 5 * SHORT_MS);
	cm_ends_close(&ends);
}

/* The end that never calls rdma_disconnect gets it too: its QP closed by itself. */
static void timewait__only_one_end_disconnects(void **state)
{
	struct cm_ends ends;

	(void)state;
	both_open(&ends);
	assert_int_equal(rdma_disconnect(ends.client), 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_ends_close(&ends);
}

static void timewait__not_before_its_time(void **state)
{
	struct cm_ends ends;
	int64_t start;

	(void)state;
	cm_set_timewait_ms(300);
	both_open(&ends);
	start = now_ms();
	cm_ends_disconnect(&ends);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_true(now_ms() - start >= 299);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_ends_close(&ends);
}

/* What the event promises: the QP is taken by another connection. */
static void timewait__qp_is_ready(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct cm_ends ends;
	struct rdma_cm_id *again;

	(void)state;
	both_open(&ends);
	cm_ends_disconnect(&ends);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_int_equal(ibv_modify_qp(ends.client->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	assert_int_equal(ibv_modify_qp(ends.client->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	again = cm_resolved(ends.active, "127.0.0.1", cm_port(ends.listener));
	rdma_destroy_qp(again);
	struct rdma_conn_param param = { .qp_num = ends.client->qp->qp_num };

	assert_int_equal(rdma_connect(again, &param), 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	struct rdma_cm_event *event = cm_expect(ends.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *server = event->id;

	rdma_ack_cm_event(event);
	cm_make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	cm_destroy(again);
	cm_destroy(server);
	cm_ends_close(&ends);
}

/*
 * The peer closed its half, but does not take what is still to be sent to it: DISCONNECTED, but
 * the QP cannot be used again yet.
 */
static void timewait__waits_for_the_stream(void **state)
{
	char *octets = calloc(1, MUCH);
	struct half half;

	(void)state;
	half_established(&half);
	struct ibv_mr *mr = rdma_reg_msgs(half.server, octets, MUCH);

	assert_int_equal(rdma_post_send(half.server, NULL, octets, MUCH, mr, 0), 0);
	assert_int_equal(shutdown(half.fd, SHUT_WR), 0);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	stays_quiet(half.channel, 5 * SHORT_MS);
	raw_reset(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	rdma_dereg_mr(mr);
	half_close(&half);
	free(octets);
}

/* The peer is reset away. */
static void timewait__after_a_reset(void **state)
{
	struct half half;

	(void)state;
	half_established(&half);
	raw_reset(half.fd);
	half.fd = -1;
	cm_expect_ack(half.channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	half_close(&half);
}

static void timewait__qp_destroyed_meanwhile(void **state)
{
	struct cm_ends ends;

	(void)state;
	both_open(&ends);
	rdma_destroy_qp(ends.client);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_ends_close(&ends);
}

/* An id that goes in time takes its event along, raised or not: cm_ends_close finds none. */
static void timewait__destroy_purges(void **state)
{
	struct cm_ends ends;

	(void)state;
	for (int i = 0; i < 20; i++) {
		cm_set_timewait_ms(i % 2 ? 1 : LONG_MS);
		both_open(&ends);
		cm_ends_disconnect(&ends);
		if (i % 4 == 1)
			cm_expect_ack(ends.active, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		cm_ends_close(&ends);
	}
}

/* A connection that never was has no timewait. */
static void timewait__not_after_a_rejection(void **state)
{
	struct cm_ends ends;

	(void)state;
	cm_ends_open(&ends, "127.0.0.1");
	cm_ends_request(&ends);
	assert_int_equal(rdma_reject(ends.server, NULL, 0), 0);
	cm_expect_ack(ends.active, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
	stays_quiet(ends.active, 5 * SHORT_MS);
	stays_quiet(ends.passive, 5 * SHORT_MS);
	cm_ends_close(&ends);
}

/* It follows the id to another channel. */
static void timewait__after_migration(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct cm_ends ends;

	(void)state;
	cm_set_timewait_ms(100);
	both_open(&ends);
	cm_ends_disconnect(&ends);
	assert_int_equal(rdma_migrate_id(ends.client, other), 0);
	cm_expect_ack(other, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	stays_quiet(ends.active, 0);
	cm_ends_close(&ends);
	rdma_destroy_event_channel(other);
}

/* rdma_disconnect of a synchronous id takes DISCONNECTED and nothing else, however late. */
static void timewait__synchronous(void **state)
{
	struct rdma_cm_id *client;
	struct cm_ends ends;

	(void)state;
	both_open(&ends);
	assert_int_equal(rdma_migrate_id(ends.client, NULL), 0);
	client = ends.client;
	assert_int_equal(rdma_disconnect(ends.server), 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(ends.passive, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	stays_quiet(ends.passive, 5 * SHORT_MS);
	assert_int_equal(rdma_disconnect(client), 0);
	assert_int_equal(client->event->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(client), 0);
	assert_int_equal(client->event->event, RDMA_CM_EVENT_DISCONNECTED);
	cm_ends_close(&ends);
}

static int short_bounds(void **state)
{
	(void)state;
	cm_set_timewait_ms(SHORT_MS);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, short_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timewait__once_on_both_ends),
		TEST(timewait__only_one_end_disconnects),
		TEST(timewait__not_before_its_time),
		TEST(timewait__qp_is_ready),
		TEST(timewait__waits_for_the_stream),
		TEST(timewait__after_a_reset),
		TEST(timewait__qp_destroyed_meanwhile),
		TEST(timewait__destroy_purges),
		TEST(timewait__not_after_a_rejection),
		TEST(timewait__after_migration),
		TEST(timewait__synchronous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
