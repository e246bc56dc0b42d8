// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading over TCP: short requests, as many under way as the window says, and a response of the size
// asked for to each.
#include "worker/tcp_io.h"

#include "worker/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define WINDOW_MAX 128

struct asker {
	int fd;
	uint64_t under_way; /* requests without their whole response */
	uint64_t octets_in;
	uint8_t *in; /* its own */
	bool last; /* asked for the last time */
};

struct asking {
	const struct args *args;
	size_t in_octets;
	uint8_t requests[WINDOW_MAX * REQUEST_OCTETS]; /* zero but for the mark in the last one */
	struct pace pace;
	uint64_t open; /* connections not at their end */
	struct moved moved;
};

/* Fills the window: requests that go out together are one call, as many as a batch has. */
static void ask(struct asking *asking, struct asker *asker)
{
	uint64_t window = asking->args->window;
	uint64_t batch = asking->args->batch < window ? asking->args->batch : window;

	while (!asker->last && asker->under_way + batch <= window) {
		size_t octets = batch * REQUEST_OCTETS;

		asker->last = pace_over(&asking->pace, batch * asking->args->size);
		asking->requests[octets - 1] = asker->last ? LAST_OCTET : 0;
		tcp_send(asker->fd, asking->requests, octets);
		asker->under_way += batch;
	}
}

static void take(struct asking *asking, struct asker *asker, int flags)
{
	size_t got = tcp_got(recv(asker->fd, asker->in, asking->in_octets, flags));
	uint64_t before = asker->octets_in / asking->args->size;
	uint64_t responses;

	asker->octets_in += got;
	responses = asker->octets_in / asking->args->size - before;
	asking->moved.in += responses;
	asker->under_way -= responses;
	if (asker->last && asker->under_way == 0)
		asking->open--;
	else
		ask(asking, asker);
}

/* The numbers of connections that can be read, at most 64; one is never waited for in a set. */
static int wait_readable(int set, uint64_t count, struct epoll_event *events)
{
	int found;

	if (count == 1) {
		events[0].data.u64 = 0;
		return 1;
	}
	do {
		found = epoll_wait(set, events, 64, -1);
	} while (found < 0 && errno == EINTR);
	if (found < 0)
		fail_errno("epoll_wait");
	return found;
}

struct moved tcp_ask(const struct session *session, const int *fds, uint64_t deadline_ns)
{
	uint64_t count = tcp_lane_streams(session);
	struct asker askers[64] = { 0 };
	struct asking asking = { .args = &session->args,
				 .in_octets = tcp_receive_octets(&session->args),
				 .pace = { .deadline_ns = deadline_ns },
				 .open = count };
	int set = tcp_set(fds, count, EPOLLIN | EPOLLRDHUP);
	struct epoll_event events[64];
	uint8_t *in;

	in = tcp_buffer(asking.in_octets * count);
	for (uint64_t i = 0; i < count; i++) {
		askers[i].fd = fds[i];
		askers[i].in = in + i * asking.in_octets;
		ask(&asking, &askers[i]);
	}
	while (asking.open > 0) {
		int found = wait_readable(set, count, events);

		for (int i = 0; i < found; i++)
			take(&asking, &askers[events[i].data.u64], count == 1 ? 0 : MSG_DONTWAIT);
	}
	close(set);
	free(in);
	return asking.moved;
}

struct answerer {
	int fd;
	size_t used; /* bytes of a request that is not whole yet */
	uint8_t requests[WINDOW_MAX * REQUEST_OCTETS];
	bool over;
};

/* Answers what came in whole, up to a batch in a call. */
static uint64_t answer(struct answerer *answerer, const struct tcp_batch *batch, size_t batch_max)
{
	size_t whole = answerer->used / REQUEST_OCTETS;
	size_t octets = whole * REQUEST_OCTETS;

	for (size_t left = whole; left > 0;) {
		size_t now = left < batch_max ? left : batch_max;

		for (size_t rest = now * batch->size; rest > 0;)
			rest -= tcp_send_some(answerer->fd, batch, rest, 0);
		left -= now;
	}
	if (whole > 0)
		answerer->over = answerer->requests[octets - 1] == LAST_OCTET;
	answerer->used -= octets;
	memmove(answerer->requests, answerer->requests + octets, answerer->used);
	return whole;
}

struct moved tcp_answer(const struct session *session, const int *fds)
{
	uint64_t count = tcp_lane_streams(session), open = count;
	struct answerer *answerers = calloc(count, sizeof(*answerers));
	struct tcp_batch batch = { tcp_buffer(session->args.size), session->args.size };
	int set = tcp_set(fds, count, EPOLLIN | EPOLLRDHUP);
	struct epoll_event events[64];
	struct moved moved = { 0, 0 };

	if (!answerers)
		fail("no memory for %zu streams", (size_t)count);
	while (open > 0) {
		int found = wait_readable(set, count, events);

		for (int i = 0; i < found; i++) {
			struct answerer *one = &answerers[events[i].data.u64];

			one->fd = fds[events[i].data.u64];
			one->used += tcp_got(recv(one->fd, one->requests + one->used,
						  sizeof(one->requests) - one->used, 0));
			moved.out += answer(one, &batch, session->args.batch);
			open -= one->over;
		}
	}
	close(set);
	free(batch.buf);
	free(answerers);
	return moved;
}
