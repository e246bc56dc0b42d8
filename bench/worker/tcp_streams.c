// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Several TCP connections served in turn by one thread, or one in both directions at once: sockets
// that do not block, and an edge-triggered epoll set for when none of them can go on.
#include "worker/tcp_io.h"

#include "worker/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUNDS_A_LOOK 8

struct stream {
	int fd;
	bool can_send, can_receive; /* as far as we know */
	bool all_out, all_in; /* for this phase */
	size_t left; /* bytes of the batch under way */
	uint64_t octets_in;
	uint8_t *in; /* its own: what came on one connection does not lie over another's */
};

struct turn {
	const struct args *args;
	struct stream *streams;
	uint64_t count;
	int set;
	struct tcp_batch batch;
	struct pace pace;
	uint8_t *in; /* of all streams */
	size_t in_octets;
	bool last; /* the batch is the last message, marked */
	uint64_t out_open, in_open; /* streams that still have something to do */
	struct moved moved;
};

static void begin(struct turn *turn, const int *fds, unsigned int flow)
{
	turn->set = tcp_set(fds, turn->count, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	turn->batch = (struct tcp_batch){ tcp_buffer(turn->args->size), turn->args->size };
	turn->in_octets = tcp_receive_octets(turn->args);
	turn->in = tcp_buffer(turn->in_octets * turn->count);
	turn->streams = calloc(turn->count, sizeof(*turn->streams));
	if (!turn->streams)
		fail("no memory for %zu streams", (size_t)turn->count);
	for (uint64_t i = 0; i < turn->count; i++)
		turn->streams[i] = (struct stream){ .fd = fds[i],
						    .can_send = true,
						    .can_receive = true,
						    .in = turn->in + i * turn->in_octets,
						    .all_out = !(flow & FLOW_OUT),
						    .all_in = !(flow & FLOW_IN) };
	turn->out_open = flow & FLOW_OUT ? turn->count : 0;
	turn->in_open = flow & FLOW_IN ? turn->count : 0;
}

static void end(struct turn *turn)
{
	close(turn->set);
	free(turn->batch.buf);
	free(turn->in);
	free(turn->streams);
}

/* A new batch for a stream that is through with one; false when there is none any more. */
static bool refill(struct turn *turn, struct stream *stream)
{
	const struct args *args = turn->args;

	if (turn->last || pace_over(&turn->pace, args->batch * args->size))
		return false;
	stream->left = args->batch * args->size;
	turn->moved.out += args->batch;
	return true;
}

static bool step_out(struct turn *turn, struct stream *stream)
{
	size_t sent;

	if (stream->all_out || !stream->can_send || (stream->left == 0 && !refill(turn, stream)))
		return false;
	sent = tcp_send_some(stream->fd, &turn->batch, stream->left, MSG_DONTWAIT);
	stream->can_send = sent > 0;
	stream->left -= sent;
	if (turn->last && stream->left == 0) {
		stream->all_out = true;
		turn->out_open--;
	}
	return sent > 0;
}

static bool step_in(struct turn *turn, struct stream *stream)
{
	size_t got;

	if (stream->all_in || !stream->can_receive)
		return false;
	got = tcp_got(recv(stream->fd, stream->in, turn->in_octets, MSG_DONTWAIT));
	/* Less than asked for: there was no more. */
	stream->can_receive = got == turn->in_octets;
	if (got == 0)
		return false;
	stream->octets_in += got;
	if (tcp_ends(turn->args, stream->octets_in, stream->in, got)) {
		stream->all_in = true;
		turn->in_open--;
		turn->moved.in += stream->octets_in / turn->args->size;
	}
	return true;
}

/* The time is over and every batch is out: one marked message each. The buffer is everybody's. */
static void begin_last(struct turn *turn)
{
	for (uint64_t i = 0; i < turn->count; i++) {
		if (turn->streams[i].left > 0)
			return;
	}
	turn->last = true;
	turn->batch.buf[turn->batch.size - 1] = LAST_OCTET;
	for (uint64_t i = 0; i < turn->count; i++)
		turn->streams[i].left = turn->batch.size;
	turn->moved.out += turn->count;
}

static void look(struct turn *turn, bool wait)
{
	struct epoll_event events[64];
	int count = epoll_wait(turn->set, events, 64, wait ? -1 : 0);

	if (count < 0 && errno != EINTR)
		fail_errno("epoll_wait");
	for (int i = 0; i < count; i++) {
		struct stream *stream = &turn->streams[events[i].data.u64];

		stream->can_send |= (events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
		stream->can_receive |= (events[i].events & ~(uint32_t)EPOLLOUT) != 0;
	}
}

struct moved tcp_streams(const struct session *session, const int *fds, unsigned int flow,
			 uint64_t deadline_ns)
{
	struct turn turn = { .args = &session->args,
			     .count = tcp_lane_streams(session),
			     .pace = { .deadline_ns = deadline_ns } };
	unsigned int round = 0;

	begin(&turn, fds, flow);
	while (turn.out_open > 0 || turn.in_open > 0) {
		bool moved = false;

		for (uint64_t i = 0; i < turn.count; i++) {
			moved |= step_out(&turn, &turn.streams[i]);
			moved |= step_in(&turn, &turn.streams[i]);
		}
		if (turn.pace.over && !turn.last && turn.out_open > 0) {
			begin_last(&turn);
			moved |= turn.last;
		}
		if (!moved || ++round % ROUNDS_A_LOOK == 0)
			look(&turn, !moved);
	}
	end(&turn);
	return turn.moved;
}
