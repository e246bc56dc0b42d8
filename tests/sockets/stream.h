// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a connection that carries octets both ways by calls picked at random. The model of a byte stream
// is beside it: each octet follows from the seed, its direction and its offset, and so do both lengths.
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CHECK(claim) ((claim) ? (void)0 : stream_failed(__FILE__, __LINE__, #claim))
#define CHUNK_MAX 80000
#define PIPE_MAX 60000

struct rng {
	uint64_t state;
};

/* One direction. */
struct flow {
	uint32_t seed;
	uint64_t offset, total;
};

enum waiter {
	WAIT_POLL,
	WAIT_PPOLL,
	WAIT_SELECT,
	WAIT_PSELECT,
	WAIT_LEVEL,
	WAIT_EDGE,
	WAIT_ONESHOT
};
#define WAITERS 7

struct end {
	const char *side, *call; /* the last one */
	struct rng rng;
	int fd;
	bool blocking; /* fd is, and a call may wait in the kernel */
	bool calls_dontwait; /* fd is blocking, and each call says MSG_DONTWAIT */
	bool does_in,
		does_out; /* the directions that are this end's, or this thread's, or process's */
	bool in_ended;
	bool can_in, can_out; /* no call has said EAGAIN since the last wait */
	bool stops_at_total; /* does not wait for the end of the stream behind the last octet */
	struct flow in, out;
	enum waiter waiter;
	int set; /* of epoll, or -1 */
	int in_pipe[2], out_pipe[2], file;
	size_t staged; /* octets of out in out_pipe, not yet counted in out.offset */
};

__attribute__((noreturn)) void stream_failed(const char *file, int line, const char *claim);
/* Whose state a failure in this thread tells. */
void stream_watch(const struct end *e);
/* A signal's handler: tells what is watched in this process, and ends it. */
void stream_tell_all(int number);

uint64_t rng_next(struct rng *r);
/* 0 to bound - 1 */
uint64_t rng_below(struct rng *r, uint64_t bound);
bool rng_chance(struct rng *r, unsigned one_in);
/* 1 to max, mostly small */
size_t rng_size(struct rng *r, size_t max);

void flow_fill(const struct flow *f, uint64_t offset, void *octets, size_t len);
/* The very octets that come at its offset, which it leaves. */
void flow_check(const struct flow *f, const void *octets, size_t len);

struct call {
	const char *name;
	ssize_t (*run)(struct end *e);
};

/* What a call did: octets carried, or one of these. */
#define STEP_AGAIN (-1) /* it would have waited */
#define STEP_INTERRUPTED (-2)
#define STEP_END (-3)

/* One call of a random form; the offset is moved by what it carried. */
long step_out(struct end *e);
long step_in(struct end *e);

void end_open_helpers(struct end *e);
void end_close_helpers(struct end *e);
bool end_is_done(const struct end *e);
/* Some octets, the end of the stream, or a wait for either. */
void end_step(struct end *e);
void end_run(struct end *e);
/* The connection continues under another fd. */
void end_renumber(struct end *e);
void waiter_set(struct end *e, enum waiter waiter);
void waiter_wait(struct end *e);

#endif
