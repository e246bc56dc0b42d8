// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Direct connections: the endpoint is in this process, and a call that reads or writes is carried out by it
// in the calling thread. That goes on for as long as the program does nothing else with the fd; then the
// connection moves to a carrier, a process of its own, and is a bridged one from there on.
#ifndef XSOCK_PRELOAD_DIRECT_H
#define XSOCK_PRELOAD_DIRECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xsock/direct/calls.h"
#include "xsock/preload/fdtab.h"

#define AW_DIRECT_MAX 256 /* more of them are the keeper's: each has some fds of this process */
#define AW_DIRECT_LOWEST_FD 3 /* stdio reads and writes the others */

/* One connection. It is used again for another one, never freed: who has found it may still look at it. */
struct aw_direct {
	struct aw_xs_ep *ep;
	_Atomic(unsigned) users; /* threads that are, or may be, in a call of the endpoint */
	int far; /* the pair's other end, which nobody uses */
	int tcp; /* a duplicate of stream, for its options */
	int stream; /* the endpoint's */
	_Atomic(int64_t) receive_ns, send_ns; /* time-outs; -1: none */
	_Atomic(bool) shunned; /* the peer had closed when something was written */
	struct aw_kept kept;
	struct linger linger; /* once dead */
	struct aw_direct *next; /* dead, or free */
};

/* The engine; NULL until there is a direct connection. */
extern const struct aw_direct_calls *aw_direct_engine;

/* Unless the program's user wants no direct connections; then there are none, and nothing here does anything. */
extern bool aw_direct_wanted;

static inline bool aw_direct_is_on(void)
{
	return aw_direct_wanted;
}

/* Whether sock, about to start by a call that reads or writes fd, is to be direct. It is STARTING and held. */
bool aw_direct_may(struct aw_sock *sock, int fd);
/* Connections were handed on, or one has ended here: fewer, or more, may be direct. */
void aw_direct_lose_patience(void);
void aw_direct_gain_patience(void);
/* The engine, if it is not there yet. False: there is none. */
bool aw_direct_load(void);
/* Starts it (aw_swap_give). */
int aw_direct_give(struct aw_sock *sock, int fd, int far, int near);

/* Whether a call comes from the libraries that carry connections, whose fds are not the program's. */
bool aw_direct_is_engine(const void *caller);
/* False in the child of a fork that we have not seen: the connections are the parent's. */
bool aw_direct_is_alive(void);
/* The program handles some signal. */
bool aw_direct_has_handlers(void);
void aw_direct_note_handler(void);

/* fd's connection is used, or not any more. NULL: it is not direct (any more). */
struct aw_direct *aw_direct_enter(int fd);
/* The same when it is known what fd is: nobody gets in while connections are handed on. fd is one end of a pair. */
struct aw_direct *aw_direct_enter_settled(int fd);
void aw_direct_leave(struct aw_direct *direct);

/* fd becomes a bridged one, if it is direct. 0, or -1 with errno. */
int aw_direct_convert(int fd);
/* All that is direct; surviving: only what is open after an exec. */
void aw_direct_convert_all(bool surviving);
/* The process is about to end, or to become another program. */
void aw_direct_end(void);
/* Before an exec. */
void aw_direct_exec(void);
/* The time-outs of fd, which were set on the near end. */
void aw_direct_read_timeouts(int fd);

/* Connections that are closed; by aw_fdtab_unlock. */
void aw_direct_bury(struct aw_direct *dead);

/*
 * The calls. False: fd is none of ours (any more), libc's call is to be made. Else *result and errno. The first
 * touch is made here. flags: MSG_*.
 */
bool aw_direct_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_direct_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);

#endif
