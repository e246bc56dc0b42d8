// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MSG_OOB: one octet aside or in line, its mark, SIGURG and POLLPRI.
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t urgent_signals;

static void count_urgent(int number)
{
	(void)number;
	urgent_signals++;
}

static void touch(struct ends *e)
{
	send_text(e->client, "x");
	expect_text(e->server, "x");
}

static void urgent_aside(void)
{
	struct ends e;
	char got[16];
	ends_open(&e);
	touch(&e);
	CHECK(recv(e.server, got, 1, MSG_OOB) == -1 && errno == EINVAL);
	send_text(e.client, "before");
	CHECK(send(e.client, "u", 1, MSG_OOB) == 1);
	send_text(e.client, "after");
	CHECK(wait_for(e.server, POLLPRI) & POLLPRI);
	CHECK(recv(e.server, got, 1, MSG_OOB | MSG_PEEK) == 1 && got[0] == 'u');
	CHECK(recv(e.server, got, 1, MSG_OOB) == 1 && got[0] == 'u');
	CHECK(recv(e.server, got, 1, MSG_OOB) == -1 && errno == EINVAL);
	expect_text(e.server, "beforeafter");
	struct pollfd p = { e.server, POLLPRI, 0 };
	CHECK(poll(&p, 1, 0) == 0);
}

/* Reads stop at the mark; sockatmark tells of it. */
static void urgent_mark(void)
{
	struct ends e;
	char got[16];
	int at = -1;
	ends_open(&e);
	touch(&e);
	CHECK(sockatmark(e.server) == 0);
	CHECK(send(e.client, "12u", 3, MSG_OOB) == 3);
	send_text(e.client, "34");
	wait_readable_octets(e.server, 2);
	CHECK(wait_for(e.server, POLLPRI) & POLLPRI);
	CHECK(sockatmark(e.server) == 0);
	CHECK(recv(e.server, got, 16, 0) == 2 && !memcmp(got, "12", 2));
	CHECK(sockatmark(e.server) == 1 && !ioctl(e.server, SIOCATMARK, &at) && at == 1);
	CHECK(recv(e.server, got, 1, MSG_OOB) == 1 && got[0] == 'u');
	expect_text(e.server, "34");
	CHECK(sockatmark(e.server) == 0);
}

static void urgent_in_line(void)
{
	struct ends e;
	char got[16];
	int on = 1;
	ends_open(&e);
	touch(&e);
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	send_text(e.client, "12");
	CHECK(send(e.client, "u", 1, MSG_OOB) == 1);
	send_text(e.client, "34");
	wait_readable_octets(e.server, 5);
	CHECK(recv(e.server, got, 1, MSG_OOB) == -1 && errno == EINVAL);
	CHECK(recv(e.server, got, 16, 0) == 2 && !memcmp(got, "12", 2));
	CHECK(sockatmark(e.server) == 1);
	CHECK(recv(e.server, got, 16, 0) == 3 && !memcmp(got, "u34", 3));
}

static void urgent_signal(void)
{
	struct ends e;
	char got;
	int64_t deadline = now_ms() + WAIT_MS;
	struct sigaction action = { .sa_handler = count_urgent, .sa_flags = SA_RESTART };
	for (int touched = 0; touched < 2; touched++) {
		urgent_signals = 0;
		ends_open(&e);
		CHECK(!sigaction(SIGURG, &action, NULL));
		/* Before the first octet: it has to hold later. */
		CHECK(!fcntl(e.server, F_SETOWN, getpid()));
		if (touched)
			touch(&e);
		struct pollfd p = { e.server, POLLIN, 0 };
		CHECK(poll(&p, 1, 0) == 0);
		CHECK(send(e.client, "u", 1, MSG_OOB) == 1);
		while (!urgent_signals) {
			CHECK(now_ms() < deadline);
			poll(NULL, 0, 1);
		}
		CHECK(recv(e.server, &got, 1, MSG_OOB) == 1 && got == 'u');
	}
}

static void urgent_waits(void)
{
	struct ends e;
	char got;
	fd_set except;
	struct epoll_event event = { .events = EPOLLPRI | EPOLLET };
	int set = epoll_create1(0);
	ends_open(&e);
	touch(&e);
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, e.server, &event));
	CHECK(send(e.client, "u", 1, MSG_OOB) == 1);
	FD_ZERO(&except);
	FD_SET(e.server, &except);
	CHECK(select(e.server + 1, NULL, NULL, &except, NULL) == 1 && FD_ISSET(e.server, &except));
	CHECK(epoll_wait(set, &event, 1, WAIT_MS) == 1 && event.events & EPOLLPRI);
	CHECK(recv(e.server, &got, 1, MSG_OOB) == 1 && got == 'u');
}

/* The second overtakes the first, whose octet becomes one of the stream. */
static void urgent_twice(void)
{
	struct ends e;
	char got[8];
	ends_open(&e);
	touch(&e);
	CHECK(send(e.client, "ab", 2, MSG_OOB) == 2);
	CHECK(wait_for(e.server, POLLPRI) & POLLPRI);
	CHECK(send(e.client, "cd", 2, MSG_OOB) == 2);
	/* Whether the urgent octet itself is counted is nobody's promise. */
	int64_t deadline = now_ms() + WAIT_MS;
	int count = 0;
	while (count < 3) {
		CHECK(now_ms() < deadline && !ioctl(e.server, FIONREAD, &count));
		poll(NULL, 0, 1);
	}
	CHECK(recv(e.server, got, 8, MSG_OOB) == 1 && got[0] == 'd');
	expect_text(e.server, "abc");
}

/* A message tells that its byte is urgent; a read that wants more than comes before the mark ends there. */
static void urgent_message(void)
{
	struct ends e;
	char got[8];
	struct iovec iov = { got, 2 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ends_open(&e);
	touch(&e);
	CHECK(send(e.client, "12u", 3, MSG_OOB) == 3);
	send_text(e.client, "34");
	CHECK(wait_for(e.server, POLLPRI) & POLLPRI);
	CHECK(recvmsg(e.server, &msg, MSG_OOB) == 1 && got[0] == 'u' && msg.msg_flags == MSG_OOB);
	CHECK(recv(e.server, got, 4, MSG_WAITALL) == 2 && !memcmp(got, "12", 2));
	msg.msg_flags = -1;
	CHECK(recvmsg(e.server, &msg, MSG_WAITALL) == 2 && !msg.msg_flags);
	CHECK(!memcmp(got, "34", 2));
}

static void do_nothing(int number)
{
	(void)number;
}

/* At the mark a read waits for what comes behind the urgent byte: no longer than its time-out, or until a signal. */
static void urgent_blocks(void)
{
	struct ends e;
	char got[8];
	struct sigaction action = { .sa_handler = do_nothing };
	struct timeval limit = { .tv_usec = 60000 };
	struct itimerval soon = { .it_interval = limit, .it_value = limit }, never = { 0 };
	ends_open(&e);
	touch(&e);
	CHECK(send(e.client, "12u", 3, MSG_OOB) == 3);
	CHECK(wait_for(e.server, POLLPRI) & POLLPRI);
	CHECK(recv(e.server, got, 8, 0) == 2);
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	int64_t began = now_ms();
	CHECK(recv(e.server, got, 8, 0) == -1 && errno == EAGAIN);
	CHECK(now_ms() - began >= 50 && now_ms() - began < WAIT_MS);
	limit.tv_usec = 0;
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(recv(e.server, got, 8, 0) == -1 && errno == EINTR);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	send_text(e.client, "34");
	expect_text(e.server, "34");
}

static void use_urgent(int from, int to)
{
	char got;
	send_text(from, "before");
	CHECK(send(from, "u", 1, MSG_OOB) == 1);
	send_text(from, "after");
	CHECK(wait_for(to, POLLPRI) & POLLPRI);
	CHECK(recv(to, &got, 1, MSG_OOB) == 1 && got == 'u');
	expect_text(to, "beforeafter");
}

/* A stream's buffer may read where a library that is preloaded sees nothing of it. */
static void urgent_beside_stdio(void)
{
	struct ends e;
	ends_open(&e);
	touch(&e);
	use_urgent(e.client, e.server);
	FILE *stream = fdopen(e.server, "r+");
	CHECK(stream);
	use_urgent(e.client, e.server);
	use_urgent(e.server, e.client);
	int on = 1;
	CHECK(!setsockopt(e.server, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	CHECK(send(e.client, "12u", 3, MSG_OOB) == 3);
	expect_text(e.server, "12u");
	fclose(stream);
	expect_end(e.client);
}

static const struct row rows[] = {
	{ "urgent_aside", urgent_aside },
	{ "urgent_mark", urgent_mark },
	{ "urgent_in_line", urgent_in_line },
	{ "urgent_signal", urgent_signal },
	{ "urgent_waits", urgent_waits },
	{ "urgent_twice", urgent_twice },
	{ "urgent_message", urgent_message },
	{ "urgent_blocks", urgent_blocks },
	{ "urgent_beside_stdio", urgent_beside_stdio },
};
const struct rows urgent_rows = { rows, ARRAY_LEN(rows) };
