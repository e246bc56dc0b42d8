// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "contract.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *claim)
{
	int err = errno;
	fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", file, line, claim, strerror(err));
	_exit(1);
}

/* From here on a client knows that its connection will be accepted, and may become one end of a pair. */
static void wait_for_none(int listener)
{
	struct pollfd pollfd = { .fd = listener, .events = POLLIN };
	CHECK(poll(&pollfd, 1, 0) == 0);
}

int listener_open(struct sockaddr_in *name)
{
	*name = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(*name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	CHECK(!bind(fd, (struct sockaddr *)name, sizeof(*name)));
	CHECK(!listen(fd, 16));
	CHECK(!getsockname(fd, (struct sockaddr *)name, &len) && len == sizeof(*name));
	wait_for_none(fd);
	return fd;
}

int client_open(const struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	CHECK(!connect(fd, (const struct sockaddr *)name, sizeof(*name)));
	return fd;
}

struct opener {
	struct sockaddr_in name;
	int client;
};

static void *open_client(void *arg)
{
	struct opener *opener = arg;
	opener->client = client_open(&opener->name);
	return NULL;
}

/* The kernel's own answer, without the library's. */
static bool is_unix(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	CHECK(!syscall(SYS_getsockname, fd, &name, &len));
	return name.ss_family == AF_UNIX;
}

/* With CONTRACT_PAIR the ends connect and accept in two threads, and become a pair of the kernel's. */
int client_open_late(const struct sockaddr_in *name, int gate)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0);
	CHECK(!connect(fd, (const struct sockaddr *)name, sizeof(*name)) || errno == EINPROGRESS);
	CHECK(wait_for(gate, POLLIN));
	CHECK(wait_for(fd, POLLOUT) & POLLOUT);
	set_nonblocking(fd, false);
	return fd;
}

void ends_open(struct ends *e)
{
	bool pair = getenv("CONTRACT_PAIR");
	struct opener opener;
	pthread_t thread;
	e->listener = listener_open(&opener.name);
	if (pair)
		thread = thread_start(open_client, &opener);
	else
		open_client(&opener);
	e->server = accept(e->listener, NULL, NULL);
	if (pair)
		thread_join(thread);
	e->client = opener.client;
	CHECK(e->server >= 0);
	check_pair(e->client, e->server);
}

void check_pair(int client, int server)
{
	CHECK(!getenv("CONTRACT_PAIR") || (is_unix(client) && is_unix(server)));
}

void set_nonblocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	CHECK(flags >= 0);
	CHECK(!fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void send_all(int fd, const void *octets, size_t len)
{
	for (const char *at = octets; len;) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
		CHECK(n > 0);
		at += n;
		len -= (size_t)n;
	}
}

void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

void recv_exact(int fd, void *octets, size_t len)
{
	for (char *at = octets; len;) {
		CHECK(wait_for(fd, POLLIN) & POLLIN);
		ssize_t n = recv(fd, at, len, 0);
		CHECK(n > 0);
		at += n;
		len -= (size_t)n;
	}
}

void expect_text(int fd, const char *text)
{
	char got[4096] = "";
	CHECK(strlen(text) < sizeof(got));
	recv_exact(fd, got, strlen(text));
	CHECK(!strcmp(got, text));
}

void expect_end(int fd)
{
	char octet;
	CHECK(wait_for(fd, POLLIN) & POLLIN);
	CHECK(recv(fd, &octet, 1, 0) == 0);
}

short wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t deadline = now_ms() + WAIT_MS;
	int n;
	do {
		n = poll(&p, 1, (int)(deadline - now_ms()));
	} while (n < 0 && errno == EINTR);
	CHECK(n == 1);
	return p.revents;
}

void wait_readable_octets(int fd, int count)
{
	int64_t deadline = now_ms() + WAIT_MS;
	int ready = 0;
	while (ready < count) {
		CHECK(now_ms() < deadline);
		CHECK(!ioctl(fd, FIONREAD, &ready));
		poll(NULL, 0, 1);
	}
	CHECK(ready == count);
}

static uint8_t pattern_octet(uint64_t offset)
{
	return (uint8_t)(offset ^ offset >> 8 ^ offset >> 16);
}

void pattern_fill(void *octets, size_t len, uint64_t offset)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)octets)[i] = pattern_octet(offset + i);
}

void pattern_check(const void *octets, size_t len, uint64_t offset)
{
	for (size_t i = 0; i < len; i++)
		CHECK(((const uint8_t *)octets)[i] == pattern_octet(offset + i));
}

/*
 * What takes octets at the other end, such as a proxy process, takes its time, and of a little room POLLOUT says
 * nothing: only a send does.
 */
#define QUIET_WAITS 3

size_t fill_up(int fd)
{
	uint8_t chunk[65536];
	size_t taken = 0;
	for (int quiet = 0;;) {
		size_t len = quiet ? 1 : sizeof(chunk);
		pattern_fill(chunk, len, taken);
		ssize_t n = send(fd, chunk, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			taken += (size_t)n;
			quiet = quiet > 0;
			continue;
		}
		CHECK(errno == EAGAIN);
		if (quiet == QUIET_WAITS)
			return taken;
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		quiet = poll(&p, 1, 100) == 0 ? quiet + 1 : 0;
	}
}

void expect_pattern(int fd, size_t len)
{
	uint8_t chunk[65536];
	for (size_t at = 0; at < len;) {
		size_t n = len - at < sizeof(chunk) ? len - at : sizeof(chunk);
		recv_exact(fd, chunk, n);
		pattern_check(chunk, n, at);
		at += n;
	}
}

int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void reap(pid_t child)
{
	int status;
	pid_t got;
	CHECK(child > 0);
	do {
		got = waitpid(child, &status, 0);
	} while (got < 0 && errno == EINTR);
	CHECK(got == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int raw_execve(const char *path, char *const argv[], char *const env[])
{
	return (int)syscall(SYS_execve, path, argv, env);
}

static int raw_execveat(const char *path, char *const argv[], char *const env[])
{
	return (int)syscall(SYS_execveat, AT_FDCWD, path, argv, env, 0);
}

static int by_execveat(const char *path, char *const argv[], char *const env[])
{
	return execveat(AT_FDCWD, path, argv, env, 0);
}

void exec_self(const char *word, int fd, bool without)
{
	exec_self_by(word, fd, without, BY_EXECVE);
}

void exec_self_by(const char *word, int fd, bool without, enum exec_way way)
{
	static int (*const ways[])(const char *path, char *const argv[],
				   char *const env[]) = { execve, by_execveat, raw_execve,
							  raw_execveat };
	char role[32], number[16], self[4096];
	char *const argv[] = { self, role, number, NULL };
	snprintf(role, sizeof(role), "--%s", word);
	snprintf(number, sizeof(number), "%d", fd);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	CHECK(n > 0);
	self[n] = 0;
	if (without)
		unsetenv("LD_PRELOAD");
	ways[way](self, argv, environ);
	CHECK(!"exec");
}

pid_t spawn_self(const char *word, int fd, bool without)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0)
		exec_self(word, fd, without);
	return child;
}

void fd_send(int channel, int fd)
{
	char octet = '!', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	CHECK(sendmsg(channel, &msg, 0) == 1);
}

int fd_recv(int channel)
{
	char octet, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &octet, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;
	CHECK(recvmsg(channel, &msg, 0) == 1);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	CHECK(c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}
