// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process's bridge over an endpoint of our own, which takes and gives octets in random pieces, echoes
// them, and ends and fails when told.
#include "xsock/proxy/bridge.h"
#include "xsock/proxy/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ROOM 10000
#define TOTAL 3000000
#define TURNS_MAX 2000000

/* The peer of this endpoint sends back what it gets, and the end. */
struct aw_xs_ep {
	uint8_t octets[ROOM];
	size_t len;
	bool shut, aborted, closed;
	int fails; /* an errno, once the octets are gone */
	bool urgent; /* the octets are */
	bool announced; /* an urgent octet is to come next */
	bool starts; /* the connection is not yet established */
	bool starts_by_count; /* a count of the unsent octets takes the event that establishes it */
	bool changed; /* since the bridge asked for the readiness */
	bool gone; /* the peer has closed in order */
	size_t unsent;
	int fd;
};

static struct aw_xs_ep ep;
static struct aw_bridge *bridge;
static int near, ended = -1;

short aw_xs_ep_ready(struct aw_xs_ep *e)
{
	e->changed = false;
	return (short)(((e->len && !e->starts) || e->shut || e->fails ? POLLIN : 0) |
		       (e->urgent || e->announced ? POLLPRI : 0) |
		       ((e->len < ROOM && !e->starts) || e->fails ? POLLOUT : 0) |
		       (e->fails ? POLLERR : 0) | (e->gone ? POLLHUP : 0));
}

static size_t piece(size_t most)
{
	return most ? 1 + (size_t)rand() % most : 0;
}

ssize_t aw_xs_ep_send(struct aw_xs_ep *e, const struct iovec *iov, int n, int flags)
{
	size_t room = ROOM - e->len;
	size_t take = piece(iov->iov_len < room ? iov->iov_len : room);

	(void)flags;
	assert_int_equal(n, 1);
	if (e->fails)
		return -e->fails;
	if (!take)
		return -EAGAIN;
	memcpy(e->octets + e->len, iov->iov_base, take);
	e->len += take;
	return (ssize_t)take;
}

ssize_t aw_xs_ep_recv(struct aw_xs_ep *e, const struct iovec *iov, int n, int flags)
{
	size_t give = piece(iov->iov_len < e->len ? iov->iov_len : e->len);

	assert_int_equal(n, 1);
	if (e->starts || (e->announced && flags & MSG_OOB))
		return -EAGAIN;
	if (!give)
		return e->shut ? 0 : e->fails ? -e->fails : -EAGAIN;
	memcpy(iov->iov_base, e->octets, give);
	memmove(e->octets, e->octets + give, e->len - give);
	e->len -= give;
	e->urgent &= e->len > 0;
	return (ssize_t)give;
}

int aw_xs_ep_shutdown(struct aw_xs_ep *e, int how)
{
	assert_int_equal(how, SHUT_WR);
	e->shut = true;
	return 0;
}

void aw_xs_ep_close(struct aw_xs_ep *e, bool abort)
{
	e->closed = true;
	e->aborted = abort;
}

bool aw_xs_ep_arm(struct aw_xs_ep *e)
{
	return !e->changed;
}

void aw_xs_ep_fds(struct aw_xs_ep *e, struct pollfd fds[AW_XS_EP_FDS])
{
	fds[0] = (struct pollfd){ .fd = e->fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = -1 };
}

int aw_xs_ep_error(struct aw_xs_ep *e)
{
	return e->fails;
}

size_t aw_xs_ep_unsent(struct aw_xs_ep *e)
{
	if (e->starts_by_count) {
		e->starts_by_count = e->starts = false;
		e->changed = true;
	}
	return e->unsent;
}

void aw_xs_ep_set_nodelay(struct aw_xs_ep *e, bool nodelay)
{
	(void)e;
	(void)nodelay;
}

void aw_xs_ep_stats(struct aw_xs_ep *e, struct aw_xs_stats *stats)
{
	(void)e;
	(void)stats;
}

bool aw_xs_ep_at_mark(struct aw_xs_ep *e)
{
	return e->urgent || e->announced;
}

static int refusals, refusal; /* so many of the bridge's sends fail, with this errno */

/* In place of libc's. */
ssize_t send(int fd, const void *octets, size_t len, int flags)
{
	if (refusals && flags & MSG_DONTWAIT && (refusal != EOPNOTSUPP || flags & MSG_OOB)) {
		refusals--;
		errno = refusal;
		return -1;
	}
	return sendto(fd, octets, len, flags, NULL, 0);
}

static void over(struct aw_bridge *b, int error, void *arg)
{
	assert_ptr_equal(b, bridge);
	assert_ptr_equal(arg, &ep);
	assert_int_equal(ended, -1);
	ended = error;
}

static int set_up(void **state)
{
	struct aw_bridge_start start = { .tcp = -1, .on_end = over, .arg = &ep };
	int ends[2];

	(void)state;
	memset(&ep, 0, sizeof(ep));
	ended = -1;
	ep.fd = eventfd(0, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	near = ends[0];
	start.far = ends[1];
	start.line = aw_line_of_ep(&ep);
	assert_non_null(start.line);
	assert_int_equal(aw_bridge_create(&start, &bridge), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (near >= 0)
		close(near);
	near = -1;
	for (int i = 0; i < TURNS_MAX && ended < 0; i++)
		aw_loop_turn(0);
	aw_loop_turn(0);
	close(ep.fd);
	return ep.closed ? 0 : -1;
}

static void turn(void)
{
	for (int i = 0; i < 3; i++)
		aw_loop_turn(0);
}

static uint8_t octet_at(size_t at)
{
	return (uint8_t)(at * 2654435761u >> 13);
}

/* Writes and reads random pieces until all has come back, then the end. */
static void bridge__no_octet_is_lost_or_doubled(void **state)
{
	static uint8_t octets[100000];
	size_t written = 0, got = 0;
	unsigned seed = (unsigned)time(NULL);
	bool end = false;

	(void)state;
	printf("seed %u\n", seed);
	srand(seed);
	while (!end) {
		size_t len = piece(sizeof(octets));
		ssize_t n;

		if (len > TOTAL - written)
			len = TOTAL - written;
		for (size_t i = 0; i < len; i++)
			octets[i] = octet_at(written + i);
		n = len ? send(near, octets, len, MSG_NOSIGNAL) : 0;
		written += n > 0 ? (size_t)n : 0;
		if (written == TOTAL)
			shutdown(near, SHUT_WR);
		aw_loop_turn(0);
		n = recv(near, octets, piece(sizeof(octets)), 0);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(octets[i], octet_at(got + (size_t)i));
		got += n > 0 ? (size_t)n : 0;
		end = n == 0;
	}
	assert_int_equal(got, TOTAL);
	turn();
	assert_int_equal(ended, 0);
	assert_false(ep.aborted);
}

/* Who does not read holds who writes. */
static void bridge__is_full_at_last(void **state)
{
	static uint8_t octets[65536];
	size_t written = 0;

	(void)state;
	for (int silent = 0; silent < 10; silent++) {
		ssize_t n = send(near, octets, sizeof(octets), MSG_NOSIGNAL);

		turn();
		if (n > 0) {
			written += (size_t)n;
			silent = 0;
		}
	}
	assert_true(written < 10 * sizeof(octets) + 1000000);
	assert_int_equal(ended, -1);
}

static void bridge__a_close_ends_in_order(void **state)
{
	(void)state;
	assert_int_equal(send(near, "last", 4, 0), 4);
	close(near);
	near = -1;
	turn();
	assert_int_equal(ended, 0);
	/* the close ends both directions: the peer is not first told that one of them goes on */
	assert_true(ep.closed && !ep.aborted && !ep.shut);
}

static void bridge__a_close_by_linger_resets(void **state)
{
	struct linger linger = { .l_onoff = 1 };

	(void)state;
	turn();
	aw_bridge_set_linger(bridge, &linger);
	close(near);
	near = -1;
	turn();
	assert_int_equal(ended, 0);
	assert_true(ep.closed && ep.aborted && !ep.shut);
}

/* A peer that takes nothing does not keep the connection. */
static void bridge__a_close_by_linger_drops_what_waits(void **state)
{
	static uint8_t octets[2 * ROOM];
	struct linger linger = { .l_onoff = 1 };

	(void)state;
	ep.starts = true;
	assert_int_equal(send(near, octets, sizeof(octets), MSG_NOSIGNAL), sizeof(octets));
	aw_bridge_set_linger(bridge, &linger);
	close(near);
	near = -1;
	for (int i = 0; i < 1000 && ended < 0; i++)
		turn();
	assert_int_equal(ended, 0);
	assert_true(ep.closed && ep.aborted && !ep.shut);
}

/*
 * A close(2) that waits counts what is unsent, again and again. A count that takes the event of the
 * connection's start leaves none for the bridge.
 */
static void bridge__a_count_that_takes_an_event_is_no_loss(void **state)
{
	(void)state;
	ep.starts = true;
	assert_int_equal(send(near, "last", 4, 0), 4);
	turn();
	ep.starts_by_count = true;
	assert_int_equal(aw_bridge_unsent(bridge), 4);
	turn();
	assert_int_equal(aw_bridge_unsent(bridge), 0);
}

#define STALL_NS (AW_BRIDGE_STALL_MS * INT64_C(1000000))

/* A peer that takes nothing keeps a closed connection for a while, which begins anew when it takes something. */
static void bridge__a_close_waits_for_a_peer_that_takes(void **state)
{
	static uint8_t octets[3 * ROOM];
	int64_t now = 1;

	(void)state;
	ep.starts = true;
	ep.unsent = 2;
	assert_int_equal(send(near, octets, sizeof(octets), MSG_NOSIGNAL), sizeof(octets));
	turn();
	aw_bridge_review(bridge, now);
	aw_bridge_review(bridge, now + STALL_NS); /* a program that waits has no bound */
	close(near);
	near = -1;
	turn();
	aw_bridge_review(bridge, now);
	aw_bridge_review(bridge, now + STALL_NS - 1);
	ep.unsent--;
	now += STALL_NS;
	aw_bridge_review(bridge, now);
	aw_bridge_review(bridge, now + STALL_NS - 1);
	assert_int_equal(ended, -1);
	aw_bridge_review(bridge, now + STALL_NS);
	assert_int_equal(ended, 0);
	assert_true(ep.closed && ep.aborted && !ep.shut);
}

static void bridge__a_close_with_octets_unread_resets(void **state)
{
	(void)state;
	assert_int_equal(send(near, "echo", 4, 0), 4);
	turn();
	turn();
	close(near);
	near = -1;
	turn();
	assert_true(ep.closed && ep.aborted && !ep.shut);
}

/* The kernel says so once: to a send, if the program closes in the midst of it. */
static void bridge__a_send_finds_octets_unread(void **state)
{
	(void)state;
	turn();
	memcpy(ep.octets, "late", 4);
	ep.len = 4;
	refusals = 1;
	refusal = ECONNRESET;
	assert_int_equal(eventfd_write(ep.fd, 1), 0);
	turn();
	assert_int_equal(refusals, 0);
	close(near);
	near = -1;
	turn();
	assert_int_equal(ended, 0);
	assert_true(ep.closed && ep.aborted && !ep.shut);
}

/* Octets that came before a failure are still read, then the end; writes fail. */
static void bridge__a_failure_comes_after_the_octets(void **state)
{
	char got[8];

	(void)state;
	memcpy(ep.octets, "before", 6);
	ep.len = 6;
	ep.fails = ECONNRESET;
	turn();
	assert_int_equal(recv(near, got, sizeof(got), 0), 6);
	turn();
	assert_int_equal(ended, ECONNRESET);
	assert_int_equal(recv(near, got, sizeof(got), 0), 0);
	assert_int_equal(send(near, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
}

static void notify(void)
{
	assert_int_equal(eventfd_write(ep.fd, 1), 0);
	turn();
}

/* Reads return the end, and writes fail. */
static void assert_hung_up(void)
{
	struct pollfd pollfd = { .fd = near };
	char got[8];

	assert_int_equal(ended, 0);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_true(pollfd.revents & POLLHUP);
	assert_int_equal(recv(near, got, sizeof(got), 0), 0);
	assert_int_equal(send(near, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
}

/* Reads still return the end that came before the failure; poll reports the failure. */
static void bridge__a_failure_comes_after_the_end(void **state)
{
	struct pollfd pollfd = { .fd = near };
	char got[8];

	(void)state;
	turn();
	ep.shut = true;
	notify();
	assert_int_equal(ended, -1);
	assert_int_equal(recv(near, got, sizeof(got), 0), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	ep.fails = ECONNRESET;
	notify();
	assert_hung_up();
}

static void bridge__a_failure_comes_with_the_end(void **state)
{
	(void)state;
	turn();
	ep.shut = true;
	ep.fails = ECONNRESET;
	notify();
	assert_hung_up();
}

/* A write fails, of which the bridge has a part in its buffer, and the end has come before. */
static void bridge__a_send_fails_after_the_end(void **state)
{
	static const char octets[3 * ROOM];

	(void)state;
	turn();
	ep.shut = true;
	notify();
	ep.len = ROOM - 1;
	assert_int_equal(send(near, octets, sizeof(octets), 0), sizeof(octets));
	turn();
	assert_int_equal(ep.len, ROOM);
	ep.fails = ECONNRESET;
	notify();
	assert_hung_up();
}

/* Who has written after the end hears that the peer has closed; who has not waits. */
static void bridge__a_close_comes_after_the_end(void **state)
{
	char got[8];

	(void)state;
	for (int writes = 0; writes < 2; writes++) {
		turn();
		ep.shut = true;
		notify();
		assert_int_equal(recv(near, got, sizeof(got), 0), 0);
		if (writes)
			assert_int_equal(send(near, "late", 4, 0), 4);
		turn();
		ep.gone = true;
		notify();
		assert_int_equal(ended, writes ? 0 : -1);
		if (writes)
			break;
		tear_down(state);
		set_up(state);
	}
	assert_hung_up();
}

static void bridge__an_urgent_octet_does_not_come(void **state)
{
	(void)state;
	turn();
	ep.announced = true;
	notify();
	assert_int_equal(ended, -1);
	ep.fails = ECONNRESET;
	notify();
	assert_int_equal(ended, ECONNRESET);
}

/* The program closes before the connection is established. */
static void bridge__a_close_comes_during_start_up(void **state)
{
	(void)state;
	ep.starts = true;
	turn();
	assert_int_equal(send(near, "early", 5, 0), 5);
	turn();
	assert_int_equal(ended, -1);
	assert_int_equal(ep.len, 0);
	close(near);
	near = -1;
	for (int i = 0; i < 5; i++) /* a piece at a time */
		notify();
	assert_int_equal(ended, 0);
	assert_true(ep.closed && !ep.aborted);
	assert_int_equal(ep.len, 5);
}

static void bridge__goes_on_after_one_direction(void **state)
{
	char got[8];

	(void)state;
	assert_int_equal(send(near, "half", 4, 0), 4);
	turn();
	assert_int_equal(recv(near, got, sizeof(got), 0), 4);
	ep.shut = true; /* the peer ends its direction */
	assert_int_equal(eventfd_write(ep.fd, 1), 0);
	turn();
	assert_int_equal(recv(near, got, sizeof(got), 0), 0);
	assert_int_equal(ended, -1);
	assert_int_equal(send(near, "more", 4, 0), 4);
	turn();
	assert_int_equal(ep.len, 4);
}

/* Neither is the program's doing: it gets every octet. */
static void bridge__goes_on_when_the_kernel_refuses(void **state)
{
	static const int errors[] = { ENOBUFS, ENOMEM, EOPNOTSUPP };
	char got[8];

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		ep.octets[0] = '!';
		ep.len = 1;
		ep.urgent = errors[i] == EOPNOTSUPP;
		refusals = 3;
		refusal = errors[i];
		assert_int_equal(eventfd_write(ep.fd, 1), 0);
		for (int j = 0; j < 5; j++)
			turn();
		assert_int_equal(recv(near, got, sizeof(got), 0), 1);
		refusals = 0;
	}
	assert_int_equal(ended, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int begin_loop(void **state)
{
	(void)state;
	return aw_loop_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bridge__no_octet_is_lost_or_doubled),
		TEST(bridge__is_full_at_last),
		TEST(bridge__a_close_ends_in_order),
		TEST(bridge__a_close_by_linger_resets),
		TEST(bridge__a_close_by_linger_drops_what_waits),
		TEST(bridge__a_count_that_takes_an_event_is_no_loss),
		TEST(bridge__a_close_waits_for_a_peer_that_takes),
		TEST(bridge__a_close_with_octets_unread_resets),
		TEST(bridge__a_send_finds_octets_unread),
		TEST(bridge__a_failure_comes_after_the_octets),
		TEST(bridge__a_failure_comes_after_the_end),
		TEST(bridge__a_failure_comes_with_the_end),
		TEST(bridge__a_send_fails_after_the_end),
		TEST(bridge__a_close_comes_after_the_end),
		TEST(bridge__an_urgent_octet_does_not_come),
		TEST(bridge__a_close_comes_during_start_up),
		TEST(bridge__goes_on_after_one_direction),
		TEST(bridge__goes_on_when_the_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, begin_loop, NULL);
}
