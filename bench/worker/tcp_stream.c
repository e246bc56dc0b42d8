// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One TCP connection, one way: a sender that blocks, as a program does that has nothing else to do, and a receiver that
// waits as the mode says.
// Also the parts that the other ways of moving bytes over TCP share.
#include "worker/tcp_io.h"

#include "worker/fail.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define RECEIVE_MIN (64u << 10)
#define RECEIVE_MAX (1u << 20)

size_t tcp_receive_octets(const struct args *args)
{
	if (args->size < RECEIVE_MIN)
		return RECEIVE_MIN;
	return args->size > RECEIVE_MAX ? RECEIVE_MAX : args->size;
}

size_t tcp_send_some(int fd, const struct tcp_batch *batch, size_t left, int flags)
{
	size_t size = batch->size;
	size_t first = (left - 1) % size + 1;
	struct iovec iov[TCP_BATCH_MAX];
	struct msghdr msg = { .msg_iov = iov };

	if (left <= size)
		return tcp_got(send(fd, batch->buf + size - left, left, flags | MSG_NOSIGNAL));
	iov[msg.msg_iovlen++] = (struct iovec){ batch->buf + size - first, first };
	for (left -= first; left > 0; left -= size)
		iov[msg.msg_iovlen++] = (struct iovec){ batch->buf, size };
	return tcp_got(sendmsg(fd, &msg, flags | MSG_NOSIGNAL));
}

bool tcp_ends(const struct args *args, uint64_t octets, const uint8_t *buf, size_t got)
{
	return octets % args->size == 0 && buf[got - 1] == LAST_OCTET;
}

static void send_batch(int fd, const struct tcp_batch *batch, size_t messages)
{
	for (size_t left = messages * batch->size; left > 0;)
		left -= tcp_send_some(fd, batch, left, 0);
}

static struct moved stream_out(const struct args *args, int fd, uint64_t deadline_ns)
{
	struct tcp_batch batch = { tcp_buffer(args->size), args->size };
	struct pace pace = { .deadline_ns = deadline_ns };
	struct moved moved = { 0, 0 };

	while (!pace_over(&pace, args->batch * args->size)) {
		send_batch(fd, &batch, args->batch);
		moved.out += args->batch;
	}
	batch.buf[args->size - 1] = LAST_OCTET;
	send_batch(fd, &batch, 1);
	moved.out++;
	free(batch.buf);
	return moved;
}

static struct moved stream_in(const struct args *args, int fd)
{
	int set = tcp_mode_set(fd, (enum mode)args->mode);
	size_t room = tcp_receive_octets(args);
	uint8_t *buf = tcp_buffer(room);
	uint64_t octets = 0;
	size_t got;

	do {
		got = tcp_receive_some(fd, buf, room, (enum mode)args->mode, set);
		octets += got;
	} while (got == 0 || !tcp_ends(args, octets, buf, got));
	free(buf);
	if (set >= 0)
		close(set);
	return (struct moved){ .in = octets / args->size };
}

struct moved tcp_stream(const struct session *session, const int *fds, unsigned int flow,
			uint64_t deadline_ns)
{
	if (flow == FLOW_OUT)
		return stream_out(&session->args, fds[0], deadline_ns);
	return stream_in(&session->args, fds[0]);
}

struct moved tcp_flow(struct session *session, unsigned int lane, unsigned int flow,
		      uint64_t deadline_ns)
{
	uint64_t count = tcp_lane_streams(session);
	const int *fds = tcp.fds + lane * count;

	if (flow == FLOW_ASK)
		return tcp_ask(session, fds, deadline_ns);
	if (flow == FLOW_ANSWER)
		return tcp_answer(session, fds);
	if (count == 1 && flow != (FLOW_OUT | FLOW_IN))
		return tcp_stream(session, fds, flow, deadline_ns);
	return tcp_streams(session, fds, flow, deadline_ns);
}
