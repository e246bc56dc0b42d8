// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsend and rrecv with all their like: what is sent is what comes, whatever the pieces; waiting and not
// waiting; the ends of the stream.
#include "rs.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define BIG (3 * 1000 * 1000)

static unsigned char octet_at(size_t i)
{
	return (unsigned char)(i * 2654435761U >> 13);
}

/* One direction of a stream, in pieces of random size; fd is used by another thread as well. */
struct flow {
	int fd;
	size_t count;
	unsigned int seed;
	bool waits; // else it asks rpoll
};

static size_t piece_of(struct flow *flow, size_t done)
{
	size_t most = (size_t)rand_r(&flow->seed) % 4 ? 3000 : 200000, piece;

	piece = 1 + (size_t)rand_r(&flow->seed) % most;
	return piece < flow->count - done ? piece : flow->count - done;
}

static ssize_t send_piece(const struct flow *flow, const void *octets, size_t len)
{
	ssize_t sent = rsend(flow->fd, octets, len, flow->waits ? 0 : MSG_DONTWAIT);

	if (sent < 0 && errno == EAGAIN && !flow->waits) {
		assert_int_equal(rs_poll_one(flow->fd, POLLOUT), POLLOUT);
		return 0;
	}
	assert_true(sent > 0);
	assert_true(!flow->waits || (size_t)sent == len);
	return sent;
}

static void *send_flow(void *arg)
{
	struct flow *flow = arg;
	unsigned char *octets = malloc(flow->count);
	size_t done = 0;

	for (size_t i = 0; i < flow->count; i++)
		octets[i] = octet_at(i);
	while (done < flow->count)
		done += (size_t)send_piece(flow, octets + done, piece_of(flow, done));
	free(octets);
	return NULL;
}

static void *recv_flow(void *arg)
{
	struct flow *flow = arg;
	unsigned char *octets = malloc(200000);
	size_t done = 0;

	while (done < flow->count) {
		ssize_t got = rrecv(flow->fd, octets, piece_of(flow, done),
				    flow->waits ? 0 : MSG_DONTWAIT);

		if (got < 0 && errno == EAGAIN && !flow->waits) {
			assert_int_equal(rs_poll_one(flow->fd, POLLIN), POLLIN);
			continue;
		}
		assert_true(got > 0);
		for (ssize_t i = 0; i < got; i++)
			assert_int_equal(octets[i], octet_at(done + (size_t)i));
		done += (size_t)got;
	}
	free(octets);
	return NULL;
}

/* Both directions at once, four threads. */
static void both_ways(bool waits)
{
	struct rs_ends ends;
	struct flow flows[4];
	pthread_t threads[4];

	rs_open(&ends);
	for (unsigned int i = 0; i < 4; i++) {
		flows[i] = (struct flow){ i < 2 ? ends.client : ends.server, BIG, i + 1, waits };
		pthread_create(&threads[i], NULL, i % 2 ? recv_flow : send_flow, &flows[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	rs_close(&ends);
}

static void stream__both_ways_by_waiting(void **state)
{
	(void)state;
	both_ways(true);
}

static void stream__both_ways_by_rpoll(void **state)
{
	(void)state;
	both_ways(false);
}

static void stream__by_every_call(void **state)
{
	struct rs_ends ends;
	char a[3] = "", b[4] = "", from[sizeof(struct sockaddr_in)];
	socklen_t len = sizeof(from);
	struct iovec out[] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 } };
	struct iovec in[] = { { a, 2 }, { b, 3 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 3 };

	(void)state;
	rs_open(&ends);
	assert_int_equal(rwrite(ends.client, "abcde", 5), 5);
	assert_int_equal(rread(ends.server, a, 2), 2);
	assert_int_equal(rrecvfrom(ends.server, b, 3, MSG_WAITALL, (void *)from, &len), 3);
	assert_int_equal(len, sizeof(from));
	assert_string_equal(a, "ab");
	assert_string_equal(b, "cde");
	assert_int_equal(rwritev(ends.client, out, 3), 5);
	assert_int_equal(rreadv(ends.server, in, 2), 5);
	assert_string_equal(b, "cde");
	assert_int_equal(rsendmsg(ends.client, &msg, 0), 5);
	assert_int_equal(rsendto(ends.client, "f", 1, 0, NULL, 0), 1);
	msg = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2 };
	assert_int_equal(rrecvmsg(ends.server, &msg, MSG_WAITALL), 5);
	assert_string_equal(b, "cde");
	rs_recv_all(ends.server, a, 1);
	assert_int_equal(a[0], 'f');
	rs_close(&ends);
}

static void stream__refusals(void **state)
{
	struct rs_ends ends;
	struct sockaddr_in addr = rs_address(1);
	struct iovec iov = { "x", (size_t)-1 };
	struct msghdr msg = { .msg_control = &iov, .msg_controllen = 16 };

	(void)state;
	rs_open(&ends);
	rs_fails(rsendto(ends.client, "x", 1, 0, (void *)&addr, sizeof(addr)), EISCONN);
	rs_fails(rsendmsg(ends.client, &msg, 0), ENOTSUP);
	rs_fails(rwritev(ends.client, &iov, 1), EINVAL);
	rs_fails(rwritev(ends.client, &iov, -1), EINVAL);
	rs_fails(rwritev(ends.client, &iov, 1000000), EINVAL);
	assert_int_equal(rsend(ends.client, NULL, 0, 0), 0);
	assert_int_equal(rrecv(ends.client, NULL, 0, 0), 0);
	rs_close(&ends);
}

static void rrecv__peeks(void **state)
{
	struct rs_ends ends;
	char octets[8] = "";

	(void)state;
	rs_open(&ends);
	rs_send_all(ends.client, "peek", 4);
	assert_int_equal(rs_poll_one(ends.server, POLLIN), POLLIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rrecv(ends.server, octets, 2, MSG_PEEK), 2);
		assert_memory_equal(octets, "pe", 2);
	}
	rs_recv_all(ends.server, octets, 4);
	assert_string_equal(octets, "peek");
	rs_fails(rrecv(ends.server, octets, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	rs_close(&ends);
}

static void rrecv__does_not_wait(void **state)
{
	struct timeval time = { .tv_usec = 20000 };
	struct rs_ends ends;
	char octet;

	(void)state;
	rs_open(&ends);
	rs_fails(rrecv(ends.server, &octet, 1, MSG_DONTWAIT), EAGAIN);
	assert_int_equal(rsetsockopt(ends.server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	rs_fails(rrecv(ends.server, &octet, 1, 0), EAGAIN);
	rs_unblock(ends.server);
	rs_fails(rrecv(ends.server, &octet, 1, MSG_WAITALL), EAGAIN);
	assert_int_equal(rfcntl(ends.server, F_GETFL), O_RDWR | O_NONBLOCK);
	rs_close(&ends);
}

static void on_signal(int number)
{
	(void)number;
}

/* 0: no more. */
static void interrupt_every(suseconds_t us)
{
	struct itimerval timer = { .it_value.tv_usec = us, .it_interval.tv_usec = us };

	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* What is there already is returned instead. */
static void rrecv__is_interrupted(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct rs_ends ends;
	char octets[2];

	(void)state;
	rs_open(&ends);
	sigaction(SIGALRM, &action, &before);
	interrupt_every(20000);
	rs_fails(rrecv(ends.server, octets, 1, 0), EINTR);
	interrupt_every(0);
	rs_send_all(ends.client, "x", 1);
	assert_int_equal(rs_poll_one(ends.server, POLLIN), POLLIN);
	interrupt_every(20000);
	assert_int_equal(rrecv(ends.server, octets, 2, MSG_WAITALL), 1);
	interrupt_every(0);
	sigaction(SIGALRM, &before, NULL);
	rs_close(&ends);
}

/* A full stream takes nothing until somebody reads. */
static void rsend__does_not_wait(void **state)
{
	struct timeval time = { .tv_usec = 20000 };
	struct rs_ends ends;
	char *octets = calloc(1, BIG);
	size_t sent = 0, got = 0;
	ssize_t step;

	(void)state;
	rs_open(&ends);
	while ((step = rsend(ends.client, octets, BIG, MSG_DONTWAIT)) > 0)
		sent += (size_t)step;
	assert_int_equal(errno, EAGAIN);
	assert_true(sent > 0);
	assert_int_equal(rsetsockopt(ends.client, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), 0);
	while ((step = rsend(ends.client, octets, BIG, 0)) > 0)
		sent += (size_t)step;
	assert_int_equal(errno, EAGAIN);
	rs_unblock(ends.client);
	while (got < sent) {
		step = rrecv(ends.server, octets, BIG, 0);
		assert_true(step > 0);
		got += (size_t)step;
	}
	assert_int_equal(got, sent);
	assert_int_equal(rs_poll_one(ends.client, POLLOUT), POLLOUT);
	free(octets);
	rs_close(&ends);
}

static void rshutdown__one_way(void **state)
{
	struct rs_ends ends;
	char octets[3];

	(void)state;
	rs_open(&ends);
	rs_send_all(ends.client, "end", 3);
	assert_int_equal(rshutdown(ends.client, SHUT_WR), 0);
	rs_fails(rsend(ends.client, "x", 1, 0), EPIPE);
	rs_recv_all(ends.server, octets, 3);
	assert_int_equal(rrecv(ends.server, octets, 1, 0), 0);
	errno = EAGAIN; /* which rstream takes for "ask again", after a return of 0 as well */
	assert_int_equal(rrecv(ends.server, octets, 1, 0), 0);
	assert_int_not_equal(errno, EAGAIN);
	assert_true(rs_poll_one(ends.server, POLLIN) & POLLIN);
	rs_send_all(ends.server, "yes", 3);
	rs_recv_all(ends.client, octets, 3);
	rs_fails(rshutdown(ends.client, 7), EINVAL);
	rs_close(&ends);
}

static void rclose__what_was_sent_arrives(void **state)
{
	struct rs_ends ends;
	char *octets = malloc(BIG);

	(void)state;
	rs_open(&ends);
	memset(octets, 'z', BIG);
	rs_send_all(ends.client, octets, 60000);
	assert_int_equal(rclose(ends.client), 0);
	rs_recv_all(ends.server, octets, 60000);
	assert_int_equal(rrecv(ends.server, octets, 1, 0), 0);
	assert_int_equal(rclose(ends.server), 0);
	assert_int_equal(rclose(ends.listener), 0);
	free(octets);
}

/* No signal, an error: rsend fails sooner or later once nobody is there to read. */
static void rsend__to_nobody(void **state)
{
	struct rs_ends ends;
	char *octets = calloc(1, 60000);
	int i;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rclose(ends.server), 0);
	for (i = 0; i < 1000 && rsend(ends.client, octets, 60000, 0) > 0; i++)
		;
	assert_true(i < 1000);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	assert_true(rs_poll_one(ends.client, POLLOUT) & (POLLERR | POLLHUP));
	assert_int_equal(rclose(ends.client), 0);
	assert_int_equal(rclose(ends.listener), 0);
	free(octets);
}

static void rclose__by_reset(void **state)
{
	struct linger linger = { .l_onoff = 1 };
	struct rs_ends ends;
	char octet;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rsetsockopt(ends.client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)),
			 0);
	assert_int_equal(rclose(ends.client), 0);
	rs_fails(rrecv(ends.server, &octet, 1, 0), ECONNRESET);
	assert_int_equal(rclose(ends.server), 0);
	assert_int_equal(rclose(ends.listener), 0);
}

static void *recv_until_closed(void *fd)
{
	char octet;

	return (void *)(uintptr_t)(rrecv(*(int *)fd, &octet, 1, 0) == -1 ? errno : 0);
}

/* A thread that waits in a call gets EBADF, and does not keep the connection. */
static void rclose__by_reset_beside_a_read(void **state)
{
	struct linger linger = { .l_onoff = 1 };
	struct rs_ends ends;
	pthread_t thread;
	void *err;
	char octet;

	(void)state;
	rs_open(&ends);
	assert_int_equal(rsetsockopt(ends.client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)),
			 0);
	pthread_create(&thread, NULL, recv_until_closed, &ends.client);
	rs_until_others_sleep();
	assert_int_equal(rclose(ends.client), 0);
	pthread_join(thread, &err);
	assert_int_equal((uintptr_t)err, EBADF);
	rs_fails(rrecv(ends.server, &octet, 1, 0), ECONNRESET);
	assert_int_equal(rclose(ends.server), 0);
	assert_int_equal(rclose(ends.listener), 0);
}

/* The urgent byte is announced ahead of bytes for which the peer has no room; no call waits for it. */
static void rrecv__urgent_byte_that_is_to_come(void **state)
{
	struct pollfd client = { .events = POLLOUT };
	static char octets[1000];
	struct rs_ends ends;
	size_t left = 0;
	ssize_t n;
	char urgent;

	(void)state;
	rs_open(&ends);
	client.fd = ends.client;
	while ((n = rsend(ends.client, octets, sizeof(octets), MSG_DONTWAIT)) > 0)
		left += (size_t)n;
	for (; rpoll(&client, 1, 0) == 0; left -= sizeof(octets))
		rs_recv_all(ends.server, octets, sizeof(octets));
	assert_int_equal(rsend(ends.client, "!", 1, MSG_OOB), 1);
	assert_int_equal(rs_poll_one(ends.server, POLLPRI), POLLPRI);
	rs_fails(rrecv(ends.server, &urgent, 1, MSG_OOB), EAGAIN);
	for (; left > 0; left -= (size_t)n) {
		n = rrecv(ends.server, octets, left < sizeof(octets) ? left : sizeof(octets), 0);
		assert_true(n > 0);
	}
	while (rrecv(ends.server, &urgent, 1, MSG_OOB) != 1)
		assert_int_equal(errno, EAGAIN);
	assert_int_equal(urgent, '!');
	rs_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stream__both_ways_by_waiting, rs_guard),
		cmocka_unit_test_setup(stream__both_ways_by_rpoll, rs_guard),
		cmocka_unit_test_setup(stream__by_every_call, rs_guard),
		cmocka_unit_test_setup(stream__refusals, rs_guard),
		cmocka_unit_test_setup(rrecv__peeks, rs_guard),
		cmocka_unit_test_setup(rrecv__does_not_wait, rs_guard),
		cmocka_unit_test_setup(rrecv__is_interrupted, rs_guard),
		cmocka_unit_test_setup(rsend__does_not_wait, rs_guard),
		cmocka_unit_test_setup(rshutdown__one_way, rs_guard),
		cmocka_unit_test_setup(rclose__what_was_sent_arrives, rs_guard),
		cmocka_unit_test_setup(rsend__to_nobody, rs_guard),
		cmocka_unit_test_setup(rclose__by_reset, rs_guard),
		cmocka_unit_test_setup(rclose__by_reset_beside_a_read, rs_guard),
		cmocka_unit_test_setup(rrecv__urgent_byte_that_is_to_come, rs_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
