// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// anywarp_cm_initiate and anywarp_cm_respond where something is wrong: the id, the socket, the peer.
#include "anywarp/cm.h"
#include "given.h"
#include "half.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int give_fn(struct rdma_cm_id *id, int fd);
static give_fn *const gives[] = { anywarp_cm_initiate, anywarp_cm_respond };

static void expect_error(int ret, int err)
{
	assert_int_equal(ret, -1);
	assert_int_equal(errno, err);
}

/* The fd is the program's still, and as it was. */
static void expect_refused(give_fn *give, struct rdma_cm_id *id, int fd, int err)
{
	int flags = fcntl(fd, F_GETFL), closes = fcntl(fd, F_GETFD);

	expect_error(give(id, fd), err);
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	assert_int_equal(fcntl(fd, F_GETFD), closes);
}

static void adopt__wrong_id(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *bound = cm_bound(channel, "127.0.0.1");
	struct rdma_cm_id *listener = cm_listener(channel, "127.0.0.1", 0);
	struct rdma_cm_id *given = given_id(channel);
	int fds[2];

	(void)state;
	given_pair(fds);
	assert_int_equal(anywarp_cm_initiate(given, fds[1]), 0);
	for (int i = 0; i < 2; i++) {
		expect_refused(gives[i], NULL, fds[0], EINVAL);
		expect_refused(gives[i], bound, fds[0], EINVAL);
		expect_refused(gives[i], listener, fds[0], EINVAL);
		expect_refused(gives[i], given, fds[0], EINVAL);
	}
	close(fds[0]);
	rdma_destroy_id(bound);
	rdma_destroy_id(listener);
	rdma_destroy_id(given);
	cm_expect_none(channel);
	rdma_destroy_event_channel(channel);
}

static void adopt__wrong_socket(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = given_id(channel);
	int pair[2], pipes[2], listener, idle = socket(AF_INET, SOCK_STREAM, 0);
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	uint16_t port;

	(void)state;
	listener = raw_listen(&port);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i < 2; i++) {
		expect_refused(gives[i], id, -1, EBADF);
		expect_refused(gives[i], id, pipes[0], ENOTSOCK);
		expect_refused(gives[i], id, pair[0], EPROTONOSUPPORT);
		expect_refused(gives[i], id, udp, EPROTONOSUPPORT);
		expect_refused(gives[i], id, listener, ENOTCONN);
		expect_refused(gives[i], id, idle, ENOTCONN);
	}
	close(pair[0]), close(pair[1]), close(pipes[0]), close(pipes[1]);
	close(listener), close(idle), close(udp);
	/* None of it has spoiled the id. */
	given_pair(pair);
	assert_int_equal(anywarp_cm_initiate(id, pair[0]), 0);
	rdma_destroy_id(id);
	raw_expect_end(pair[1]);
	close(pair[1]);
	rdma_destroy_event_channel(channel);
}

static void hang_up(struct half *half)
{
	close(half->fd);
	half->fd = -1;
}

/* There is no other connection to ask for revision 1 over: what the program hears is the first failure. */
static void adopt__initiator_is_left(void **state)
{
	struct half half;

	(void)state;
	given_open_initiator(&half);
	hang_up(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	half_close(&half);
}

static void adopt__initiator_hears_revision_1(void **state)
{
	static const uint8_t reply[RAW_PLAIN_LEN] = "MPA ID Rep Frame\x40\x01\0";
	struct half half;

	(void)state;
	given_open_initiator(&half);
	raw_send(half.fd, reply, sizeof(reply));
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	raw_expect_end(half.fd);
	half_close(&half);
}

static void adopt__initiator_hears_garbage(void **state)
{
	struct half half;

	(void)state;
	given_open_initiator(&half);
	raw_send(half.fd, "220 ftp.example ready at last\r\n", 31);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

/* It was left before rdma_connect. */
static void adopt__initiator_was_reset(void **state)
{
	struct half half = { .fd = -1, .listener = -1 };
	int fds[2];

	(void)state;
	given_pair(fds);
	half.channel = rdma_create_event_channel();
	half.id = given_id(half.channel);
	assert_int_equal(anywarp_cm_initiate(half.id, fds[0]), 0);
	cm_make_qp(half.id);
	raw_reset(fds[1]);
	assert_int_equal(rdma_connect(half.id, NULL), 0);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	half_close(&half);
}

static void adopt__initiator_without_a_qp(void **state)
{
	struct half half = { .listener = -1 };
	int fds[2];

	(void)state;
	given_pair(fds);
	half.fd = fds[1];
	half.channel = rdma_create_event_channel();
	half.id = given_id(half.channel);
	assert_int_equal(anywarp_cm_initiate(half.id, fds[0]), 0);
	expect_error(rdma_connect(half.id, NULL), EINVAL);
	cm_make_qp(half.id);
	assert_int_equal(rdma_connect(half.id, NULL), 0);
	raw_recv(half.fd, (uint8_t[RAW_REQUEST_LEN]){ 0 }, RAW_REQUEST_LEN);
	half_close(&half);
}

static void adopt__responder_is_left(void **state)
{
	struct half half;

	(void)state;
	given_open_responder(&half);
	raw_send(half.fd, raw_request, 7);
	hang_up(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	half_close(&half);
}

static void adopt__responder_hears_garbage(void **state)
{
	struct half half;

	(void)state;
	given_open_responder(&half);
	raw_send(half.fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	half_close(&half);
}

/* A synchronous listener's rdma_get_request has no id to return, and keeps the event. */
static void adopt__synchronous_responder_hears_garbage(void **state)
{
	struct rdma_cm_id *listener, *id = NULL;
	int fds[2];

	(void)state;
	given_pair(fds);
	assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(anywarp_cm_respond(listener, fds[0]), 0);
	raw_send(fds[1], "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
	expect_error(rdma_get_request(listener, &id), EPROTO);
	assert_null(id);
	assert_int_equal(listener->event->event, RDMA_CM_EVENT_CONNECT_ERROR);
	rdma_destroy_id(listener);
	close(fds[1]);
}

/* One that fails leaves the others, and the id, alone. */
static void adopt__responder_goes_on(void **state)
{
	struct half half;
	int fds[2];

	(void)state;
	given_open_responder(&half);
	given_pair(fds);
	assert_int_equal(anywarp_cm_respond(half.id, fds[1]), 0);
	hang_up(&half);
	cm_expect_ack(half.channel, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
	half.fd = fds[0];
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	half_take_request(&half);
	assert_int_equal(rdma_accept(half.server, NULL), 0);
	half_close(&half);
}

static void adopt__destroyed_initiator(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(10 * EVENT_MS); /* nothing else may end it */
	given_open_initiator(&half);
	cm_destroy(half.id);
	half.id = NULL;
	raw_expect_end(half.fd);
	half_close(&half);
}

static void adopt__destroyed_responder(void **state)
{
	struct half half;

	(void)state;
	cm_set_startup_ms(10 * EVENT_MS); /* nothing else may end it */
	given_open_responder(&half);
	rdma_destroy_id(half.id);
	half.id = NULL;
	raw_expect_end(half.fd);
	half_close(&half);
}

/* A Request that the program has not taken is rejected when the id goes. */
static void adopt__destroyed_with_a_request(void **state)
{
	uint8_t reply[RAW_REQUEST_LEN];
	struct half half;

	(void)state;
	given_open_responder(&half);
	raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
	struct pollfd pfd = { .fd = half.channel->fd, .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, EVENT_MS), 1);
	rdma_destroy_id(half.id);
	half.id = NULL;
	raw_recv(half.fd, reply, sizeof(reply));
	assert_memory_equal(reply, "MPA ID Rep Frame", 16);
	assert_int_equal(reply[16] & 0x20, 0x20);
	raw_expect_end(half.fd);
	half_close(&half);
}

/* And at any moment around a start-up. */
static void adopt__destroyed_at_any_time(void **state)
{
	struct half half;

	(void)state;
	for (int i = 0; i < 200; i++) {
		if (i & 1)
			given_open_initiator(&half);
		else
			given_open_responder(&half);
		if (i & 2)
			raw_send(half.fd, raw_request, RAW_REQUEST_LEN);
		else
			raw_reset(half.fd);
		if (!(i & 2))
			half.fd = -1;
		if (i % 3 == 0)
			usleep((useconds_t)(i * 2)); /* to meet other moments, not to wait */
		half_close(&half);
	}
}

#define TEST(f) cmocka_unit_test_setup(f, cm_reset_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(adopt__wrong_id),
		TEST(adopt__wrong_socket),
		TEST(adopt__initiator_is_left),
		TEST(adopt__initiator_hears_revision_1),
		TEST(adopt__initiator_hears_garbage),
		TEST(adopt__initiator_was_reset),
		TEST(adopt__initiator_without_a_qp),
		TEST(adopt__responder_is_left),
		TEST(adopt__responder_hears_garbage),
		TEST(adopt__synchronous_responder_hears_garbage),
		TEST(adopt__responder_goes_on),
		TEST(adopt__destroyed_initiator),
		TEST(adopt__destroyed_responder),
		TEST(adopt__destroyed_with_a_request),
		TEST(adopt__destroyed_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
