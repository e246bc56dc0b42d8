// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Descriptors: dup, dup2 and dup3, numbers that are used again, close in another thread.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void touch(struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
}

/* The end is told when the last of them is closed. */
static void dup_shares(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		struct pollfd p;
		ends_open(&e);
		if (touched)
			touch(&e);
		int two = dup(e.client), three = dup3(e.client, 77, O_CLOEXEC);
		CHECK(two >= 0 && three == 77 && fcntl(77, F_GETFD) == FD_CLOEXEC);
		send_text(e.client, "1");
		send_text(two, "2");
		send_text(three, "3");
		expect_text(e.server, "123");
		set_nonblocking(two, true);
		CHECK(fcntl(three, F_GETFL) & O_NONBLOCK);
		set_nonblocking(two, false);
		CHECK(!close(e.client) && !close(three));
		p = (struct pollfd){ e.server, POLLIN, 0 };
		CHECK(poll(&p, 1, 20) == 0);
		send_text(e.server, "back");
		expect_text(two, "back");
		CHECK(!close(two));
		expect_end(e.server);
	}
}

/* A dup of an accepted socket made before its first octet. */
static void dup_untouched(void)
{
	struct ends e;
	ends_open(&e);
	int two = dup(e.server);
	CHECK(!close(e.server));
	send_text(e.client, "ask");
	expect_text(two, "ask");
	int three = dup(e.client);
	send_text(three, "three");
	expect_text(two, "three");
	send_text(two, "tell");
	expect_text(e.client, "tell");
	close(three);
	close(e.client);
	expect_end(two);
}

/* dup2 over a connection closes it; over itself it does nothing. */
static void dup2_over(void)
{
	for (int touched = 0; touched < 2; touched++) {
		struct ends e;
		int pipes[2];
		char octet;
		ends_open(&e);
		CHECK(!pipe(pipes));
		if (touched)
			touch(&e);
		CHECK(dup2(e.client, e.client) == e.client);
		CHECK(dup3(e.client, e.client, 0) == -1 && errno == EINVAL);
		send_text(e.client, "before");
		CHECK(dup2(pipes[1], e.client) == e.client);
		CHECK(write(e.client, "p", 1) == 1 && read(pipes[0], &octet, 1) == 1);
		expect_text(e.server, "before");
		expect_end(e.server);
		close(e.client);
		close(e.server);
	}
}

/* One connection over another. */
static void dup2_connection(void)
{
	struct ends a, b;
	ends_open(&a);
	ends_open(&b);
	touch(&a);
	touch(&b);
	CHECK(dup2(a.client, b.client) == b.client);
	expect_end(b.server);
	send_text(b.client, "through b");
	expect_text(a.server, "through b");
	close(a.client);
	send_text(b.client, "again");
	expect_text(a.server, "again");
	close(b.client);
	expect_end(a.server);
}

/* A number that only the kernel was asked for by syscall(2). */
static void dup2_by_its_number(void)
{
#ifdef SYS_dup2
	struct ends e;
	char got[8];
	struct iovec iov = { got, sizeof(got) };
	ends_open(&e);
	touch(&e);
	CHECK(syscall(SYS_dup2, e.server, 77) == 77);
	send_text(e.client, "to 77");
	wait_readable_octets(e.server, 5);
	CHECK(syscall(SYS_preadv2, 77, &iov, 1, -1L, -1L, 0) == 5 && !memcmp(got, "to 77", 5));
	iov.iov_len = 5;
	CHECK(syscall(SYS_pwritev2, 77, &iov, 1, -1L, -1L, 0) == 5);
	expect_text(e.client, "to 77");
#endif
}

#define BESIDE 4200 /* fds of something else, which an exec leaves open as well */

/* A connection behind many other fds, across an exec. */
static void exec_behind_many_fds(void)
{
	struct rlimit limit;
	struct ends e;
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < 2 * BESIDE)
		return;
	limit.rlim_cur = 2 * BESIDE;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < BESIDE; i++)
		CHECK(dup(STDERR_FILENO) >= 0);
	ends_open(&e);
	touch(&e);
	CHECK(!fcntl(e.client, F_SETFD, FD_CLOEXEC));
	pid_t child = spawn_self("echo", e.server, false);
	CHECK(!close(e.server));
	send_text(e.client, "across exec");
	expect_text(e.client, "across exec");
	CHECK(!shutdown(e.client, SHUT_WR));
	expect_end(e.client);
	reap(child);
}

static void standard_fds(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	CHECK(dup2(e.client, STDIN_FILENO) == 0 && dup2(e.client, STDOUT_FILENO) == 1);
	close(e.client);
	CHECK(write(STDOUT_FILENO, "out", 3) == 3);
	expect_text(e.server, "out");
	send_text(e.server, "in");
	expect_text(STDIN_FILENO, "in");
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	expect_end(e.server);
}

/* The number of a closed connection is a file, a pipe, the next connection. */
static void number_used_again(void)
{
	struct ends e, next;
	struct stat st;
	char got[8];
	for (int i = 0; i < 4; i++) {
		ends_open(&e);
		if (i % 2)
			touch(&e);
		close(e.listener);
		int number = e.client;
		CHECK(!close(e.client));
		int file = open("/dev/zero", O_RDWR);
		CHECK(file == e.listener || file == number);
		CHECK(dup2(file, number) == number);
		CHECK(read(number, got, 8) == 8 && !memcmp(got, "\0\0\0\0\0\0\0", 8));
		CHECK(write(number, "x", 1) == 1);
		CHECK(send(number, "x", 1, 0) == -1 && errno == ENOTSOCK);
		CHECK(!fstat(number, &st) && S_ISCHR(st.st_mode));
		expect_end(e.server);
		CHECK(!close(number));
		ends_open(&next);
		send_text(next.client, "next");
		expect_text(next.server, "next");
		close(next.client);
		close(next.server);
		close(next.listener);
		close(e.server);
		close(file);
	}
}

static void close_ranges(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	CHECK(!close_range((unsigned)e.client, (unsigned)e.client, 0));
	CHECK(fcntl(e.client, F_GETFD) == -1 && errno == EBADF);
	expect_end(e.server);
	close(e.server);
	ends_open(&e);
	touch(&e);
	int low = e.client < e.server ? e.client : e.server;
	int kept = dup(e.server);
	CHECK(dup2(kept, 0) == 0);
	closefrom(low < 3 ? 3 : low);
	expect_end(0);
	ends_open(&e);
	touch(&e);
	CHECK(!close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	CHECK(fcntl(e.client, F_GETFD) == FD_CLOEXEC);
	touch(&e);
}

struct read_task {
	int fd;
	_Atomic pid_t tid;
	ssize_t result;
	char octet;
};

struct write_task {
	int fd;
	_Atomic pid_t tid;
	ssize_t result;
	char octets[1 << 20];
};

static bool is_asleep(pid_t tid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && !close(fd));
	return strstr(text, ") S") != NULL;
}

static void *read_one(void *arg)
{
	struct read_task *t = arg;
	t->tid = gettid();
	t->result = read(t->fd, &t->octet, 1);
	return NULL;
}

/* Who reads already keeps the connection until its call returns; then the peer sees the end. */
static void close_beside_a_read(bool by_dup2)
{
	struct ends e;
	int pipes[2];
	pthread_t thread;
	ends_open(&e);
	touch(&e);
	struct read_task task = { .fd = e.server };
	thread = thread_start(read_one, &task);
	while (!task.tid || !is_asleep(task.tid))
		poll(NULL, 0, 1);
	CHECK(!pipe(pipes));
	CHECK(by_dup2 ? dup2(pipes[0], e.server) == e.server : !close(e.server));
	send_text(e.client, "z");
	thread_join(thread);
	CHECK(task.result == 1 && task.octet == 'z');
	expect_end(e.client);
	CHECK(by_dup2 || (fcntl(e.server, F_GETFD) == -1 && errno == EBADF));
}

static void close_in_another_thread(void)
{
	close_beside_a_read(false);
}

static void dup2_in_another_thread(void)
{
	close_beside_a_read(true);
}

static void *write_much(void *arg)
{
	struct write_task *t = arg;
	t->tid = gettid();
	t->result = write(t->fd, t->octets, sizeof(t->octets));
	return NULL;
}

/* Who writes already, too. */
static void close_beside_a_write(void)
{
	static struct write_task task;
	struct ends e;
	ends_open(&e);
	touch(&e);
	size_t filled = fill_up(e.client);
	task.fd = e.client;
	pattern_fill(task.octets, sizeof(task.octets), filled);
	pthread_t thread = thread_start(write_much, &task);
	while (!task.tid || !is_asleep(task.tid))
		poll(NULL, 0, 1);
	CHECK(!close(e.client));
	expect_pattern(e.server, filled + sizeof(task.octets));
	thread_join(thread);
	CHECK(task.result == sizeof(task.octets));
	expect_end(e.server);
}

/* Connections opened, used and closed by many threads at once never meet. */
static void *churn(void *arg)
{
	char word[32];
	for (int i = 0; i < 20; i++) {
		struct ends e;
		ends_open(&e);
		snprintf(word, sizeof(word), "thread %p round %d", arg, i);
		send_text(e.client, word);
		expect_text(e.server, word);
		close(e.listener);
		close(i % 2 ? e.client : e.server);
		expect_end(i % 2 ? e.server : e.client);
		close(i % 2 ? e.server : e.client);
	}
	return NULL;
}

static void threads_churn(void)
{
	pthread_t threads[6];
	char names[6];
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		threads[i] = thread_start(churn, &names[i]);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		thread_join(threads[i]);
}

/* Without a poll, which would hand the connection on. */
static void exchange(int fd, bool first)
{
	char octet = 'x';

	CHECK(!first || send(fd, &octet, 1, 0) == 1);
	CHECK(recv(fd, &octet, 1, 0) == 1);
	CHECK(first || send(fd, &octet, 1, 0) == 1);
}

/* A process that may have few fds has room for as many connections as it looks. */
static void few_fds(void)
{
	struct rlimit limit;
	struct sockaddr_in name;
	int listener = listener_open(&name);

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 256;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	pid_t client = fork();
	for (int i = 0; i < 100; i++) {
		int fd = client ? accept(listener, NULL, NULL) : client_open(&name);
		CHECK(fd >= 0);
		exchange(fd, !client);
	}
	if (!client)
		_exit(0);
	reap(client);
}

/* A process that may write no file may have connections. */
static void no_files(void)
{
	struct rlimit none = { 0, 0 };
	struct ends e;

	CHECK(!setrlimit(RLIMIT_FSIZE, &none));
	ends_open(&e);
	touch(&e);
}

/* Closes fd by an instruction of its own, as a static library or a just-in-time compiler may. */
static void close_unseen(int fd)
{
#if defined(__x86_64__)
	long result = SYS_close;
	__asm__ volatile("syscall" : "+a"(result) : "D"((long)fd) : "rcx", "r11", "memory");
	CHECK(result == 0);
#elif defined(__aarch64__)
	register long number __asm__("x8") = SYS_close;
	register long result __asm__("x0") = fd;
	__asm__ volatile("svc 0" : "+r"(result) : "r"(number) : "memory");
	CHECK(result == 0);
#else
	CHECK(!close(fd));
#endif
}

/* What has the number of a connection that was closed behind all libraries is what it is, whichever call is first. */
static void unseen_close_then_file(void)
{
	for (int way = 0; way < 6; way++) {
		struct ends e;
		char got[8];
		int count = -1;
		ends_open(&e);
		touch(&e);
		close_unseen(e.client);
		CHECK(memfd_create("file", 0) == e.client);
		expect_end(e.server);
		if (way == 0)
			CHECK(read(e.client, got, sizeof(got)) == 0);
		else if (way == 1)
			CHECK(send(e.client, "x", 1, 0) == -1 && errno == ENOTSOCK);
		else if (way == 2)
			CHECK(recv(e.client, got, 1, MSG_PEEK) == -1 && errno == ENOTSOCK);
		else if (way == 3)
			CHECK(!ioctl(e.client, FIONREAD, &count) && count == 0);
		else if (way == 4)
			CHECK(shutdown(e.client, SHUT_WR) == -1 && errno == ENOTSOCK);
		CHECK(write(e.client, "text", 4) == 4);
		CHECK(!ioctl(e.client, FIONREAD, &count) && count == 0);
		CHECK(lseek(e.client, 0, SEEK_END) == 4);
		CHECK(pread(e.client, got, sizeof(got), 0) == 4 && !memcmp(got, "text", 4));
		CHECK(!close(e.client) && !close(e.server) && !close(e.listener));
	}
}

static void unseen_close_then_socket(void)
{
	for (int way = 0; way < 3; way++) {
		struct ends e;
		int pair[2];
		char got[8];
		ends_open(&e);
		touch(&e);
		close_unseen(e.client);
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && pair[0] == e.client);
		expect_end(e.server);
		if (way == 0) {
			CHECK(write(pair[1], "back", 4) == 4);
			CHECK(read(pair[0], got, sizeof(got)) == 4 && !memcmp(got, "back", 4));
		} else if (way == 1) {
			CHECK(recv(pair[0], got, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
		}
		CHECK(write(pair[0], "text", 4) == 4);
		CHECK(read(pair[1], got, sizeof(got)) == 4 && !memcmp(got, "text", 4));
		CHECK(!close(pair[0]) && !close(pair[1]) && !close(e.server) && !close(e.listener));
	}
}

static const struct row rows[] = {
	{ "dup_shares", dup_shares },
	{ "dup_untouched", dup_untouched },
	{ "dup2_over", dup2_over },
	{ "dup2_connection", dup2_connection },
	{ "dup2_by_its_number", dup2_by_its_number },
	{ "exec_behind_many_fds", exec_behind_many_fds },
	{ "standard_fds", standard_fds },
	{ "number_used_again", number_used_again },
	{ "close_ranges", close_ranges },
	{ "close_in_another_thread", close_in_another_thread },
	{ "dup2_in_another_thread", dup2_in_another_thread },
	{ "close_beside_a_write", close_beside_a_write },
	{ "threads_churn", threads_churn },
	{ "unseen_close_then_file", unseen_close_then_file },
	{ "unseen_close_then_socket", unseen_close_then_socket },
	{ "few_fds", few_fds },
	{ "no_files", no_files },
};
const struct rows fd_rows = { rows, ARRAY_LEN(rows) };
