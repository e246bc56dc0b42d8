// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a program may do first with a connection that it has accepted, and what may come between.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../lib/limit.h"

#define ROUNDS 200
#define CROWD 700

static void ends_close(struct ends *e)
{
	close(e->client);
	close(e->server);
	close(e->listener);
}

static void first_dprintf(void)
{
	struct ends e;
	ends_open(&e);
	CHECK(dprintf(e.server, "%d octets", 8) == 8);
	expect_text(e.client, "8 octets");
}

/* As in programs that are built with _FORTIFY_SOURCE. */
int __dprintf_chk(int fd, int flag, const char *format, ...);

static void first_dprintf_fortified(void)
{
	struct ends e;
	ends_open(&e);
	CHECK(__dprintf_chk(e.server, 1, "%d octets", 8) == 8);
	expect_text(e.client, "8 octets");
}

/* However a connection comes to be the standard output. */
static void first_printf(void)
{
	for (int how = 0; how < 4; how++) {
		struct ends e;
		ends_open(&e);
		if (how > 0)
			close(STDOUT_FILENO);
		if (how == 0)
			CHECK(dup2(e.server, STDOUT_FILENO) == STDOUT_FILENO);
		else if (how == 1)
			CHECK(dup(e.server) == STDOUT_FILENO);
		else if (how == 2)
			CHECK(fcntl(e.server, F_DUPFD, 0) == STDOUT_FILENO);
		else {
			int other = socket(AF_INET, SOCK_STREAM, 0);
			struct sockaddr_in name;
			socklen_t len = sizeof(name);
			CHECK(other == STDOUT_FILENO);
			CHECK(!getsockname(e.listener, (struct sockaddr *)&name, &len));
			close(other);
			close(e.client);
			e.client = fcntl(client_open(&name), F_DUPFD, STDERR_FILENO + 1);
			close(STDOUT_FILENO);
			CHECK(accept(e.listener, NULL, NULL) == STDOUT_FILENO);
		}
		printf("how %d", how);
		CHECK(!fflush(stdout));
		char text[] = { 'h', 'o', 'w', ' ', (char)('0' + how), 0 };
		expect_text(e.client, text);
		ends_close(&e);
	}
}

static void first_preadv2(void)
{
	struct ends e;
	char text[8] = "";
	struct iovec iov = { text, sizeof(text) };
	ends_open(&e);
	send_text(e.client, "word");
	CHECK(preadv2(e.server, &iov, 1, -1, 0) == 4);
	CHECK(!strcmp(text, "word"));
}

static void first_pwritev2(void)
{
	struct ends e;
	struct iovec iov = { "word", 4 };
	ends_open(&e);
	CHECK(pwritev2(e.server, &iov, 1, -1, 0) == 4);
	expect_text(e.client, "word");
}

static void first_system(void)
{
	struct ends e;
	char command[64];
	ends_open(&e);
	snprintf(command, sizeof(command), "printf word >&%d", e.server);
	CHECK(!system(command));
	expect_text(e.client, "word");
	send_text(e.server, "another");
	expect_text(e.client, "another");
}

static volatile int handled_fd = -1;

static void use_fd(int number)
{
	int saved = errno;
	(void)number;
	ssize_t sent = handled_fd >= 0 ? write(handled_fd, "h", 1) : 0;
	(void)sent;
	errno = saved;
}

/* A handler that uses the fd while a thread is in its first call. */
static void first_interrupted(void)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = use_fd, .sa_flags = SA_RESTART };
	CHECK(!sigaction(SIGVTALRM, &action, NULL));
	CHECK(!sigaction(SIGALRM, &action, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		struct ends e;
		ends_open(&e);
		handled_fd = e.server;
		setitimer(ITIMER_REAL, &often, NULL);
		CHECK(write(e.server, "x", 1) == 1);
		setitimer(ITIMER_REAL, &never, NULL);
		handled_fd = -1;
		ends_close(&e);
	}
	alarm(0);
}

static void cancel_self(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

static void *read_cancelled(void *arg)
{
	char text[8];
	cancel_self();
	ssize_t got = read(*(int *)arg, text, 1);
	(void)got;
	return NULL;
}

static void *write_cancelled(void *arg)
{
	cancel_self();
	ssize_t sent = write(*(int *)arg, "never", 5);
	(void)sent;
	return NULL;
}

/* Another thread goes on with what a cancelled one has begun; also where the call would not wait. */
static void first_cancelled(void)
{
	struct ends e;
	ends_open(&e);
	for (int touched = 0; touched < 2; touched++) {
		void *(*const calls[])(void *) = { read_cancelled, write_cancelled };
		send_text(e.client, "word");
		for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
			pthread_t thread;
			void *result;
			/* not by thread_start: a frame of its would be left behind, where the sanitizer finds it */
			CHECK(!pthread_create(&thread, NULL, calls[i], &e.server));
			CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
		}
		send_text(e.server, "back");
		expect_text(e.server, "word");
		expect_text(e.client, "back");
	}
}

static void *write_first(void *arg)
{
	send_text(*(int *)arg, "x");
	return NULL;
}

/* A fork while another thread is in its first call: the child has the connection, too. */
static void first_beside_fork(void)
{
	for (int i = 0; i < ROUNDS / 2; i++) {
		struct ends e;
		pthread_t thread;
		ends_open(&e);
		thread = thread_start(write_first, &e.server);
		for (volatile int turn = 0; turn < i * 977 % 60000; turn++)
			;
		pid_t child = fork();
		if (child == 0) {
			alarm(limit_s(20));
			send_text(e.server, "x");
			_exit(0);
		}
		reap(child);
		thread_join(thread);
		expect_text(e.client, "xx");
		ends_close(&e);
	}
}

/* A number that was closed by a call that no library sees is another file's by then. */
static void first_beside_file(void)
{
	struct ends e;
	struct stat file;
	ends_open(&e);
	int copy = dup(e.server);
	CHECK(!syscall(SYS_close_range, copy, copy, 0));
	CHECK(open("/dev/null", O_RDWR) == copy);
	send_text(e.client, "word");
	expect_text(e.server, "word");
	CHECK(!fstat(copy, &file) && S_ISCHR(file.st_mode));
}

/* So many connections do not keep a program from becoming another one. */
static void exec_in_a_crowd(void)
{
	struct rlimit limit;
	struct ends e;
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max > 2 * CROWD + 100);
	ends_open(&e);
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	CHECK(!getsockname(e.listener, (struct sockaddr *)&name, &len));
	for (int i = 0; i < CROWD; i++) {
		int client = client_open(&name),
		    server = accept4(e.listener, NULL, NULL, SOCK_CLOEXEC);
		fcntl(client, F_SETFD, FD_CLOEXEC);
		send_text(server, "x");
	}
	pid_t child = spawn_self("echo", e.server, false);
	close(e.server);
	send_text(e.client, "word");
	expect_text(e.client, "word");
	shutdown(e.client, SHUT_WR);
	expect_end(e.client);
	reap(child);
}

/* What looks at the first bytes that a client gets leaves the socket readable. */
static void first_look_leaves_readable(void)
{
	for (int counts = 0; counts < 2; counts++) {
		char word[8];
		struct ends e;
		ends_open(&e);
		send_text(e.client, "asked");
		expect_text(e.server, "asked");
		send_text(e.server, "word");
		if (counts)
			wait_readable_octets(e.client, 4);
		else
			CHECK(recv(e.client, word, sizeof(word), MSG_PEEK) == 4);
		CHECK(wait_for(e.client, POLLIN) == POLLIN);
		expect_text(e.client, "word");
		close(e.client);
		close(e.server);
		close(e.listener);
	}
}

static const struct row rows[] = {
	{ "first_look_leaves_readable", first_look_leaves_readable },
	{ "first_dprintf", first_dprintf },
	{ "first_dprintf_fortified", first_dprintf_fortified },
	{ "first_printf", first_printf },
	{ "first_preadv2", first_preadv2 },
	{ "first_pwritev2", first_pwritev2 },
	{ "first_system", first_system },
	{ "first_interrupted", first_interrupted },
	{ "first_cancelled", first_cancelled },
	{ "first_beside_fork", first_beside_fork },
	{ "first_beside_file", first_beside_file },
	{ "exec_in_a_crowd", exec_in_a_crowd },
};
const struct rows first_rows = { rows, ARRAY_LEN(rows) };
