// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bridges for what wrappers cannot follow: stdio, programs without this library, strict sandboxes,
// receivers of SCM_RIGHTS. The fd becomes one end of a pair, and the proxy process works on the
// record. Called by wrap/ and preload/; the functions take the fd table's lock.
//
// The proxy process takes a share of the slot and works on the record as one more holder. Other
// holders must not read the stream beside the pair: the slot names its proxy process, and their
// next read, write, poll or epoll_wait fetches the same end of the pair from it. Until then the
// proxy process keeps a copy of that end, and the TCP socket stays readable while the pair has
// unread bytes: the proxy process puts bytes into the pair by MSG_PEEK and drops them from the
// socket once they are read, or once an urgent byte or the stream's end has to be told behind
// them. So a thread that sleeps on the socket wakes and makes that call. A thread of the bridging
// process that slept in a read has a duplicate of the socket; once that gives it nothing, it goes
// on with the pair. A relative can follow only with the same proxy process, so fork and vfork
// start one if there are records.
//
// On a bridged fd a wrapper makes the program's own system call and no other, because sandboxes
// may allow no other.
#ifndef XSOCK_FRAMED_BRIDGE_H
#define XSOCK_FRAMED_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "xsock/framed/arena.h"

/* A child of vfork() has no fd table of its own: only its fds below this number are bridged. */
#define AW_BRIDGE_BORROWED_MAX 1024

/*
 * Bridges fd if it is FRAMED, with all other fds of its socket in this process; does nothing in a
 * child of vfork(). Returns 0, or -1 with errno; after an error fd stays FRAMED.
 */
int aw_framed_bridge(int fd);
/*
 * Bridges all FRAMED sockets; surviving: only those with an fd that an exec leaves open. Failures
 * are logged.
 */
void aw_framed_bridge_all(bool surviving);
/*
 * Bridges the FRAMED sockets of which TCP has yet to take the rest of an FPDU: the proxy process sends it, because this
 * process's threads end with it, and no child has them. ending: the process is about to end.
 */
void aw_framed_bridge_owing(bool ending);
/*
 * Gives up the arena: the process has become another user. Ends the connections that are FRAMED yet: they could not be bridged. No
 * other thread makes a socket STARTING meanwhile.
 */
void aw_framed_give_up(void);
/*
 * Called in a child of vfork() before an exec: bridges the child's fds that the exec leaves open.
 */
void aw_framed_bridge_borrowed(void);

/*
 * Another process may bridge a slot that this one holds, too: both must then read what the proxy
 * process gives them. aw_framed_follow_all() is called before a wait of any kind,
 * aw_framed_follow_one() before a call on fd. If the other process uses another proxy process, the
 * fds stay FRAMED.
 */
extern _Atomic(uint32_t) aw_framed_followed; /* aw_arena_bridges() at the last look */
void aw_framed_follow_all(void);
void aw_framed_follow_one(int fd);

static inline void aw_framed_follow(void)
{
	if (__builtin_expect(aw_arena_bridges() != atomic_load_explicit(&aw_framed_followed,
									memory_order_relaxed),
			     0))
		aw_framed_follow_all();
}

#endif
