// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/tcp.h"

#include "worker/fail.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACKLOG 1024

struct tcp tcp = { .listener = -1 };

static void tcp_listen(struct session *session)
{
	tcp.listener = control_listen(&session->at, BACKLOG);
}

static void make_room(uint64_t count)
{
	tcp.fds = calloc(count, sizeof(*tcp.fds));
	if (!tcp.fds)
		fail("no memory for %zu connections", (size_t)count);
}

static void tcp_accept(struct session *session, uint64_t count)
{
	if (!tcp.fds)
		make_room(args_connections(&session->args));
	while (count-- > 0)
		tcp.fds[tcp.count++] = tcp_accept_one(session);
}

static void tcp_connect(struct session *session, uint64_t count)
{
	if (!tcp.fds)
		make_room(args_connections(&session->args));
	while (count-- > 0)
		tcp.fds[tcp.count++] = tcp_connect_one(session);
}

uint8_t *tcp_buffer(size_t octets)
{
	uint8_t *buf = malloc(octets);

	if (!buf)
		fail("no memory for a buffer of %zu bytes: give a smaller size", octets);
	memset(buf, 0, octets);
	return buf;
}

static int delay_nothing(const struct session *session, int fd)
{
	int on = session->args.combine == 0;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail_errno("TCP_NODELAY");
	return fd;
}

int tcp_connect_one(const struct session *session)
{
	return delay_nothing(session, control_connect_data(&session->at));
}

int tcp_connect_begin(const struct session *session)
{
	int fd = socket(session->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail_errno("no TCP socket");
	if (connect(fd, (const struct sockaddr *)&session->at,
		    control_address_size(&session->at)) != 0 &&
	    errno != EINPROGRESS)
		fail_errno("cannot connect to port %u", control_port(&session->at));
	return delay_nothing(session, fd);
}

void tcp_connect_end(const struct session *session, int fd)
{
	int cause;
	socklen_t size = sizeof(cause);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) != 0)
		fail_errno("SO_ERROR");
	errno = cause;
	if (cause)
		fail_errno("cannot connect to port %u", control_port(&session->at));
}

int tcp_accept_one(const struct session *session)
{
	struct pollfd fds[] = { { .fd = tcp.listener, .events = POLLIN },
				{ .fd = session->control.fd, .events = POLLRDHUP } };
	int fd;

	while (poll(fds, 2, -1) < 0 || !(fds[0].revents & POLLIN))
		control_check(&session->control);
	fd = accept4(tcp.listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		fail_errno("accept");
	return delay_nothing(session, fd);
}

int tcp_accept_now(const struct session *session)
{
	int fd = accept4(tcp.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		return delay_nothing(session, fd);
	if (errno != EAGAIN)
		fail_errno("accept");
	return -1;
}

size_t tcp_got(ssize_t result)
{
	if (result > 0)
		return (size_t)result;
	if (result == 0)
		fail("a connection ended before its test: the other end is gone");
	if (errno != EAGAIN && errno != EINTR)
		fail_errno("a connection failed");
	return 0;
}

void tcp_send(int fd, const uint8_t *buf, size_t octets)
{
	for (size_t done = 0; done < octets;)
		done += tcp_got(send(fd, buf + done, octets - done, MSG_NOSIGNAL));
}

int tcp_mode_set(int fd, enum mode mode)
{
	if (mode == MODE_EPOLL)
		return tcp_set(&fd, 1, EPOLLIN);
	return mode == MODE_EPOLL_EDGE ? tcp_set(&fd, 1, EPOLLIN | EPOLLET) : -1;
}

static void await_octets(int fd, enum mode mode, int set)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct epoll_event event;

	if (set >= 0 && epoll_wait(set, &event, 1, -1) < 0 && errno != EINTR)
		fail_errno("epoll_wait");
	if (mode == MODE_POLL && poll(&pollfd, 1, -1) < 0 && errno != EINTR)
		fail_errno("poll");
}

size_t tcp_receive_some(int fd, uint8_t *buf, size_t octets, enum mode mode, int set)
{
	int flags = mode == MODE_BLOCK ? 0 : MSG_DONTWAIT;
	size_t got;

	if (mode != MODE_EPOLL_EDGE) {
		await_octets(fd, mode, set);
		return tcp_got(recv(fd, buf, octets, flags));
	}
	/* An edge may be that of bytes which were received with those of the edge before. */
	got = tcp_got(recv(fd, buf, octets, flags));
	if (got == 0)
		await_octets(fd, mode, set);
	return got;
}

void tcp_receive(int fd, uint8_t *buf, size_t octets, enum mode mode, int set)
{
	for (size_t done = 0; done < octets;)
		done += tcp_receive_some(fd, buf + done, octets - done, mode, set);
}

int tcp_set(const int *first, uint64_t count, uint32_t events)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0)
		fail_errno("epoll_create1");
	for (uint64_t i = 0; i < count; i++) {
		struct epoll_event event = { .events = events, .data.u64 = i };

		if (epoll_ctl(set, EPOLL_CTL_ADD, first[i], &event) != 0)
			fail_errno("epoll_ctl");
	}
	return set;
}

const struct transport transport = {
	.name = "tcp",
	.rules = { .modes = { [TEST_LATENCY] = 1u << MODE_BLOCK | 1u << MODE_SPIN |
					       1u << MODE_EPOLL | 1u << MODE_POLL |
					       1u << MODE_EPOLL_EDGE,
			      [TEST_BANDWIDTH] = 1u << MODE_BLOCK | 1u << MODE_EPOLL |
						 1u << MODE_POLL | 1u << MODE_EPOLL_EDGE,
			      [TEST_HOTSPOT] = 1u << MODE_EPOLL | 1u << MODE_SPIN },
		   .mode_default = { [TEST_LATENCY] = MODE_BLOCK,
				     [TEST_BANDWIDTH] = MODE_BLOCK,
				     [TEST_HOTSPOT] = MODE_EPOLL },
		   .has_combine = true },
	.listen = tcp_listen,
	.accept = tcp_accept,
	.connect = tcp_connect,
	.ping = tcp_ping,
	.echo = tcp_echo,
	.flow = tcp_flow,
	.ask_all = tcp_ask_all,
	.answer_all = tcp_answer_all,
	.connect_many = tcp_connect_many,
	.serve_many = tcp_serve_many,
	.look = tcp_look,
};
