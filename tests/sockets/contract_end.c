// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a connection ends: shutdown in each order, SO_LINGER, the peer's close, SIGPIPE.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile sig_atomic_t pipe_signals;

static void count_pipe(int number)
{
	(void)number;
	pipe_signals++;
}

static void touch(struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
}

/* Each direction ends by itself; what the other still carries arrives. */
static void half_close(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		ends_open(&e);
		if (touched)
			touch(&e);
		send_text(e.client, "request");
		CHECK(!shutdown(e.client, SHUT_WR));
		expect_text(e.server, "request");
		expect_end(e.server);
		expect_end(e.server);
		size_t taken = fill_up(e.server);
		expect_pattern(e.client, taken);
		send_text(e.server, "end");
		close(e.server);
		expect_text(e.client, "end");
		expect_end(e.client);
		close(e.client);
	}
}

static void shutdown_both(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	touch(&e);
	send_text(e.client, "last");
	CHECK(!shutdown(e.client, SHUT_RDWR));
	expect_text(e.server, "last");
	expect_end(e.server);
	CHECK(recv(e.client, &octet, 1, 0) == 0);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

static void shutdown_read(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	touch(&e);
	CHECK(!shutdown(e.server, SHUT_RD));
	CHECK(wait_for(e.server, POLLIN | POLLRDHUP) == (POLLIN | POLLRDHUP));
	CHECK(recv(e.server, &octet, 1, 0) == 0);
	send_text(e.server, "still out");
	expect_text(e.client, "still out");
	CHECK(shutdown(e.server, 3) == -1 && errno == EINVAL);
}

/* shutdown in one thread wakes another that reads. */
static void *shut_later(void *arg)
{
	poll(NULL, 0, 20);
	CHECK(!shutdown(*(int *)arg, SHUT_RDWR));
	return NULL;
}

static void shutdown_wakes(void)
{
	struct ends e;
	pthread_t thread;
	char octet;
	ends_open(&e);
	touch(&e);
	thread = thread_start(shut_later, &e.server);
	CHECK(read(e.server, &octet, 1) == 0);
	thread_join(thread);
	expect_end(e.client);
}

static void shutdown_listener(void)
{
	struct sockaddr_in name;
	pthread_t thread;
	int listener = listener_open(&name);
	thread = thread_start(shut_later, &listener);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EINVAL);
	thread_join(thread);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1 && errno == ECONNREFUSED);
}

static void linger_aborts(void)
{
	struct ends e;
	struct linger abort = { 1, 0 }, seen;
	socklen_t len = sizeof(seen);
	char octet;
	for (int touched = 0; touched < 2; touched++) {
		ends_open(&e);
		if (touched)
			touch(&e);
		CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
		CHECK(!getsockopt(e.client, SOL_SOCKET, SO_LINGER, &seen, &len));
		CHECK(seen.l_onoff == 1 && seen.l_linger == 0);
		CHECK(!close(e.client));
		CHECK(wait_for(e.server, POLLIN) & (POLLERR | POLLHUP));
		CHECK(recv(e.server, &octet, 1, 0) == -1 && errno == ECONNRESET);
		CHECK(recv(e.server, &octet, 1, 0) == 0);
		CHECK(send(e.server, &octet, 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	}
}

/* As SO_ERROR the reset is told once. */
static void linger_aborts_told_as_option(void)
{
	struct ends e;
	struct linger abort = { 1, 0 };
	int err = 0;
	socklen_t len = sizeof(err);
	ends_open(&e);
	touch(&e);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	CHECK(!close(e.client));
	CHECK(wait_for(e.server, POLLIN) & POLLHUP);
	CHECK(!getsockopt(e.server, SOL_SOCKET, SO_ERROR, &err, &len) && err == ECONNRESET);
	CHECK(!getsockopt(e.server, SOL_SOCKET, SO_ERROR, &err, &len) && err == 0);
	CHECK(recv(e.server, &err, 1, 0) == 0);
}

/* close waits until the peer has what was sent. */
static void *drain_later(void *arg)
{
	struct ends *e = arg;
	poll(NULL, 0, 50);
	expect_pattern(e->server, (size_t)e->listener);
	return NULL;
}

static void linger_waits(void)
{
	struct ends e;
	struct linger wait = { 1, 10 };
	pthread_t thread;
	ends_open(&e);
	touch(&e);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)));
	struct ends task = { (int)fill_up(e.client), -1, e.server };
	thread = thread_start(drain_later, &task);
	int64_t began = now_ms();
	CHECK(!close(e.client) && now_ms() - began < WAIT_MS);
	thread_join(thread);
	expect_end(e.server);
}

/* Without it close returns at once, and all that was taken arrives. */
static void close_delivers(void)
{
	struct ends e;
	ends_open(&e);
	size_t taken = fill_up(e.client);
	int64_t began = now_ms();
	CHECK(!close(e.client) && now_ms() - began < 2000);
	poll(NULL, 0, 20);
	expect_pattern(e.server, taken);
	expect_end(e.server);
}

/* Octets that nobody read make the end a reset; so do octets for nobody. */
static void close_with_unread(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	touch(&e);
	send_text(e.client, "never read");
	wait_readable_octets(e.server, 10);
	CHECK(!close(e.server));
	CHECK(wait_for(e.client, POLLIN) & (POLLERR | POLLHUP));
	CHECK(recv(e.client, &octet, 1, 0) == -1 && errno == ECONNRESET);
}

static void by_close(int fd)
{
	CHECK(!close(fd));
}

static void by_raw_close(int fd)
{
	CHECK(!syscall(SYS_close, fd));
}

static void by_close_range(int fd)
{
	CHECK(!close_range((unsigned)fd, (unsigned)fd, 0));
}

static void by_dup2(int fd)
{
	CHECK(dup2(STDERR_FILENO, fd) == fd);
}

static void by_exit(int fd)
{
	(void)fd;
	exit(0);
}

static void by_sudden_exit(int fd)
{
	(void)fd;
	_exit(0);
}

static void by_exec(int fd)
{
	CHECK(!fcntl(fd, F_SETFD, FD_CLOEXEC));
	execl("/bin/true", "true", (char *)NULL);
	CHECK(!"exec");
}

/* Who is accepted and let go, in whatever way, without a look at the connection: its peer sees the end. */
static void untouched(void)
{
	static void (*const ways[])(int fd) = { by_close, by_raw_close,	  by_close_range, by_dup2,
						by_exit,  by_sudden_exit, by_exec };
	struct sockaddr_in name;
	int listener = listener_open(&name);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			ways[i](accept(listener, NULL, NULL));
			_exit(0);
		}
		int client = client_open(&name);
		expect_end(client);
		CHECK(!close(client));
		reap(child);
	}
}

/* The same where nobody ever polls; what was written before comes first. */
static void close_with_unread_unpolled(void)
{
	struct ends e;
	char got[4];
	ends_open(&e);
	send_text(e.client, "x");
	CHECK(read(e.server, got, 1) == 1);
	send_text(e.client, "never read");
	wait_readable_octets(e.server, 10);
	send_text(e.server, "last");
	wait_readable_octets(e.client, 4);
	CHECK(!close(e.server));
	CHECK(recv(e.client, got, 4, MSG_WAITALL) == 4 && !memcmp(got, "last", 4));
	CHECK(read(e.client, got, 1) == -1 && errno == ECONNRESET);
	CHECK(read(e.client, got, 1) == 0);
}

static void write_to_closed(void)
{
	struct ends e;
	int64_t deadline = now_ms() + WAIT_MS;
	ends_open(&e);
	touch(&e);
	CHECK(!close(e.server));
	expect_end(e.client);
	ssize_t n;
	do {
		n = send(e.client, "x", 1, MSG_NOSIGNAL);
		CHECK(now_ms() < deadline);
		poll(NULL, 0, 1);
	} while (n == 1);
	CHECK(n == -1 && (errno == EPIPE || errno == ECONNRESET));
	n = send(e.client, "x", 1, MSG_NOSIGNAL);
	CHECK(n == -1 && errno == EPIPE);
}

/* The first write to a peer that has closed is taken; poll reports POLLHUP once the peer's reset has come. */
static void hangup_after_close(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	CHECK(!close(e.server));
	expect_end(e.client);
	send_text(e.client, "x");
	CHECK(wait_for(e.client, 0) & POLLHUP);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

/* The same where the peer has ended its direction before, and closes with a byte unread. */
static void hangup_after_half_close(void)
{
	struct ends e;
	char octet;
	ends_open(&e);
	touch(&e);
	CHECK(!shutdown(e.server, SHUT_WR));
	expect_end(e.client);
	send_text(e.client, "x");
	wait_readable_octets(e.server, 1);
	CHECK(!close(e.server));
	CHECK(wait_for(e.client, 0) & POLLHUP);
	CHECK(recv(e.client, &octet, 1, 0) == 0);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

/* The same where a process without the library uses one end, alone or while its parent holds it, too. */
static void hangup_without(void)
{
	for (int held = 0; held < 2; held++) {
		struct ends e;
		ends_open(&e);
		touch(&e);
		CHECK(!fcntl(e.server, F_SETFD, FD_CLOEXEC));
		pid_t child = spawn_self("hangup", e.client, true);
		if (!held)
			close(e.client);
		CHECK(!shutdown(e.server, SHUT_WR));
		wait_readable_octets(e.server, 1);
		CHECK(!close(e.server));
		reap(child);
	}
}

/* The stream ends when one process shuts it down, though another holds the connection. */
static void shutdown_without(void)
{
	static const char *const ways[] = { "finish", "finish_both" };
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct ends e;
		ends_open(&e);
		touch(&e);
		CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
		pid_t child = spawn_self(ways[i], e.server, true);
		send_text(e.client, "request");
		CHECK(!shutdown(e.client, SHUT_WR));
		expect_text(e.client, "reply");
		expect_end(e.client);
		reap(child);
	}
}

static void sigpipe(void)
{
	struct ends e;
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sigaction action = { .sa_handler = count_pipe };
	ends_open(&e);
	touch(&e);
	CHECK(!sigaction(SIGPIPE, &action, NULL));
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(write(e.client, "x", 1) == -1 && errno == EPIPE && pipe_signals == 1);
	CHECK(send(e.client, "x", 1, 0) == -1 && errno == EPIPE && pipe_signals == 2);
	CHECK(writev(e.client, &iov, 1) == -1 && errno == EPIPE && pipe_signals == 3);
	CHECK(sendmsg(e.client, &msg, 0) == -1 && errno == EPIPE && pipe_signals == 4);
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	CHECK(sendmsg(e.client, &msg, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	CHECK(pipe_signals == 4);
	/* Whose peer goes does not die of it before it writes. */
	close(e.server);
	expect_end(e.client);
	CHECK(pipe_signals == 4);
}

/* Where nothing but read, write and exit is left to a process. */
static void end_in_a_strict_sandbox(void)
{
	struct ends e;
	char octet = 0, last = 0;
	ssize_t n;
	ends_open(&e);
	touch(&e);
	pid_t child = fork();
	if (!child) {
		close(e.client);
		CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
		while ((n = read(e.server, &octet, 1)) > 0)
			last = octet;
		syscall(SYS_exit, n != 0 || last != 'z');
	}
	send_text(e.client, "yz");
	close(e.client);
	reap(child);
}

static const struct row rows[] = {
	{ "end_in_a_strict_sandbox", end_in_a_strict_sandbox },
	{ "half_close", half_close },
	{ "shutdown_both", shutdown_both },
	{ "shutdown_read", shutdown_read },
	{ "shutdown_wakes", shutdown_wakes },
	{ "shutdown_listener", shutdown_listener },
	{ "linger_aborts", linger_aborts },
	{ "linger_aborts_told_as_option", linger_aborts_told_as_option },
	{ "linger_waits", linger_waits },
	{ "close_delivers", close_delivers },
	{ "close_with_unread", close_with_unread },
	{ "untouched", untouched },
	{ "close_with_unread_unpolled", close_with_unread_unpolled },
	{ "write_to_closed", write_to_closed },
	{ "hangup_after_close", hangup_after_close },
	{ "hangup_after_half_close", hangup_after_half_close },
	{ "hangup_without", hangup_without },
	{ "shutdown_without", shutdown_without },
	{ "sigpipe", sigpipe },
};
const struct rows end_rows = { rows, ARRAY_LEN(rows) };
