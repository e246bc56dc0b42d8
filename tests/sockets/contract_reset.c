// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A reset of the peer's: which calls return it, and what poll, select and epoll tell before and after.
#include "contract.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static void touch(struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
}

/* Closes with bytes unread, most often while the other end waits in its call; the claims hold either way. */
static void *reset_later(void *arg)
{
	wait_for(*(int *)arg, POLLIN);
	poll(NULL, 0, 50);
	CHECK(!close(*(int *)arg));
	return NULL;
}

/* A call that has moved bytes returns their count, and the next one the reset. */
static void reset_within_a_write(void)
{
	static char octets[64 << 20];
	struct ends e;
	ends_open(&e);
	touch(&e);
	pthread_t thread = thread_start(reset_later, &e.server);
	ssize_t n = send(e.client, octets, sizeof(octets), MSG_NOSIGNAL);
	thread_join(thread);
	CHECK(n > 0 && n < (ssize_t)sizeof(octets));
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == ECONNRESET);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

static void reset_within_a_read(void)
{
	struct ends e;
	char got[8];
	ends_open(&e);
	touch(&e);
	send_text(e.client, "unread");
	wait_readable_octets(e.server, 6);
	send_text(e.server, "last");
	pthread_t thread = thread_start(reset_later, &e.server);
	CHECK(recv(e.client, got, 8, MSG_WAITALL) == 4 && !memcmp(got, "last", 4));
	thread_join(thread);
	CHECK(recv(e.client, got, 8, 0) == -1 && errno == ECONNRESET);
	CHECK(recv(e.client, got, 8, 0) == 0);
}

/* recvmmsg looks for it before it receives; one that it meets behind a message is the next call's. */
static void reset_among_messages(void)
{
	char got[2][4];
	struct iovec in[] = { { got[0], 4 }, { got[1], 4 } };
	struct mmsghdr room[2] = { { .msg_hdr = { .msg_iov = &in[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &in[1], .msg_iovlen = 1 } } };
	for (int waits = 0; waits < 2; waits++) {
		struct ends e;
		pthread_t thread;
		ends_open(&e);
		touch(&e);
		send_text(e.client, "unread");
		wait_readable_octets(e.server, 6);
		send_text(e.server, "last");
		wait_readable_octets(e.client, 4);
		thread = thread_start(reset_later, &e.server);
		if (!waits) {
			CHECK(wait_for(e.client, POLLRDHUP) & POLLHUP);
			CHECK(recvmmsg(e.client, room, 2, 0, NULL) == -1 && errno == ECONNRESET);
			CHECK(recvmmsg(e.client, room, 2, 0, NULL) == 2);
			CHECK(room[0].msg_len == 4 && room[1].msg_len == 0);
		} else {
			CHECK(recvmmsg(e.client, room, 2, 0, NULL) == 1 && room[0].msg_len == 4);
			CHECK(recv(e.client, got[0], 1, 0) == -1 && errno == ECONNRESET);
			CHECK(recv(e.client, got[0], 1, 0) == 0);
		}
		thread_join(thread);
	}
}

/* A look returns it as a read does, once. */
static void reset_behind_a_read_met_by_a_look(void)
{
	struct linger abort = { 1, 0 };
	struct ends e;
	char got[64];
	ends_open(&e);
	touch(&e);
	send_text(e.server, "last");
	wait_readable_octets(e.client, 4);
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	CHECK(!close(e.server));
	CHECK(wait_for(e.client, POLLRDHUP) & POLLHUP);
	CHECK(recv(e.client, got, sizeof(got), 0) == 4);
	CHECK(recv(e.client, got, 1, MSG_PEEK) == -1 && errno == ECONNRESET);
	CHECK(recv(e.client, got, 1, MSG_PEEK) == 0);
	CHECK(recv(e.client, got, 1, 0) == 0);
}

static int take_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	return err;
}

/* SO_ERROR has it first; then it is told. */
static void reset_within_a_call_told_as_option(void)
{
	static char octets[64 << 20];
	for (int reads = 0; reads < 2; reads++) {
		struct ends e;
		ends_open(&e);
		touch(&e);
		if (reads) {
			send_text(e.client, "unread");
			wait_readable_octets(e.server, 6);
			send_text(e.server, "last");
		}
		pthread_t thread = thread_start(reset_later, &e.server);
		ssize_t n = reads ? recv(e.client, octets, 8, MSG_WAITALL)
				  : send(e.client, octets, sizeof(octets), MSG_NOSIGNAL);
		thread_join(thread);
		CHECK(n > 0 && n < (ssize_t)sizeof(octets));
		CHECK(take_error(e.client) == ECONNRESET && take_error(e.client) == 0);
		CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
		CHECK(recv(e.client, octets, 8, 0) == 0);
	}
}

/* What has come is read behind it, up to an end. */
static void reset_told_as_option_between_reads(void)
{
	struct ends e;
	struct linger abort = { 1, 0 };
	static char octets[65536];
	ssize_t n;
	ends_open(&e);
	fill_up(e.client);
	CHECK(read(e.server, octets, 1) == 1);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	CHECK(!close(e.client));
	while (!(wait_for(e.server, POLLIN) & POLLHUP))
		;
	CHECK(take_error(e.server) == ECONNRESET);
	while ((n = read(e.server, octets, sizeof(octets))) > 0)
		;
	CHECK(n == 0 && take_error(e.server) == 0);
}

#define UNREAD \
	320000 /* more than a pair of unix sockets holds, and less than any program may have it hold */

/* Sends so many bytes, or as many as find room. */
static void send_unread(int fd)
{
	static char octets[UNREAD];
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	size_t sent = 0;
	ssize_t n;

	pattern_fill(octets, sizeof(octets), 0);
	while (sent < sizeof(octets)) {
		n = send(fd, octets + sent, sizeof(octets) - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		CHECK(n > 0 || errno == EAGAIN);
		if (n < 0 && poll(&p, 1, 100) == 0)
			return;
	}
}

/* However many bytes are in front of it. */
static void reset_told_before_a_read(void)
{
	static uint8_t got[UNREAD];
	struct linger abort = { 1, 0 };
	size_t len = 0;
	ssize_t n;
	struct ends e;
	ends_open(&e);
	touch(&e);
	send_unread(e.client);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	CHECK(!close(e.client));
	CHECK(wait_for(e.server, 0) & POLLHUP);
	CHECK(take_error(e.server) == ECONNRESET);
	while ((n = read(e.server, got + len, sizeof(got) - len)) > 0)
		len += (size_t)n;
	CHECK(n == 0);
	pattern_check(got, len, 0);
}

/* What poll, select and epoll tell of fd, whichever is asked first. */
static short poll_bits(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	CHECK(poll(&p, 1, 0) >= 0);
	return p.revents;
}

static uint32_t epoll_bits(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP };
	int set = epoll_create1(0), n;
	CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	n = epoll_wait(set, &event, 1, 0);
	CHECK(n >= 0 && !close(set));
	return n ? event.events : 0;
}

static int select_bits(int fd)
{
	struct timeval none = { 0 };
	fd_set in, out;
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	CHECK(select(fd + 1, &in, &out, NULL, &none) >= 0);
	return FD_ISSET(fd, &in) | FD_ISSET(fd, &out) << 1;
}

static void reset_is_shown(int fd, bool pending)
{
	const short all = POLLIN | POLLOUT | POLLRDHUP;
	short error = pending ? POLLERR : 0;
	CHECK(poll_bits(fd, all) == (all | POLLHUP | error));
	CHECK(poll_bits(fd, 0) == (POLLHUP | error));
	CHECK(epoll_bits(fd) == (uint32_t)(all | POLLHUP | error));
	CHECK(select_bits(fd) == 3);
}

/* A reset is an error to poll until a call has returned it; then it is an end. */
static void reset_is_an_error(void)
{
	struct linger abort = { 1, 0 };
	char octet;
	for (int way = 0; way < 4; way++) {
		struct ends e;
		ends_open(&e);
		touch(&e);
		CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
		CHECK(!close(e.client));
		CHECK(wait_for(e.server, POLLRDHUP) & POLLHUP);
		reset_is_shown(e.server, true);
		if (way == 0)
			CHECK(recv(e.server, &octet, 1, 0) == -1 && errno == ECONNRESET);
		else if (way == 1)
			CHECK(recv(e.server, &octet, 1, MSG_PEEK) == -1 && errno == ECONNRESET);
		else if (way == 2)
			CHECK(send(e.server, &octet, 1, MSG_NOSIGNAL) == -1 && errno == ECONNRESET);
		else
			CHECK(take_error(e.server) == ECONNRESET);
		reset_is_shown(e.server, false);
		CHECK(take_error(e.server) == 0);
		CHECK(recv(e.server, &octet, 1, 0) == 0);
		CHECK(send(e.server, &octet, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	}
}

/* A call that has moved bytes leaves the reset that it has met to poll and to the next call. */
static void reset_is_left_to_poll(void)
{
	static char octets[64 << 20];
	struct ends e;
	char got[8];
	ends_open(&e);
	touch(&e);
	pthread_t thread = thread_start(reset_later, &e.server);
	CHECK(send(e.client, octets, sizeof(octets), MSG_NOSIGNAL) > 0);
	thread_join(thread);
	reset_is_shown(e.client, true);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == ECONNRESET);
	reset_is_shown(e.client, false);
	ends_open(&e);
	touch(&e);
	send_text(e.client, "unread");
	wait_readable_octets(e.server, 6);
	send_text(e.server, "last");
	thread = thread_start(reset_later, &e.server);
	CHECK(recv(e.client, got, 8, MSG_WAITALL) == 4 && !memcmp(got, "last", 4));
	thread_join(thread);
	reset_is_shown(e.client, true);
	CHECK(recv(e.client, got, 8, 0) == -1 && errno == ECONNRESET);
	reset_is_shown(e.client, false);
}

/* A count of what can be read leaves the reset where it is. */
static void reset_outlives_a_count(void)
{
	struct linger abort = { 1, 0 };
	struct ends e;
	int count = 7;
	char octet;
	ends_open(&e);
	touch(&e);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	CHECK(!close(e.client));
	CHECK(wait_for(e.server, POLLRDHUP) & POLLHUP);
	CHECK(!ioctl(e.server, FIONREAD, &count) && count == 0);
	reset_is_shown(e.server, true);
	CHECK(recv(e.server, &octet, 1, 0) == -1 && errno == ECONNRESET);
	reset_is_shown(e.server, false);
}

static const struct row rows[] = {
	{ "reset_within_a_write", reset_within_a_write },
	{ "reset_within_a_read", reset_within_a_read },
	{ "reset_within_a_call_told_as_option", reset_within_a_call_told_as_option },
	{ "reset_told_as_option_between_reads", reset_told_as_option_between_reads },
	{ "reset_told_before_a_read", reset_told_before_a_read },
	{ "reset_among_messages", reset_among_messages },
	{ "reset_behind_a_read_met_by_a_look", reset_behind_a_read_met_by_a_look },
	{ "reset_is_an_error", reset_is_an_error },
	{ "reset_is_left_to_poll", reset_is_left_to_poll },
	{ "reset_outlives_a_count", reset_outlives_a_count },
};
const struct rows reset_rows = { rows, ARRAY_LEN(rows) };
