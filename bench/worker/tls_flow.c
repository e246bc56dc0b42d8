// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tests over plain TLS: ping-pong, messages one way, and connections one after the other.
#include "worker/fail.h"
#include "worker/pace.h"
#include "worker/tls.h"

#include <stdlib.h>

#define MESSAGE_OCTETS 4
#define RECEIVE_MIN (64u << 10)

static struct tls connection; /* of the tests that have one */

static void tls_accept(struct session *session, uint64_t count)
{
	(void)count;
	connection = tls_accept_one(session);
}

static void tls_connect(struct session *session, uint64_t count)
{
	(void)count;
	connection = tls_connect_one(session);
}

static uint8_t *make_buffer(size_t octets)
{
	uint8_t *buf = calloc(1, octets);

	if (!buf)
		fail("no memory for a buffer of %zu bytes: give a smaller size", octets);
	return buf;
}

static void tls_ping(struct session *session, const struct until *until, struct stats *stats)
{
	size_t size = session->args.size;
	uint8_t *out = make_buffer(size), *in = make_buffer(size);
	uint64_t before = clock_ns();
	bool last = false;

	for (uint64_t done = 0; !last; done++) {
		uint64_t now;

		last = until_last(until, done, before);
		if (last)
			out[size - 1] = LAST_OCTET;
		tls_send(&connection, out, size);
		tls_receive(&connection, in, size);
		now = clock_ns();
		stats_add(stats, now - before);
		before = now;
	}
	free(out);
	free(in);
}

static void tls_echo(struct session *session)
{
	size_t size = session->args.size;
	uint8_t *out = make_buffer(size), *in = make_buffer(size);

	do {
		tls_receive(&connection, in, size);
		tls_send(&connection, out, size);
	} while (in[size - 1] != LAST_OCTET);
	free(out);
	free(in);
}

static struct moved stream_out(const struct args *args, uint64_t deadline_ns)
{
	uint8_t *buf = make_buffer(args->size);
	struct pace pace = { .deadline_ns = deadline_ns };
	struct moved moved = { 0, 0 };

	for (; !pace_over(&pace, args->size); moved.out++)
		tls_send(&connection, buf, args->size);
	buf[args->size - 1] = LAST_OCTET;
	tls_send(&connection, buf, args->size);
	moved.out++;
	free(buf);
	return moved;
}

/* How many bytes of messages the receiver has memory for: short ones come one behind the other. */
static size_t receive_octets(size_t size)
{
	return size < RECEIVE_MIN ? RECEIVE_MIN / size * size : size;
}

/* Each byte is received to its place in its message, as a program does that is going to use the message. */
static struct moved stream_in(const struct args *args)
{
	size_t room = receive_octets(args->size), at, got;
	uint8_t *buf = make_buffer(room);
	uint64_t octets = 0;

	do {
		at = octets % room;
		got = tls_receive_some(&connection, buf + at, room - at);
		octets += got;
	} while (octets % args->size != 0 || buf[at + got - 1] != LAST_OCTET);
	free(buf);
	return (struct moved){ .in = octets / args->size };
}

static struct moved tls_flow(struct session *session, unsigned int lane, unsigned int flow,
			     uint64_t deadline_ns)
{
	(void)lane;
	if (flow == FLOW_OUT)
		return stream_out(&session->args, deadline_ns);
	return stream_in(&session->args);
}

static void tls_connect_many(struct session *session, uint64_t count,
			     const struct connect_times *times)
{
	while (count-- > 0) {
		uint8_t buf[MESSAGE_OCTETS] = { 0 };
		uint64_t began_ns = clock_ns();
		struct tls tls = tls_connect_one(session);

		stats_add(times->connect, clock_ns() - began_ns);
		tls_send(&tls, buf, sizeof(buf));
		tls_receive(&tls, buf, sizeof(buf));
		stats_add(times->first_octet, clock_ns() - began_ns);
		tls_end(&tls, false);
	}
}

static void tls_serve_many(struct session *session, uint64_t count)
{
	while (count-- > 0) {
		uint8_t buf[MESSAGE_OCTETS];
		struct tls tls = tls_accept_one(session);

		tls_receive(&tls, buf, sizeof(buf));
		tls_send(&tls, buf, sizeof(buf));
		/* The client closes first, and so keeps what TCP remembers of the connection. */
		tls_end(&tls, true);
	}
}

const struct transport transport = {
	.name = "tls",
	.rules = { .modes = { [TEST_LATENCY] = 1u << MODE_BLOCK | 1u << MODE_EPOLL,
			      [TEST_BANDWIDTH] = 1u << MODE_BLOCK | 1u << MODE_EPOLL },
		   .mode_default = { [TEST_LATENCY] = MODE_BLOCK, [TEST_BANDWIDTH] = MODE_BLOCK },
		   .is_plain = true },
	.listen = tls_listen,
	.accept = tls_accept,
	.connect = tls_connect,
	.ping = tls_ping,
	.echo = tls_echo,
	.flow = tls_flow,
	.connect_many = tls_connect_many,
	.serve_many = tls_serve_many,
};
