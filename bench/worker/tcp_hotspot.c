// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many TCP connections with one short message under way on each, over a level-triggered epoll set.
#include "worker/tcp.h"

#include "worker/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 64

struct spot {
	int set;
	int timeout_ms;
	size_t size;
	uint8_t *in, *out;
	size_t *used; /* bytes of the message that is not whole yet, for each connection */
};

static struct spot begin(const struct args *args)
{
	struct spot spot = { .set = tcp_set(tcp.fds, tcp.count, EPOLLIN | EPOLLRDHUP),
			     .timeout_ms = args->mode == MODE_SPIN ? 0 : -1,
			     .size = args->size,
			     .in = tcp_buffer(args->size),
			     .out = tcp_buffer(args->size),
			     .used = calloc(tcp.count, sizeof(*spot.used)) };

	if (!spot.used)
		fail("no memory for %zu connections", (size_t)tcp.count);
	return spot;
}

static void end(struct spot *spot)
{
	close(spot->set);
	free(spot->in);
	free(spot->out);
	free(spot->used);
}

static int wait_some(const struct spot *spot, struct epoll_event *events)
{
	int found = epoll_wait(spot->set, events, EVENTS_MAX, spot->timeout_ms);

	if (found < 0 && errno != EINTR)
		fail_errno("epoll_wait");
	return found;
}

/* Receives on a connection that can be read. Returns whether a message is whole now, in spot->in. */
static bool receive(struct spot *spot, uint64_t number)
{
	size_t *used = &spot->used[number];

	*used += tcp_got(recv(tcp.fds[number], spot->in + *used, spot->size - *used, MSG_DONTWAIT));
	if (*used < spot->size)
		return false;
	*used = 0;
	return true;
}

static uint64_t ask(struct spot *spot, uint64_t number)
{
	uint64_t now = clock_ns();

	tcp_send(tcp.fds[number], spot->out, spot->size);
	return now;
}

/* One last message, marked, on the first connection when all others are through. */
static void ask_last(struct spot *spot)
{
	struct epoll_event events[EVENTS_MAX];

	spot->out[spot->size - 1] = LAST_OCTET;
	ask(spot, 0);
	while (wait_some(spot, events) <= 0 || !receive(spot, 0))
		;
}

void tcp_ask_all(struct session *session, const struct until *until, struct stats *stats)
{
	struct spot spot = begin(&session->args);
	uint64_t *asked_ns = calloc(tcp.count, sizeof(*asked_ns));
	struct epoll_event events[EVENTS_MAX];
	uint64_t under_way = tcp.count, done = 0;

	if (!asked_ns)
		fail("no memory for %zu connections", (size_t)tcp.count);
	for (uint64_t i = 0; i < tcp.count; i++)
		asked_ns[i] = ask(&spot, i);
	while (under_way > 0) {
		int found = wait_some(&spot, events);

		for (int i = 0; i < found; i++) {
			uint64_t number = events[i].data.u64, now;

			if (!receive(&spot, number))
				continue;
			now = clock_ns();
			stats_add(stats, now - asked_ns[number]);
			if (until_last(until, done++, now))
				under_way--;
			else
				asked_ns[number] = ask(&spot, number);
		}
	}
	ask_last(&spot);
	free(asked_ns);
	end(&spot);
}

void tcp_answer_all(struct session *session)
{
	struct spot spot = begin(&session->args);
	struct epoll_event events[EVENTS_MAX];
	bool last = false;

	while (!last) {
		int found = wait_some(&spot, events);

		for (int i = 0; i < found; i++) {
			uint64_t number = events[i].data.u64;

			if (!receive(&spot, number))
				continue;
			last = spot.in[spot.size - 1] == LAST_OCTET;
			tcp_send(tcp.fds[number], spot.out, spot.size);
		}
	}
	end(&spot);
}

/* An empty look over all connections; the set is made anew when there are more of them. */
void tcp_look(struct session *session)
{
	static int set = -1;
	static uint64_t in_set;
	struct epoll_event event;

	(void)session;
	if (in_set != tcp.count) {
		if (set >= 0)
			close(set);
		set = tcp_set(tcp.fds, tcp.count, EPOLLIN | EPOLLRDHUP);
		in_set = tcp.count;
	}
	if (epoll_wait(set, &event, 1, 0) != 0)
		fail("an idle connection is not idle: the other end is gone");
}
