// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP connections, some begun together: one thread at either end, which polls.
#include "worker/tcp.h"

#include "worker/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define MESSAGE_OCTETS 4
/* Old connections, which the client has closed, may be there when the next ones come. */
#define SERVED_MAX (2 * ARGS_AT_ONCE_MAX)

/* 0 at the end of the stream, -1 where nothing came. */
static ssize_t receive(int fd, size_t octets)
{
	uint8_t buf[MESSAGE_OCTETS];
	ssize_t got = recv(fd, buf, octets, 0);

	if (got < 0 && errno != EAGAIN && errno != EINTR)
		fail_errno("a connection failed");
	return got;
}

static void send_message(int fd)
{
	uint8_t buf[MESSAGE_OCTETS] = { 0 };

	tcp_send(fd, buf, sizeof(buf));
}

struct batch {
	struct pollfd fds[ARGS_AT_ONCE_MAX];
	size_t got[ARGS_AT_ONCE_MAX];
	uint64_t count, connected, answered;
	uint64_t connected_ns; /* all of them */
};

static void advance(const struct session *session, struct batch *batch, uint64_t i)
{
	struct pollfd *at = &batch->fds[i];

	if (at->events == POLLOUT) {
		tcp_connect_end(session, at->fd);
		if (++batch->connected == batch->count)
			batch->connected_ns = clock_ns();
		at->events = POLLIN;
		send_message(at->fd);
		return;
	}
	batch->got[i] += tcp_got(receive(at->fd, MESSAGE_OCTETS - batch->got[i]));
	if (batch->got[i] == MESSAGE_OCTETS) {
		batch->answered++;
		at->events = 0;
	}
}

static void connect_batch(const struct session *session, uint64_t count,
			  const struct connect_times *times)
{
	struct batch batch = { .count = count };
	uint64_t began_ns = clock_ns();

	for (uint64_t i = 0; i < count; i++)
		batch.fds[i] =
			(struct pollfd){ .fd = tcp_connect_begin(session), .events = POLLOUT };
	while (batch.answered < count) {
		if (poll(batch.fds, count, -1) < 0)
			continue;
		for (uint64_t i = 0; i < count; i++) {
			if (batch.fds[i].revents)
				advance(session, &batch, i);
		}
	}
	stats_add(times->first_octet, (clock_ns() - began_ns) / count);
	stats_add(times->connect, (batch.connected_ns - began_ns) / count);
	for (uint64_t i = 0; i < count; i++)
		close(batch.fds[i].fd);
}

void tcp_connect_at_once(const struct session *session, uint64_t count,
			 const struct connect_times *times)
{
	while (count > 0) {
		uint64_t some = count < session->args.at_once ? count : session->args.at_once;

		connect_batch(session, some, times);
		count -= some;
	}
}

struct served {
	struct pollfd fds[2 + SERVED_MAX]; /* the control connection, the listener, connections */
	size_t got[2 + SERVED_MAX];
	nfds_t count;
};

static void accept_all(const struct session *session, struct served *served)
{
	int fd;

	while (served->count < 2 + SERVED_MAX && (fd = tcp_accept_now(session)) >= 0) {
		served->fds[served->count] = (struct pollfd){ .fd = fd, .events = POLLIN };
		served->got[served->count++] = 0;
	}
}

/* Returns whether the connection ended: the client closes first, as in tcp_serve_many. */
static bool serve(struct served *served, nfds_t i)
{
	int fd = served->fds[i].fd;
	ssize_t got = receive(fd, MESSAGE_OCTETS);

	if (got == 0) {
		close(fd);
		served->count--;
		served->fds[i] = served->fds[served->count];
		served->got[i] = served->got[served->count];
		return true;
	}
	if (got > 0) {
		served->got[i] += (size_t)got;
		if (served->got[i] == MESSAGE_OCTETS)
			send_message(fd);
	}
	return false;
}

void tcp_serve_at_once(const struct session *session, uint64_t count)
{
	struct served served = { .fds = { { .fd = session->control.fd, .events = POLLRDHUP },
					  { .fd = tcp.listener } },
				 .count = 2 };
	uint64_t ended = 0;

	if (fcntl(tcp.listener, F_SETFL, O_NONBLOCK) != 0)
		fail_errno("O_NONBLOCK");
	while (ended < count) {
		served.fds[1].events = served.count < 2 + SERVED_MAX ? POLLIN : 0;
		if (poll(served.fds, served.count, -1) < 0)
			continue;
		if (served.fds[0].revents)
			control_check(&session->control);
		/* From the last one on: it takes the place of one that ended. */
		for (nfds_t i = served.count - 1; i >= 2; i--) {
			if (served.fds[i].revents)
				ended += serve(&served, i);
		}
		if (served.fds[1].revents)
			accept_all(session, &served);
	}
}
