// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// epoll: level, edge, one-shot, and registrations older than the connection.
#include "contract.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void control(int set, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	CHECK(!epoll_ctl(set, op, fd, &event));
}

/* The one event there is, which carries that data; 0: none within a moment. */
static uint32_t next(int set, uint64_t data)
{
	struct epoll_event events[4];
	int n = epoll_wait(set, events, 4, data ? WAIT_MS : 30);
	CHECK(n == (data ? 1 : 0));
	CHECK(!n || events[0].data.u64 == data);
	return n ? events[0].events : 0;
}

static void none(int set)
{
	next(set, 0);
}

static void epoll_level(void)
{
	struct ends e;
	int set = epoll_create1(EPOLL_CLOEXEC);
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, e.server, EPOLLIN, UINT64_MAX - 5);
	none(set);
	send_text(e.client, "ab");
	for (int i = 0; i < 2; i++)
		CHECK(next(set, UINT64_MAX - 5) == EPOLLIN);
	expect_text(e.server, "a");
	CHECK(next(set, UINT64_MAX - 5) == EPOLLIN);
	expect_text(e.server, "b");
	none(set);
	control(set, EPOLL_CTL_MOD, e.server, EPOLLOUT, 6);
	CHECK(next(set, 6) == EPOLLOUT);
	control(set, EPOLL_CTL_MOD, e.server, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 7);
	shutdown(e.client, SHUT_WR);
	CHECK(wait_for(e.server, POLLIN) == POLLIN);
	CHECK(next(set, 7) == (EPOLLIN | EPOLLOUT | EPOLLRDHUP));
	CHECK(!epoll_ctl(set, EPOLL_CTL_DEL, e.server, NULL));
	none(set);
	CHECK(epoll_ctl(set, EPOLL_CTL_DEL, e.server, NULL) == -1 && errno == ENOENT);
}

static void epoll_edge(void)
{
	struct ends e;
	int set = epoll_create1(0);
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, e.server, EPOLLIN | EPOLLET, 1);
	none(set);
	send_text(e.client, "ab");
	CHECK(next(set, 1) == EPOLLIN);
	wait_readable_octets(e.server, 2);
	none(set);
	expect_text(e.server, "a");
	none(set);
	send_text(e.client, "c");
	CHECK(next(set, 1) == EPOLLIN);
	expect_text(e.server, "bc");
	none(set);
	control(set, EPOLL_CTL_MOD, e.server, EPOLLIN | EPOLLOUT | EPOLLET, 2);
	CHECK(next(set, 2) == EPOLLOUT);
	none(set);
	close(e.client);
	CHECK(next(set, 2) & EPOLLIN);
	expect_end(e.server);
}

#define COUNTED_BYTES (8u << 20)

static void *write_pattern(void *fd)
{
	char piece[50000];

	for (size_t done = 0, len; done < COUNTED_BYTES; done += len) {
		len = COUNTED_BYTES - done < sizeof(piece) ? COUNTED_BYTES - done : sizeof(piece);
		pattern_fill(piece, len, done);
		send_all(*(int *)fd, piece, len);
	}
	return NULL;
}

/* Reads what ioctl(2) has counted, and no more: what comes later is another edge. How much it was. */
static size_t read_counted(int fd, size_t done)
{
	char piece[8192];
	size_t got = 0;
	int left = -1;

	while (left != 0) {
		size_t len = left > 0 && (size_t)left < sizeof(piece) ? (size_t)left
								      : sizeof(piece);
		ssize_t n = recv(fd, piece, len, MSG_DONTWAIT);

		CHECK(n > 0 || (n == -1 && errno == EAGAIN));
		if (n <= 0)
			break;
		pattern_check(piece, (size_t)n, done + got);
		got += (size_t)n;
		if (left > 0)
			left -= (int)n;
		else
			CHECK(!ioctl(fd, FIONREAD, &left));
	}
	return got;
}

/* As nginx reads: edge by edge, by FIONREAD. What is written all comes, however much it is. */
static void epoll_edge_counted(void)
{
	struct ends e;
	int set = epoll_create1(0);
	size_t done = 0;
	pthread_t thread;
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, e.server, EPOLLIN | EPOLLET, 1);
	thread = thread_start(write_pattern, &e.client);
	while (done < COUNTED_BYTES) {
		CHECK(next(set, 1) == EPOLLIN);
		done += read_counted(e.server, done);
	}
	CHECK(done == COUNTED_BYTES);
	thread_join(thread);
}

/* EPOLLOUT as an edge: told again when there is room again. */
static void epoll_edge_out(void)
{
	struct ends e;
	int set = epoll_create1(0);
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, e.client, EPOLLOUT | EPOLLET, 9);
	CHECK(next(set, 9) == EPOLLOUT);
	none(set);
	size_t taken = fill_up(e.client);
	while (epoll_wait(set, &(struct epoll_event){ 0 }, 1, 30) == 1)
		;
	expect_pattern(e.server, taken);
	CHECK(next(set, 9) == EPOLLOUT);
	send_text(e.client, "more");
	expect_text(e.server, "more");
}

static void epoll_oneshot(void)
{
	struct ends e;
	int set = epoll_create1(0);
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, e.server, EPOLLIN | EPOLLONESHOT, 1);
	send_text(e.client, "a");
	CHECK(next(set, 1) == EPOLLIN);
	none(set);
	send_text(e.client, "b");
	wait_readable_octets(e.server, 2);
	none(set);
	control(set, EPOLL_CTL_MOD, e.server, EPOLLIN | EPOLLONESHOT, 2);
	CHECK(next(set, 2) == EPOLLIN);
	expect_text(e.server, "ab");
	control(set, EPOLL_CTL_MOD, e.server, EPOLLIN | EPOLLONESHOT | EPOLLET, 3);
	none(set);
	send_text(e.client, "c");
	CHECK(next(set, 3) == EPOLLIN);
	none(set);
}

/* The one event is for the program, whatever the connection's start-up has told the set. */
static void epoll_oneshot_first(void)
{
	struct sockaddr_in name;
	int set = epoll_create1(0), listener = listener_open(&name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(!connect(fd, (struct sockaddr *)&name, sizeof(name)) || errno == EINPROGRESS);
	int server = accept(listener, NULL, NULL);
	control(set, EPOLL_CTL_ADD, server, EPOLLIN | EPOLLONESHOT, 1);
	none(set);
	control(set, EPOLL_CTL_ADD, fd, EPOLLOUT | EPOLLONESHOT, 2);
	CHECK(next(set, 2) == EPOLLOUT);
	none(set);
	send_text(fd, "x");
	CHECK(next(set, 1) == EPOLLIN);
	none(set);
	expect_text(server, "x");
}

/* A registration made before connect holds for the connection. */
static void epoll_before_connect(void)
{
	struct sockaddr_in name;
	int set = epoll_create1(0), listener = listener_open(&name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	control(set, EPOLL_CTL_ADD, listener, EPOLLIN, 1);
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, 2);
	epoll_wait(set, &(struct epoll_event){ 0 }, 1, 10);
	int rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK(rc == 0 || errno == EINPROGRESS);
	for (int seen = 0; seen != 3;) {
		struct epoll_event events[2];
		int n = epoll_wait(set, events, 2, WAIT_MS);
		CHECK(n > 0);
		for (int i = 0; i < n; i++) {
			CHECK(!(events[i].events & EPOLLERR));
			seen |= (int)events[i].data.u64;
		}
	}
	int server = accept(listener, NULL, NULL);
	send_text(server, "x");
	CHECK(next(set, 2) & EPOLLIN);
	expect_text(fd, "x");
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN, 3);
	send_text(server, "y");
	CHECK(next(set, 3) == EPOLLIN);
}

static void *accept_one(void *listener)
{
	static int server;
	server = accept(*(int *)listener, NULL, NULL);
	CHECK(server >= 0);
	return &server;
}

/* The same where another thread accepts at once: in mode auto the set's fd becomes one end of a pair. */
static void epoll_before_accepted(void)
{
	struct sockaddr_in name;
	int set = epoll_create1(0), listener = listener_open(&name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	void *server;
	pthread_t thread = thread_start(accept_one, &listener);
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1);
	int rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	CHECK(rc == 0 || errno == EINPROGRESS);
	CHECK(!pthread_join(thread, &server));
	CHECK(wait_for(fd, POLLOUT) == POLLOUT);
	check_pair(fd, *(int *)server);
	CHECK(next(set, 1) & EPOLLOUT);
	send_text(*(int *)server, "x");
	CHECK(next(set, 1) & EPOLLIN);
	expect_text(fd, "x");
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN, 2);
	send_text(*(int *)server, "y");
	CHECK(next(set, 2) == EPOLLIN);
	expect_text(fd, "y");
}

/* The connection is in two sets, and one of them in a third; a closed fd leaves them all. */
static void epoll_sets(void)
{
	struct ends e;
	int a = epoll_create1(0), b = epoll_create1(0), outer = epoll_create1(0);
	ends_open(&e);
	control(a, EPOLL_CTL_ADD, e.server, EPOLLIN, 1);
	control(b, EPOLL_CTL_ADD, e.server, EPOLLIN | EPOLLET, 2);
	control(outer, EPOLL_CTL_ADD, a, EPOLLIN, 3);
	struct epoll_event again = { .events = EPOLLIN };
	CHECK(epoll_ctl(a, EPOLL_CTL_ADD, e.server, &again) == -1 && errno == EEXIST);
	send_text(e.client, "x");
	CHECK(next(outer, 3) == EPOLLIN && next(a, 1) == EPOLLIN && next(b, 2) == EPOLLIN);
	CHECK(epoll_ctl(a, EPOLL_CTL_ADD, e.server, &again) == -1 && errno == EEXIST);
	struct pollfd p = { a, POLLIN, 0 };
	CHECK(poll(&p, 1, WAIT_MS) == 1 && p.revents == POLLIN);
	close(e.server);
	none(a);
	none(b);
	none(outer);
}

static void epoll_other_kinds(void)
{
	struct ends e;
	struct epoll_event events[4];
	int set = epoll_create1(0), event = eventfd(0, 0), seen = 0;
	ends_open(&e);
	control(set, EPOLL_CTL_ADD, event, EPOLLIN, 1);
	control(set, EPOLL_CTL_ADD, e.server, EPOLLIN, 2);
	control(set, EPOLL_CTL_ADD, e.client, EPOLLIN, 4);
	CHECK(!eventfd_write(event, 1));
	send_text(e.client, "x");
	send_text(e.server, "x");
	CHECK(wait_for(e.server, POLLIN) && wait_for(e.client, POLLIN));
	CHECK(epoll_pwait(set, events, 4, WAIT_MS, NULL) == 3);
	for (int i = 0; i < 3; i++)
		seen |= (int)events[i].data.u64;
	CHECK(seen == 7);
	struct timespec t = { 1, 0 };
	CHECK(epoll_pwait2(set, events, 2, &t, NULL) == 2);
}

static void epoll_bad(void)
{
	struct ends e;
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);
	ends_open(&e);
	CHECK(epoll_ctl(set, EPOLL_CTL_MOD, e.client, &event) == -1 && errno == ENOENT);
	CHECK(epoll_ctl(e.client, EPOLL_CTL_ADD, e.server, &event) == -1 && errno == EINVAL);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, 999, &event) == -1 && errno == EBADF);
	CHECK(epoll_wait(e.client, &event, 1, 0) == -1 && errno == EINVAL);
	CHECK(epoll_wait(set, &event, 0, 0) == -1 && errno == EINVAL);
}

/* The peer's reset is an event with all of its bits. */
static void epoll_reset(void)
{
	struct ends e;
	struct linger abort = { 1, 0 };
	int set = epoll_create1(0);
	ends_open(&e);
	send_text(e.client, "x");
	expect_text(e.server, "x");
	control(set, EPOLL_CTL_ADD, e.server, EPOLLET, 1);
	CHECK(!setsockopt(e.client, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	close(e.client);
	uint32_t bits = next(set, 1);
	CHECK((bits & (EPOLLERR | EPOLLHUP)) != 0);
	char octet;
	CHECK(recv(e.server, &octet, 1, 0) == -1 && errno == ECONNRESET);
}

/* One that does not know the newest system call; the library is not told of it. */
static void epoll_in_an_old_sandbox(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
	epoll_before_connect();
}

/* gRPC looks at what a non-blocking connect left in errno after it has added the socket to its set. */
static void epoll_errno(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC),
	    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL };

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		errno = EINPROGRESS;
		CHECK(!epoll_ctl(set, ops[i], fd, &event) && errno == EINPROGRESS);
	}
}

static const struct row rows[] = {
	{ "epoll_level", epoll_level },
	{ "epoll_errno", epoll_errno },
	{ "epoll_edge", epoll_edge },
	{ "epoll_edge_counted", epoll_edge_counted },
	{ "epoll_edge_out", epoll_edge_out },
	{ "epoll_oneshot", epoll_oneshot },
	{ "epoll_oneshot_first", epoll_oneshot_first },
	{ "epoll_before_connect", epoll_before_connect },
	{ "epoll_before_accepted", epoll_before_accepted },
	{ "epoll_in_an_old_sandbox", epoll_in_an_old_sandbox },
	{ "epoll_sets", epoll_sets },
	{ "epoll_other_kinds", epoll_other_kinds },
	{ "epoll_bad", epoll_bad },
	{ "epoll_reset", epoll_reset },
};
const struct rows epoll_rows = { rows, ARRAY_LEN(rows) };
