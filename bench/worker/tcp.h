// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The raw TCP end of a session: its connections, with TCP_NODELAY, and its buffers.
#ifndef BENCH_TCP_H
#define BENCH_TCP_H

#include "worker/session.h"

#include <stddef.h>

#define REQUEST_OCTETS 16

struct tcp {
	int listener;
	int *fds; /* connections, in the order they were made; lane after lane */
	uint64_t count;
};

extern struct tcp tcp;

/* Allocated and touched, so that what is measured meets no page faults. */
uint8_t *tcp_buffer(size_t octets);

/* One connection; fails where there is none. */
int tcp_connect_one(const struct session *session);
int tcp_accept_one(const struct session *session);

/* The same without waiting: poll says when the end may be called, which fails where there is no connection. -1: none
 * to accept. */
int tcp_connect_begin(const struct session *session);
void tcp_connect_end(const struct session *session, int fd);
int tcp_accept_now(const struct session *session);

/* All of it, blocking. */
void tcp_send(int fd, const uint8_t *buf, size_t octets);

/* A set for a thread that waits for bytes of fd as the mode says; -1 where the mode takes none. */
int tcp_mode_set(int fd, enum mode mode);

/* Waits as the mode says, and receives what there is; 0 where there is nothing yet. set is tcp_mode_set's. */
size_t tcp_receive_some(int fd, uint8_t *buf, size_t octets, enum mode mode, int set);

/* All of it. */
void tcp_receive(int fd, uint8_t *buf, size_t octets, enum mode mode, int set);

/* Returns the result of a call, 0 when it would have blocked; fails on an error and on the stream's end. */
size_t tcp_got(ssize_t result);

/* An epoll set with so many connections from first on; data is the number from 0. */
int tcp_set(const int *first, uint64_t count, uint32_t events);

void tcp_ping(struct session *session, const struct until *until, struct stats *stats);
void tcp_echo(struct session *session);
struct moved tcp_flow(struct session *session, unsigned int lane, unsigned int flow,
		      uint64_t deadline_ns);
struct moved tcp_stream(const struct session *session, const int *fds, unsigned int flow,
			uint64_t deadline_ns);
struct moved tcp_streams(const struct session *session, const int *fds, unsigned int flow,
			 uint64_t deadline_ns);
struct moved tcp_ask(const struct session *session, const int *fds, uint64_t deadline_ns);
struct moved tcp_answer(const struct session *session, const int *fds);
void tcp_ask_all(struct session *session, const struct until *until, struct stats *stats);
void tcp_answer_all(struct session *session);
void tcp_connect_many(struct session *session, uint64_t count, const struct connect_times *times);
void tcp_serve_many(struct session *session, uint64_t count);
void tcp_connect_at_once(const struct session *session, uint64_t count,
			 const struct connect_times *times);
void tcp_serve_at_once(const struct session *session, uint64_t count);
void tcp_look(struct session *session);

#endif
