// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP connections one after the other; tcp_at_once.c has those that are begun together.
#include "worker/tcp.h"

#include <unistd.h>

#define MESSAGE_OCTETS 4

static void connect_once(const struct session *session, const struct connect_times *times)
{
	uint8_t buf[MESSAGE_OCTETS] = { 0 };
	uint64_t began_ns = clock_ns();
	int fd = tcp_connect_one(session);

	stats_add(times->connect, clock_ns() - began_ns);
	tcp_send(fd, buf, sizeof(buf));
	tcp_receive(fd, buf, sizeof(buf), MODE_BLOCK, -1);
	stats_add(times->first_octet, clock_ns() - began_ns);
	close(fd);
}

void tcp_connect_many(struct session *session, uint64_t count, const struct connect_times *times)
{
	if (session->args.at_once > 1) {
		tcp_connect_at_once(session, count, times);
		return;
	}
	while (count-- > 0)
		connect_once(session, times);
}

void tcp_serve_many(struct session *session, uint64_t count)
{
	if (session->args.at_once > 1) {
		tcp_serve_at_once(session, count);
		return;
	}
	while (count-- > 0) {
		uint8_t buf[MESSAGE_OCTETS];
		int fd = tcp_accept_one(session);

		tcp_receive(fd, buf, sizeof(buf), MODE_BLOCK, -1);
		tcp_send(fd, buf, sizeof(buf));
		/* The client closes first, and so keeps what TCP remembers of the connection. */
		while (recv(fd, buf, sizeof(buf), 0) > 0)
			;
		close(fd);
	}
}
