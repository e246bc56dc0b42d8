// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MSG_ flags, and the time-outs and low-water mark that decide when a call returns.
#include "contract.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void peek(void)
{
	struct ends e;
	char got[16];
	ends_open(&e);
	send_text(e.client, "peeked");
	for (int again = 0; again < 2; again++) {
		CHECK(recv(e.server, got, 3, MSG_PEEK) == 3 && !memcmp(got, "pee", 3));
		wait_readable_octets(e.server, 6);
		CHECK(recv(e.server, got, 16, MSG_PEEK | MSG_DONTWAIT) == 6);
		CHECK(!memcmp(got, "peeked", 6));
	}
	expect_text(e.server, "peeked");
	CHECK(recv(e.server, got, 16, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN);
	close(e.client);
	CHECK(recv(e.server, got, 16, MSG_PEEK) == 0);
	CHECK(recv(e.server, got, 16, 0) == 0);
}

/* A program that peeks until a whole message is there sees the octets that come later. */
static void peek_grows(void)
{
	int64_t limit = now_ms() + WAIT_MS;
	struct ends e;
	char got[10];
	ends_open(&e);
	send_text(e.client, "hello");
	CHECK(recv(e.server, got, sizeof(got), MSG_PEEK) == 5);
	send_text(e.client, "world");
	while (recv(e.server, got, sizeof(got), MSG_PEEK) < 10)
		CHECK(now_ms() < limit);
	CHECK(!memcmp(got, "helloworld", 10));
	expect_text(e.server, "helloworld");
}

static void set_timeout(int fd, int option, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 }, seen = { -1, -1 };
	socklen_t len = sizeof(seen);
	CHECK(!setsockopt(fd, SOL_SOCKET, option, &t, sizeof(t)));
	CHECK(!getsockopt(fd, SOL_SOCKET, option, &seen, &len) && len == sizeof(seen));
	CHECK(seen.tv_sec == t.tv_sec && seen.tv_usec / 10000 == t.tv_usec / 10000);
}

static void *send_in_parts(void *arg)
{
	int fd = *(int *)arg;
	char part[100];
	for (int i = 0; i < 10; i++) {
		pattern_fill(part, sizeof(part), (uint64_t)i * sizeof(part));
		send_all(fd, part, sizeof(part));
		poll(NULL, 0, 1);
	}
	return NULL;
}

static void *end_later(void *arg)
{
	poll(NULL, 0, 20);
	CHECK(!shutdown(*(int *)arg, SHUT_WR));
	return NULL;
}

static void *send_much(void *arg)
{
	static char octets[300000];
	pattern_fill(octets, sizeof(octets), 0);
	send_all(*(int *)arg, octets, 7);
	poll(NULL, 0, 20);
	send_all(*(int *)arg, octets + 7, sizeof(octets) - 7);
	return NULL;
}

static void waitall(void)
{
	struct ends e;
	pthread_t thread;
	char got[1000];
	ends_open(&e);
	thread = thread_start(send_in_parts, &e.client);
	CHECK(recv(e.server, got, sizeof(got), MSG_WAITALL) == sizeof(got));
	pattern_check(got, sizeof(got), 0);
	thread_join(thread);
	/* The end comes before all is there. */
	send_text(e.client, "rest");
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(recv(e.server, got, sizeof(got), MSG_WAITALL) == 4);
	CHECK(recv(e.server, got, sizeof(got), MSG_WAITALL) == 0);
}

/* A look waits for all that there is room for, as a read does, and takes nothing. */
static void peek_waits_for_all(void)
{
	struct ends e;
	pthread_t thread;
	char got[1000];
	ends_open(&e);
	for (int held = 0; held < 2; held++) {
		if (held) {
			/* The first part of what one write has sent was read already. */
			send_text(e.client, "begins");
			CHECK(recv(e.server, got, 3, 0) == 3);
			CHECK(recv(e.server, got, 3, MSG_PEEK | MSG_WAITALL) == 3);
			CHECK(!memcmp(got, "ins", 3));
			expect_text(e.server, "ins");
		}
		thread = thread_start(send_in_parts, &e.client);
		CHECK(recv(e.server, got, sizeof(got), MSG_PEEK | MSG_WAITALL) == sizeof(got));
		pattern_check(got, sizeof(got), 0);
		thread_join(thread);
		wait_readable_octets(e.server, sizeof(got));
		expect_pattern(e.server, sizeof(got));
	}
	/* A look that must not wait, or whose time is over, gives what there is. */
	send_text(e.client, "rest");
	wait_readable_octets(e.server, 4);
	CHECK(recv(e.server, got, 8, MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT) == 4);
	set_timeout(e.server, SO_RCVTIMEO, 60);
	int64_t began = now_ms();
	CHECK(recv(e.server, got, 8, MSG_PEEK | MSG_WAITALL) == 4 && !memcmp(got, "rest", 4));
	CHECK(now_ms() - began >= 50 && now_ms() - began < WAIT_MS);
	set_timeout(e.server, SO_RCVTIMEO, 0);
	/* The end comes before all is there. */
	thread = thread_start(end_later, &e.client);
	CHECK(recv(e.server, got, 8, MSG_PEEK | MSG_WAITALL) == 4);
	thread_join(thread);
	expect_text(e.server, "rest");
	CHECK(recv(e.server, got, 8, MSG_PEEK | MSG_WAITALL) == 0);
}

/* So much that a sender has to write it in several calls. */
static void peek_waits_for_much(void)
{
	static char got[300000];
	struct ends e;
	ends_open(&e);
	int room = 1 << 20;
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
	pthread_t thread = thread_start(send_much, &e.client);
	CHECK(recv(e.server, got, sizeof(got), MSG_PEEK | MSG_WAITALL) == sizeof(got));
	pattern_check(got, sizeof(got), 0);
	thread_join(thread);
	expect_pattern(e.server, sizeof(got));
}

static void dontwait(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		CHECK(recv(e.server, &octet, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
		size_t taken = fill_up(e.client);
		CHECK(send(e.client, "x", 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
		expect_pattern(e.server, taken);
		CHECK(wait_for(e.client, POLLOUT) == POLLOUT);
	}
}

/* Held back for what follows, and none of it lost. */
static void more(void)
{
	struct ends e;
	ends_open(&e);
	CHECK(send(e.client, "held ", 5, MSG_MORE) == 5);
	CHECK(send(e.client, "back", 4, 0) == 4);
	expect_text(e.server, "held back");
	CHECK(send(e.client, "at last", 7, MSG_MORE) == 7);
	CHECK(!shutdown(e.client, SHUT_WR));
	expect_text(e.server, "at last");
	expect_end(e.server);
}

/* tcp(7): the octets are thrown away. */
static void trunc_discards(void)
{
	struct ends e;
	char got[8] = "--------";
	ends_open(&e);
	send_text(e.client, "away kept");
	wait_readable_octets(e.server, 9);
	CHECK(recv(e.server, got, 5, MSG_TRUNC) == 5 && !memcmp(got, "--------", 8));
	expect_text(e.server, "kept");
}

/* Of as many as a read waits for. */
static void trunc_waits_for_all(void)
{
	struct ends e;
	pthread_t thread;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		thread = thread_start(send_much, &e.client);
		CHECK(recv(e.server, NULL, 300000, MSG_TRUNC | MSG_WAITALL) == 300000);
		thread_join(thread);
	}
}

/* A look counts all that are there, and waits for as many. */
static void peek_counts_all(void)
{
	struct ends e;
	ends_open(&e);
	int room = 1 << 20;
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
	pthread_t thread = thread_start(send_much, &e.client);
	CHECK(recv(e.server, NULL, 300000, MSG_TRUNC | MSG_WAITALL | MSG_PEEK) == 300000);
	thread_join(thread);
	CHECK(recv(e.server, NULL, 400000, MSG_TRUNC | MSG_PEEK) == 300000);
	expect_pattern(e.server, 300000);
}

static void no_error_queue(void)
{
	struct ends e;
	char got[8], control[64];
	struct iovec iov = { got, sizeof(got) };
	struct msghdr msg = { NULL, 0, &iov, 1, control, sizeof(control), 0 };
	ends_open(&e);
	send_text(e.client, "x");
	wait_readable_octets(e.server, 1);
	CHECK(recvmsg(e.server, &msg, MSG_ERRQUEUE) == -1 && errno == EAGAIN);
	expect_text(e.server, "x");
}

static void receive_timeout(void)
{
	struct ends e;
	char got[8];
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		set_timeout(e.server, SO_RCVTIMEO, 60);
		int64_t began = now_ms();
		CHECK(recv(e.server, got, 8, 0) == -1 && errno == EAGAIN);
		CHECK(now_ms() - began >= 50 && now_ms() - began < WAIT_MS);
		send_text(e.client, "part");
		wait_readable_octets(e.server, 4);
		CHECK(recv(e.server, got, 8, MSG_WAITALL) == 4);
		set_timeout(e.server, SO_RCVTIMEO, 0);
		send_text(e.client, "x");
		CHECK(recv(e.server, got, 1, 0) == 1);
	}
}

static void *send_slowly(void *arg)
{
	for (int i = 0; i < 10; i++) {
		send_text(*(int *)arg, "x");
		poll(NULL, 0, 30);
	}
	return NULL;
}

/* SO_RCVTIMEO holds for all that a read waits. */
static void receive_timeout_of_a_whole_read(void)
{
	struct ends e;
	char got[10];
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	set_timeout(e.server, SO_RCVTIMEO, 100);
	pthread_t thread = thread_start(send_slowly, &e.client);
	ssize_t n = recv(e.server, got, sizeof(got), MSG_WAITALL);
	CHECK(n > 0 && n < (ssize_t)sizeof(got));
	thread_join(thread);
}

/* A look goes on where the last one has ended, and a read brings it back; kernels before Linux 6.9 refuse that. */
static void peek_offset_of(bool set_first)
{
	struct ends e;
	int zero = 0;
	char got[8];
	struct sockaddr_in name;
	e.listener = listener_open(&name);
	e.client = client_open(&name);
	e.server = accept(e.listener, NULL, NULL);
	for (int first = set_first; first < 2; first++) {
		if (first && setsockopt(e.server, SOL_SOCKET, SO_PEEK_OFF, &zero, sizeof(zero))) {
			CHECK(errno == EOPNOTSUPP);
			zero = -1;
		}
		send_text(e.client, "abcdef");
		wait_readable_octets(e.server, 6);
		if (first && !zero) {
			CHECK(recv(e.server, got, 2, MSG_PEEK) == 2 && !memcmp(got, "ab", 2));
			CHECK(recv(e.server, got, 2, MSG_PEEK) == 2 && !memcmp(got, "cd", 2));
			CHECK(recv(e.server, got, 3, 0) == 3 && !memcmp(got, "abc", 3));
			CHECK(recv(e.server, got, 2, MSG_PEEK) == 2 && !memcmp(got, "ef", 2));
		} else {
			CHECK(recv(e.server, got, 3, 0) == 3 && !memcmp(got, "abc", 3));
		}
		CHECK(read(e.server, got, 8) == 3 && !memcmp(got, "def", 3));
	}
	/* Reads wait as ever. */
	pthread_t thread = thread_start(send_in_parts, &e.client);
	expect_pattern(e.server, 1000);
	thread_join(thread);
}

static void peek_offset(void)
{
	peek_offset_of(false);
}

static void peek_offset_before(void)
{
	peek_offset_of(true);
}

/* Set before there is a connection, on the listener too, from which TCP inherits it. */
static void receive_timeout_before(void)
{
	struct sockaddr_in name;
	char octet;
	int listener = listener_open(&name), client = socket(AF_INET, SOCK_STREAM, 0);
	set_timeout(listener, SO_RCVTIMEO, 70);
	set_timeout(client, SO_RCVTIMEO, 70);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(!connect(client, (struct sockaddr *)&name, sizeof(name)));
	int server = accept(listener, NULL, NULL);
	CHECK(recv(client, &octet, 1, 0) == -1 && errno == EAGAIN);
	CHECK(recv(server, &octet, 1, 0) == -1 && errno == EAGAIN);
}

static void send_timeout(void)
{
	struct ends e;
	static char big[1 << 20];
	size_t taken = 0;
	ssize_t n;
	ends_open(&e);
	set_timeout(e.client, SO_SNDTIMEO, 60);
	int64_t began = now_ms();
	do {
		pattern_fill(big, sizeof(big), taken);
		n = send(e.client, big, sizeof(big), 0);
		CHECK(n > 0 || errno == EAGAIN);
		taken += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	CHECK(now_ms() - began >= 50 && now_ms() - began < WAIT_MS);
	expect_pattern(e.server, taken);
	send_text(e.client, "goes on");
	expect_text(e.server, "goes on");
}

/* A low-water mark holds for poll, too. */
static void low_water(void)
{
	struct ends e;
	int mark = 10;
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	send_text(e.client, "01234");
	wait_readable_octets(e.server, 5);
	struct pollfd p = { .fd = e.server, .events = POLLIN };
	CHECK(poll(&p, 1, 30) == 0);
	send_text(e.client, "56789");
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	expect_text(e.server, "0123456789");
}

/* A blocking read waits for as many, too, and gives what there is at its time-out; the value is the program's own. */
static void low_water_reads_of(bool set_first)
{
	struct ends e;
	int mark = 10, value = 0;
	socklen_t len = sizeof(value);
	char got[16];
	ends_open(&e);
	CHECK(!set_first || !setsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	send_text(e.client, "x");
	CHECK(recv(e.server, got, 1, 0) == 1);
	CHECK(set_first || !setsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	CHECK(!getsockopt(e.server, SOL_SOCKET, SO_RCVLOWAT, &value, &len));
	CHECK(value == mark && len == sizeof(value));
	set_timeout(e.server, SO_RCVTIMEO, 60);
	send_text(e.client, "01234");
	wait_readable_octets(e.server, 5);
	int64_t began = now_ms();
	CHECK(recv(e.server, got, 16, 0) == 5);
	CHECK(now_ms() - began >= 50 && now_ms() - began < WAIT_MS);
	send_text(e.client, "0123456789");
	wait_readable_octets(e.server, 10);
	CHECK(recv(e.server, got, 16, 0) == 10);
}

static void low_water_reads(void)
{
	low_water_reads_of(false);
}

static void low_water_before(void)
{
	low_water_reads_of(true);
}

static const struct row rows[] = {
	{ "peek", peek },
	{ "peek_grows", peek_grows },
	{ "waitall", waitall },
	{ "peek_waits_for_all", peek_waits_for_all },
	{ "peek_waits_for_much", peek_waits_for_much },
	{ "dontwait", dontwait },
	{ "more", more },
	{ "trunc_discards", trunc_discards },
	{ "trunc_waits_for_all", trunc_waits_for_all },
	{ "peek_counts_all", peek_counts_all },
	{ "receive_timeout_of_a_whole_read", receive_timeout_of_a_whole_read },
	{ "peek_offset", peek_offset },
	{ "peek_offset_before", peek_offset_before },
	{ "no_error_queue", no_error_queue },
	{ "receive_timeout", receive_timeout },
	{ "receive_timeout_before", receive_timeout_before },
	{ "send_timeout", send_timeout },
	{ "low_water", low_water },
	{ "low_water_reads", low_water_reads },
	{ "low_water_before", low_water_before },
};
const struct rows flag_rows = { rows, ARRAY_LEN(rows) };
