// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What one call does as a whole: the errno that it leaves, all of its buffers, the time that it takes, and what becomes of
// it when another thread acts on the same connection.
#include "contract.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

#define SENTINEL E2BIG
#define BUFFERS 100
#define TRICKLE_BYTES 65536
#define MUCH_BYTES (64u << 20)

/* Both ends have moved bytes. */
static void ends_use(const struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
	send_text(e->server, "y");
	expect_text(e->client, "y");
}

struct helper {
	int fd;
	size_t len;
	atomic_bool over;
	_Atomic pid_t tid;
	pthread_t thread;
	char got;
};

static bool is_asleep(pid_t tid)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	FILE *file = fopen(path, "r");
	CHECK(file && fgets(line, sizeof(line), file) && !fclose(file));
	return strstr(line, ") S ");
}

static void await_sleep(const _Atomic pid_t *tid)
{
	for (int in_a_row = 0; in_a_row < 3;) {
		in_a_row = *tid && is_asleep(*tid) ? in_a_row + 1 : 0;
		poll(NULL, 0, 1);
	}
}

static _Atomic pid_t main_tid;

/* Writes once the main thread sleeps in its read. */
static void *write_late(void *arg)
{
	struct helper *h = arg;
	await_sleep(&main_tid);
	send_text(h->fd, "late");
	return NULL;
}

static void *read_late(void *arg)
{
	struct helper *h = arg;
	await_sleep(&main_tid);
	expect_pattern(h->fd, h->len);
	return NULL;
}

static void errno_is_left(void)
{
	static char much[1 << 20];
	struct ends e;
	struct helper h = { .len = 0 };
	char got[4];
	int count;
	main_tid = (pid_t)syscall(SYS_gettid);
	ends_open(&e);
	ends_use(&e);
	h.fd = e.client;
	h.thread = thread_start(write_late, &h);
	errno = SENTINEL;
	CHECK(recv(e.server, got, sizeof(got), MSG_WAITALL) == 4 && errno == SENTINEL);
	thread_join(h.thread);
	size_t filled = fill_up(e.client);
	pattern_fill(much, sizeof(much), filled);
	h.fd = e.server;
	h.len = filled + sizeof(much);
	h.thread = thread_start(read_late, &h);
	errno = SENTINEL;
	CHECK(write(e.client, much, sizeof(much)) == sizeof(much) && errno == SENTINEL);
	thread_join(h.thread);
	CHECK(!ioctl(e.server, FIONREAD, &count) && count == 0 && errno == SENTINEL);
	CHECK(!shutdown(e.client, SHUT_WR) && errno == SENTINEL);
	CHECK(read(e.server, got, 1) == 0 && errno == SENTINEL);
}

/* A call fills all buffers for which there are bytes. */
static void many_buffers(void)
{
	struct ends e;
	char sent[BUFFERS], got[BUFFERS] = { 0 };
	struct iovec iov[BUFFERS];
	ends_open(&e);
	ends_use(&e);
	for (int i = 0; i < BUFFERS; i++) {
		sent[i] = (char)i;
		iov[i] = (struct iovec){ got + i, 1 };
	}
	send_all(e.client, sent, sizeof(sent));
	wait_readable_octets(e.server, BUFFERS);
	CHECK(readv(e.server, iov, BUFFERS) == BUFFERS && !memcmp(got, sent, BUFFERS));
}

/* Reads a little at a time until the writer is done, then all that is left. */
static void *trickle(void *arg)
{
	struct helper *h = arg;
	static char chunk[TRICKLE_BYTES];
	while (!h->over) {
		CHECK(recv(h->fd, chunk, sizeof(chunk), 0) > 0);
		poll(NULL, 0, 5);
	}
	return NULL;
}

/* SO_SNDTIMEO holds for all that a write waits. */
static void send_timeout_of_a_whole_write(void)
{
	static char much[MUCH_BYTES];
	struct timeval limit = { 0, 300000 };
	struct ends e;
	struct helper h = { .over = false };
	ends_open(&e);
	ends_use(&e);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	h.fd = e.server;
	h.thread = thread_start(trickle, &h);
	int64_t start = now_ms();
	ssize_t n = write(e.client, much, sizeof(much));
	CHECK(n > 0 && n < (ssize_t)sizeof(much) && now_ms() - start < WAIT_MS);
	h.over = true;
	CHECK(!shutdown(e.client, SHUT_WR));
	thread_join(h.thread);
}

/* A full connection whose writing direction is shut fails at once; it does not wait for room. */
static void write_behind_shutdown_while_full(void)
{
	struct ends e;
	ends_open(&e);
	ends_use(&e);
	fill_up(e.client);
	CHECK(!shutdown(e.client, SHUT_WR));
	CHECK(send(e.client, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	CHECK(send(e.client, "xyz", 3, MSG_NOSIGNAL | MSG_DONTWAIT) == -1 && errno == EPIPE);
}

/* To ask how many bytes there are takes no error away. */
static void reset_behind_fionread(void)
{
	struct ends e;
	int count;
	char got;
	ends_open(&e);
	ends_use(&e);
	send_text(e.client, "never read");
	wait_readable_octets(e.server, 10);
	CHECK(!close(e.server));
	CHECK(wait_for(e.client, POLLRDHUP) & (POLLHUP | POLLERR));
	CHECK(!ioctl(e.client, FIONREAD, &count) && count == 0);
	CHECK(read(e.client, &got, 1) == -1 && errno == ECONNRESET);
}

/* The kernel's TLS, where a kernel has it, belongs to no stream that another protocol frames. */
static void tls_of_the_kernel(void)
{
	struct ends e;
	ends_open(&e);
	ends_use(&e);
	int result = setsockopt(e.client, IPPROTO_TCP, TCP_ULP, "tls", 3);
	const char *rules = getenv("ANYWARP_SOCKETS_RULES");
	if (rules && !strcmp(rules, "on"))
		CHECK(result == -1 && errno == ENOPROTOOPT); /* a kernel without TLS says ENOENT */
	ends_use(&e);
}

static void pass_over(int number)
{
	(void)number;
}

static void *read_one(void *arg)
{
	struct helper *h = arg;
	h->tid = (pid_t)syscall(SYS_gettid);
	CHECK(read(h->fd, &h->got, 1) == 1);
	return NULL;
}

/*
 * A thread that sleeps in a read goes on with what comes next, though another thread starts a program that knows
 * nothing of this library meanwhile, and a signal restarts the read.
 */
static void popen_beside_a_read(void)
{
	struct sigaction action = { .sa_handler = pass_over, .sa_flags = SA_RESTART };
	struct ends e;
	ends_open(&e);
	ends_use(&e);
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	struct helper h = { .fd = e.server };
	h.thread = thread_start(read_one, &h);
	await_sleep(&h.tid);
	FILE *shell = popen("exit 0", "r");
	CHECK(shell && !pclose(shell));
	CHECK(!pthread_kill(h.thread, SIGUSR1));
	await_sleep(&h.tid);
	send_text(e.client, "1");
	thread_join(h.thread);
	CHECK(h.got == '1');
	send_text(e.client, "2");
	expect_text(e.server, "2");
}

/* The other descriptor keeps the connection, and the read its own. */
static void close_one_of_two_beside_a_read(void)
{
	struct ends e;
	ends_open(&e);
	ends_use(&e);
	int copy = dup(e.server);
	CHECK(copy >= 0);
	struct helper h = { .fd = e.server };
	h.thread = thread_start(read_one, &h);
	await_sleep(&h.tid);
	CHECK(!close(e.server));
	send_text(e.client, "1");
	thread_join(h.thread);
	CHECK(h.got == '1');
	send_text(e.client, "2");
	expect_text(copy, "2");
	CHECK(!close(copy));
	expect_end(e.client);
}

static const struct row rows[] = {
	{ "errno_is_left", errno_is_left },
	{ "many_buffers", many_buffers },
	{ "send_timeout_of_a_whole_write", send_timeout_of_a_whole_write },
	{ "write_behind_shutdown_while_full", write_behind_shutdown_while_full },
	{ "reset_behind_fionread", reset_behind_fionread },
	{ "tls_of_the_kernel", tls_of_the_kernel },
	{ "popen_beside_a_read", popen_beside_a_read },
	{ "close_one_of_two_beside_a_read", close_one_of_two_beside_a_read },
};
const struct rows call_rows = { rows, ARRAY_LEN(rows) };
