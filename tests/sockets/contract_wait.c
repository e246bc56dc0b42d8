// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll, ppoll, select and pselect, with fds of other kinds in the same set.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void poll_bits(void)
{
	struct ends e;
	ends_open(&e);
	struct pollfd p[2] = { { e.client, POLLIN | POLLOUT | POLLRDHUP, 0 },
			       { e.server, POLLIN | POLLOUT | POLLRDHUP, 0 } };
	CHECK(poll(p, 2, WAIT_MS) == 2 && p[0].revents == POLLOUT && p[1].revents == POLLOUT);
	send_text(e.client, "x");
	CHECK(wait_for(e.server, POLLIN | POLLRDNORM) == (POLLIN | POLLRDNORM));
	CHECK(wait_for(e.client, POLLOUT | POLLWRNORM) == (POLLOUT | POLLWRNORM));
	expect_text(e.server, "x");
	p[1].events = POLLIN;
	CHECK(poll(&p[1], 1, 0) == 0 && p[1].revents == 0);
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(wait_for(e.server, POLLRDHUP) == POLLRDHUP);
	CHECK(wait_for(e.server, POLLIN | POLLOUT | POLLRDHUP) == (POLLIN | POLLOUT | POLLRDHUP));
	p[0].events = 0;
	CHECK(poll(p, 1, 0) == 0);
	CHECK(!shutdown(e.server, SHUT_WR));
	CHECK(wait_for(e.client, 0) == POLLHUP);
	CHECK(wait_for(e.server, 0) == POLLHUP);
	CHECK(wait_for(e.client, POLLIN | POLLRDHUP) == (POLLIN | POLLRDHUP | POLLHUP));
}

static void poll_listener(void)
{
	struct sockaddr_in name;
	int listener = listener_open(&name);
	struct pollfd p = { listener, POLLIN | POLLOUT, 0 };
	CHECK(poll(&p, 1, 0) == 0);
	int client = client_open(&name);
	CHECK(poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLIN);
	int server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && poll(&p, 1, 0) == 0);
	send_text(client, "x");
	expect_text(server, "x");
}

static void poll_other_kinds(void)
{
	struct ends e;
	int pipes[2], event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec soon = { .it_value = { 0, 20000000 } };
	ends_open(&e);
	CHECK(!pipe(pipes) && event >= 0 && timer >= 0);
	struct pollfd p[] = {
		{ pipes[0], POLLIN, 0 }, { e.server, POLLIN, 0 }, { -1, POLLIN, 7 },
		{ event, POLLIN, 0 },	 { timer, POLLIN, 0 },	  { 999, POLLIN, 0 }
	};
	CHECK(poll(p, 5, 0) == 0 && p[2].revents == 0);
	CHECK(poll(p, 6, WAIT_MS) == 1 && p[5].revents == POLLNVAL);
	CHECK(!timerfd_settime(timer, 0, &soon, NULL));
	CHECK(poll(p, 5, WAIT_MS) == 1 && p[4].revents == POLLIN);
	CHECK(write(pipes[1], "x", 1) == 1 && !eventfd_write(event, 1));
	send_text(e.client, "x");
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	CHECK(poll(p, 5, WAIT_MS) == 4);
	CHECK(p[0].revents == POLLIN && p[1].revents == POLLIN && p[3].revents == POLLIN);
}

static void poll_times_out(void)
{
	struct ends e;
	ends_open(&e);
	struct pollfd p = { e.server, POLLIN, 0 };
	int64_t began = now_ms();
	CHECK(poll(&p, 1, 50) == 0 && now_ms() - began >= 49);
	struct timespec t = { 0, 30000000 };
	began = now_ms();
	CHECK(ppoll(&p, 1, &t, NULL) == 0 && now_ms() - began >= 29);
	CHECK(t.tv_nsec == 30000000);
}

static void select_sets(void)
{
	struct ends e;
	int pipes[2];
	fd_set in, out, except;
	struct timeval none = { 0, 0 }, enough = { WAIT_MS / 1000, 0 };
	ends_open(&e);
	CHECK(!pipe(pipes));
	FD_ZERO(&in);
	FD_SET(e.server, &in);
	FD_SET(pipes[0], &in);
	CHECK(select(FD_SETSIZE, &in, NULL, NULL, &none) == 0 && !FD_ISSET(e.server, &in));
	send_text(e.client, "x");
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(e.server, &in);
	FD_SET(e.client, &in);
	FD_SET(pipes[0], &in);
	FD_SET(e.server, &out);
	FD_SET(e.server, &except);
	CHECK(select(FD_SETSIZE, &in, &out, &except, &enough) == 3);
	CHECK(FD_ISSET(e.server, &in) && FD_ISSET(pipes[0], &in) && !FD_ISSET(e.client, &in));
	CHECK(FD_ISSET(e.server, &out) && !FD_ISSET(e.server, &except));
	CHECK(enough.tv_sec || enough.tv_usec);
	FD_ZERO(&in);
	close(pipes[1]);
	FD_SET(pipes[1], &in);
	CHECK(select(FD_SETSIZE, &in, NULL, NULL, &none) == -1 && errno == EBADF);
	struct timespec t = { 0, 20000000 };
	FD_ZERO(&in);
	FD_SET(e.client, &in);
	CHECK(pselect(e.client + 1, &in, NULL, NULL, &t, NULL) == 0);
}

/* A signal that only the wait lets through ends it. */
static void mask_of_wait(void)
{
	struct ends e;
	sigset_t usr, open;
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &usr, &open));
	sigdelset(&open, SIGUSR1);
	CHECK(!kill(getpid(), SIGUSR1) && signals == 0);
	struct pollfd p = { e.server, POLLIN, 0 };
	CHECK(poll(&p, 1, 20) == 0 && signals == 0);
	CHECK(ppoll(&p, 1, NULL, &open) == -1 && errno == EINTR && signals == 1);
	CHECK(!kill(getpid(), SIGUSR1) && signals == 1);
	fd_set in;
	FD_ZERO(&in);
	FD_SET(e.server, &in);
	CHECK(pselect(e.server + 1, &in, NULL, NULL, NULL, &open) == -1 && errno == EINTR);
	CHECK(signals == 2);
}

static void *write_later(void *arg)
{
	poll(NULL, 0, 20);
	send_text(*(int *)arg, "later");
	return NULL;
}

/* Who waits already is woken, in each call. */
static void waits_are_woken(void)
{
	struct ends e;
	pthread_t thread;
	fd_set in;
	ends_open(&e);
	for (int way = 0; way < 4; way++) {
		struct pollfd p = { e.server, POLLIN, 0 };
		char got[8];
		thread = thread_start(write_later, &e.client);
		FD_ZERO(&in);
		FD_SET(e.server, &in);
		if (way == 0)
			CHECK(poll(&p, 1, -1) == 1);
		else if (way == 1)
			CHECK(ppoll(&p, 1, NULL, NULL) == 1);
		else if (way == 2)
			CHECK(select(e.server + 1, &in, NULL, NULL, NULL) == 1);
		else
			CHECK(read(e.server, got, 1) == 1 && got[0] == 'l');
		thread_join(thread);
		expect_text(e.server, way < 3 ? "later" : "ater");
	}
}

struct reader {
	int fd;
	size_t len;
};

/* All that is on its way: what comes in pieces may leave nothing to be read in between. */
static void *read_later(void *arg)
{
	const struct reader *reader = arg;
	poll(NULL, 0, 20);
	expect_pattern(reader->fd, reader->len);
	return NULL;
}

static void full_then_room(void)
{
	struct ends e;
	pthread_t thread;
	ends_open(&e);
	for (int i = 0; i < 3; i++) {
		struct reader reader = { e.server, fill_up(e.client) };
		struct pollfd p = { e.client, POLLOUT, 0 };
		CHECK(poll(&p, 1, 0) == 0);
		thread = thread_start(read_later, &reader);
		CHECK(wait_for(e.client, POLLOUT) == POLLOUT);
		thread_join(thread);
	}
}

#define WHOLE_PIECE \
	8192u /* a reader with as small a buffer stops often, and TCP cuts what is sent where its window ends */

struct writer {
	int fd;
	size_t len;
};

static void *write_pieces(void *arg)
{
	const struct writer *writer = arg;
	char piece[WHOLE_PIECE];

	for (size_t done = 0; done < writer->len; done += sizeof(piece)) {
		pattern_fill(piece, sizeof(piece), done);
		send_all(writer->fd, piece, sizeof(piece));
	}
	return NULL;
}

static bool is_told_readable(int fd, int way)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct timespec time = { WAIT_MS / 1000, 0 };
	struct timeval time_us = { WAIT_MS / 1000, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	switch (way) {
	case 0:
		return poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLIN;
	case 1:
		return ppoll(&p, 1, &time, NULL) == 1 && p.revents == POLLIN;
	case 2:
		return select(fd + 1, &in, NULL, NULL, &time_us) == 1 && FD_ISSET(fd, &in);
	default:
		return pselect(fd + 1, &in, NULL, NULL, &time, NULL) == 1 && FD_ISSET(fd, &in);
	}
}

/* What is told readable gives a read bytes, however the network cuts what was sent. */
static void read_when_told(int way, size_t len, int buffer)
{
	char piece[WHOLE_PIECE];
	struct ends e;
	pthread_t thread;
	ends_open(&e);
	struct writer writer = { e.client, len };
	if (buffer)
		CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)));
	thread = thread_start(write_pieces, &writer);
	for (size_t done = 0; done < len;) {
		CHECK(is_told_readable(e.server, way));
		ssize_t n = recv(e.server, piece, sizeof(piece), MSG_DONTWAIT);
		CHECK(n > 0);
		pattern_check(piece, (size_t)n, done);
		done += (size_t)n;
	}
	thread_join(thread);
}

static void poll_tells_of_bytes(void)
{
	read_when_told(0, 512 * WHOLE_PIECE, 0);
	read_when_told(1, 512 * WHOLE_PIECE, 0);
}

static void select_tells_of_bytes(void)
{
	read_when_told(2, 512 * WHOLE_PIECE, 0);
	read_when_told(3, 512 * WHOLE_PIECE, 0);
}

static void small_buffer_tells_of_bytes(void)
{
	for (int way = 0; way < 4; way++)
		read_when_told(way, 16 * WHOLE_PIECE, 16384);
}

static const struct row rows[] = {
	{ "poll_bits", poll_bits },
	{ "poll_listener", poll_listener },
	{ "poll_other_kinds", poll_other_kinds },
	{ "poll_times_out", poll_times_out },
	{ "select_sets", select_sets },
	{ "mask_of_wait", mask_of_wait },
	{ "waits_are_woken", waits_are_woken },
	{ "full_then_room", full_then_room },
	{ "poll_tells_of_bytes", poll_tells_of_bytes },
	{ "select_tells_of_bytes", select_tells_of_bytes },
	{ "small_buffer_tells_of_bytes", small_buffer_tells_of_bytes },
};
const struct rows wait_rows = { rows, ARRAY_LEN(rows) };
