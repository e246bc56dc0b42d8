// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How an endpoint comes to be connected, or not, and how it ends.
#define _GNU_SOURCE /* POLLRDHUP */
#include "base/clock.h"
#include "ends.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define CLOSES 20
#define LATE_NS (SECOND * 9 / 10)

static void ep_create__bounds(void **state)
{
	const struct aw_xs_options least = { 1, 1, 1, 1, 1, 1, true, 1 };
	const struct aw_xs_options most = { UINT32_MAX, UINT32_MAX, UINT16_MAX, UINT16_MAX,
					    UINT32_MAX, UINT16_MAX, true,	UINT32_MAX };
	struct ends ends;

	(void)state;
	ends_open(&ends, &least);
	ends_send(ends.client, 0, 100);
	ends_recv(ends.server, 0, 100);
	ends_close(&ends);
	ends_open(&ends, &most);
	ends_close(&ends);
}

static void ep_connect__carries_octets(void **state)
{
	struct sockaddr_storage local, peer;
	struct aw_xs_stats stats;
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	ends_expect(ends.client, -EAGAIN);
	ends_send_text(ends.client, "question", 0);
	ends_recv_text(ends.server, "question", 0);
	ends_send_text(ends.server, "answer", 0);
	ends_recv_text(ends.client, "answer", 0);
	aw_xs_ep_names(ends.client, &local, &peer);
	assert_memory_equal(&((struct sockaddr_in *)&peer)->sin_port, &ends.address.sin_port, 2);
	aw_xs_ep_stats(ends.client, &stats);
	assert_int_equal(stats.state, AW_XS_ESTABLISHED);
	assert_true(stats.anywarp_peer);
	assert_int_equal(stats.bytes_out, 8);
	assert_int_equal(stats.bytes_in, 6);
	assert_in_range(stats.send_credits, 383, 384);
	ends_close(&ends);
}

/* Closed before the peer's program has come to the connection. */
static void ep_close__startup_timeout(void **state)
{
	const struct aw_xs_options options = { .startup_timeout_ms = 50 };
	struct aw_xs_ep *ep = ends_create(&options);
	struct timeval limit = { .tv_sec = LONG / SECOND };
	uint8_t octets[1024];
	ssize_t got;
	int fd[2];

	(void)state;
	ends_sockets(fd);
	assert_int_equal(aw_xs_ep_initiate(ep, fd[0]), 0);
	ends_send_text(ep, "late", 0);
	aw_xs_ep_close(ep, false);
	setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_true(recv(fd[1], octets, 20, MSG_WAITALL) == 20);
	assert_memory_equal(octets, "MPA ID Req Frame", 16);
	do
		got = recv(fd[1], octets, sizeof(octets), 0);
	while (got > 0);
	assert_true(got == 0 || errno == ECONNRESET);
	close(fd[1]);
}

static void ep_connect__once(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	assert_int_equal(aw_xs_ep_connect(ends.client, NULL, (struct sockaddr *)&ends.address),
			 -EISCONN);
	ends_close(&ends);
}

static void ep_connect__refused(void **state)
{
	struct aw_xs_ep *ep = ends_create(NULL);
	struct ends ends;

	(void)state;
	ends_bind(&ends);
	assert_int_equal(aw_xs_ep_connect(ep, NULL, (struct sockaddr *)&ends.address), 0);
	ends_wait(ep, POLLERR);
	assert_int_equal(aw_xs_ep_error(ep), ECONNREFUSED);
	assert_int_equal(aw_xs_ep_error(ep), 0);
	assert_int_equal(aw_xs_ep_state(ep), AW_XS_FAILED);
	ends_expect(ep, 0);
	aw_xs_ep_close(ep, false);
	ends_close(&ends);
}

static void ep_send__before_the_connection(void **state)
{
	struct ends ends;
	int fd[2];

	(void)state;
	memset(&ends, 0, sizeof(ends));
	ends_sockets(fd);
	ends.client = ends_create(NULL);
	ends.server = ends_create(NULL);
	ends_expect(ends.client, -ENOTCONN);
	assert_int_equal(aw_xs_ep_initiate(ends.client, fd[0]), 0);
	ends_send(ends.client, 0, 60000);
	assert_int_equal(aw_xs_ep_shutdown(ends.client, SHUT_WR), 0);
	assert_int_equal(aw_xs_ep_respond(ends.server, fd[1]), 0);
	ends_recv(ends.server, 0, 60000);
	ends_wait(ends.server, POLLRDHUP);
	ends_expect(ends.server, 0);
	ends_close(&ends);
}

static void ep_respond__no_peer_of_ours(void **state)
{
	struct aw_xs_ep *ep = ends_create(NULL);
	int fd[2];

	(void)state;
	ends_sockets(fd);
	assert_int_equal(aw_xs_ep_respond(ep, fd[1]), 0);
	assert_int_equal(write(fd[0], "GET / HTTP/1.0\r\n\r\n", 18), 18);
	ends_wait(ep, POLLERR);
	assert_int_equal(aw_xs_ep_error(ep), EPROTO);
	aw_xs_ep_close(ep, false);
	close(fd[0]);
}

static void ep_initiate__no_socket(void **state)
{
	struct aw_xs_ep *ep = ends_create(NULL);
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(aw_xs_ep_initiate(ep, fd[0]), -ENOTSOCK);
	assert_int_equal(close(fd[0]), 0);
	close(fd[1]);
	aw_xs_ep_close(ep, false);
}

static void ep_shutdown__one_way_and_the_other(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	ends_send_text(ends.client, "last", 0);
	assert_int_equal(aw_xs_ep_shutdown(ends.client, SHUT_WR), 0);
	struct iovec iov = { "x", 1 };

	assert_int_equal(aw_xs_ep_send(ends.client, &iov, 1, 0), -EPIPE);
	ends_recv_text(ends.server, "last", 0);
	ends_wait(ends.server, POLLIN | POLLRDHUP);
	ends_expect(ends.server, 0);
	assert_int_equal(aw_xs_ep_ready(ends.server) & POLLHUP, 0);
	ends_send(ends.server, 0, 100000);
	ends_recv(ends.client, 0, 100000);
	assert_int_equal(aw_xs_ep_shutdown(ends.server, SHUT_WR), 0);
	ends_wait(ends.client, POLLHUP);
	ends_expect(ends.client, 0);
	assert_int_equal(aw_xs_ep_state(ends.client), AW_XS_CLOSED);
	assert_int_equal(aw_xs_ep_error(ends.client), 0);
	assert_int_equal(aw_xs_ep_error(ends.server), 0);
	ends_close(&ends);
}

/* More than the peer has room for, and the endpoint is gone for its owner. */
static void ep_close__what_was_taken_arrives(void **state)
{
	const struct aw_xs_options options = { .sndbuf = 1 << 20, .rcvbuf = 8192 };
	struct ends ends;

	(void)state;
	ends_open(&ends, &options);
	ends_send(ends.client, 0, 1000000);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	ends_recv(ends.server, 0, 1000000);
	ends_wait(ends.server, POLLHUP);
	ends_expect(ends.server, 0);
	assert_int_equal(aw_xs_ep_error(ends.server), 0);
	ends_close(&ends);
}

/*
 * The thread that serves endpoints which linger is woken by their end. It would look at them a second later, too: a close
 * that takes as long may be the machine's doing, but not many of them.
 */
static void ep_close__is_over_at_once(void **state)
{
	const struct aw_xs_options options = { .sndbuf = 65536, .rcvbuf = 65536 };
	struct ends ends;
	int late = 0;

	(void)state;
	for (int i = 0; i < CLOSES; i++) {
		ends_open(&ends, &options);
		ends_send(ends.client, 0, 100);
		ends_recv(ends.server, 0, 100);
		int64_t start = aw_now_ns();

		ends_close(&ends);
		late += aw_now_ns() - start > LATE_NS;
	}
	assert_in_range(late, 0, CLOSES / 10);
}

/* Neither reads: the one that closed takes what comes, so that the other goes on. */
static void ep_close__peer_that_sends(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, &(struct aw_xs_options){ .sndbuf = 65536, .rcvbuf = 8192 });
	ends_send(ends.client, 0, 65536);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	ends_send(ends.server, 0, 200000);
	ends_recv(ends.server, 0, 65536);
	ends_wait(ends.server, POLLHUP);
	ends_expect(ends.server, 0);
	ends_close(&ends);
}

static void ep_close__abort(void **state)
{
	struct ends ends;

	(void)state;
	ends_open(&ends, NULL);
	aw_xs_ep_close(ends.client, true);
	ends.client = NULL;
	ends_wait(ends.server, POLLERR);
	ends_expect(ends.server, -ECONNRESET);
	ends_expect(ends.server, 0);
	ends_close(&ends);
}

static void *close_later(void *arg)
{
	aw_xs_ep_close(arg, false);
	return NULL;
}

static void ep_wait__peer_closes(void **state)
{
	struct ends ends;
	pthread_t thread;

	(void)state;
	ends_open(&ends, NULL);
	assert_int_equal(pthread_create(&thread, NULL, close_later, ends.client), 0);
	ends.client = NULL;
	assert_int_equal(aw_xs_ep_wait(ends.server, POLLIN, -1) & POLLHUP, POLLHUP);
	pthread_join(thread, NULL);
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_create__bounds),
		cmocka_unit_test(ep_connect__carries_octets),
		cmocka_unit_test(ep_connect__once),
		cmocka_unit_test(ep_close__startup_timeout),
		cmocka_unit_test(ep_connect__refused),
		cmocka_unit_test(ep_send__before_the_connection),
		cmocka_unit_test(ep_respond__no_peer_of_ours),
		cmocka_unit_test(ep_initiate__no_socket),
		cmocka_unit_test(ep_shutdown__one_way_and_the_other),
		cmocka_unit_test(ep_close__what_was_taken_arrives),
		cmocka_unit_test(ep_close__is_over_at_once),
		cmocka_unit_test(ep_close__peer_that_sends),
		cmocka_unit_test(ep_close__abort),
		cmocka_unit_test(ep_wait__peer_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
