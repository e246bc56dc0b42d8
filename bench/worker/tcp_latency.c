// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ping-pong over TCP. op=read is a short request and a response of the size asked for.
#include "worker/tcp.h"

#include <stdlib.h>
#include <unistd.h>

struct pong {
	int fd, set;
	enum mode mode;
	uint8_t *out, *in;
	size_t out_octets, in_octets;
};

static struct pong begin(const struct args *args, bool client)
{
	struct pong pong = { .fd = tcp.fds[0],
			     .mode = (enum mode)args->mode,
			     .out_octets = args->size,
			     .in_octets = args->size };

	pong.set = tcp_mode_set(pong.fd, pong.mode);
	if (args->op == OP_READ && client)
		pong.out_octets = REQUEST_OCTETS;
	else if (args->op == OP_READ)
		pong.in_octets = REQUEST_OCTETS;
	pong.out = tcp_buffer(pong.out_octets);
	pong.in = tcp_buffer(pong.in_octets);
	return pong;
}

static void end(struct pong *pong)
{
	if (pong->set >= 0)
		close(pong->set);
	free(pong->out);
	free(pong->in);
}

void tcp_ping(struct session *session, const struct until *until, struct stats *stats)
{
	struct pong pong = begin(&session->args, true);
	uint64_t before = clock_ns();
	bool last = false;

	for (uint64_t done = 0; !last; done++) {
		uint64_t now;

		last = until_last(until, done, before);
		if (last)
			pong.out[pong.out_octets - 1] = LAST_OCTET;
		tcp_send(pong.fd, pong.out, pong.out_octets);
		tcp_receive(pong.fd, pong.in, pong.in_octets, pong.mode, pong.set);
		now = clock_ns();
		stats_add(stats, now - before);
		before = now;
	}
	end(&pong);
}

void tcp_echo(struct session *session)
{
	struct pong pong = begin(&session->args, false);

	do {
		tcp_receive(pong.fd, pong.in, pong.in_octets, pong.mode, pong.set);
		tcp_send(pong.fd, pong.out, pong.out_octets);
	} while (pong.in[pong.in_octets - 1] != LAST_OCTET);
	end(&pong);
}
