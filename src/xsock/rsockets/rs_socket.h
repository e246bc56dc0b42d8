// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An rsocket, which a descriptor of rsocket(3) stands for: first a name and options alone, then a
// listener or the user of an endpoint. Functions return 0 or more, or a negative errno; the
// exported calls turn that into errno by aw_rs_result.
#ifndef XSOCK_RSOCKETS_RS_SOCKET_H
#define XSOCK_RSOCKETS_RS_SOCKET_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/thread_safety.h"
#include "xsock/endpoint/ep.h"

enum aw_rs_state {
	AW_RS_NEW,
	AW_RS_BOUND, // id has the address
	AW_RS_LISTENING, // id listens
	AW_RS_STREAM, // ep is set
};

/* The options that programs set and get. */
struct aw_rs_options {
	uint32_t sndbuf, rcvbuf, sq_size, rq_size, inline_data, iomap_size;
	// below 0: none; a call that waits reads them without the lock
	_Atomic int64_t send_timeout_ns, recv_timeout_ns;
	struct linger linger;
	int reuse_addr, keepalive, oobinline, nodelay, v6only, keepidle;
	bool v6only_set; // else as the host has it (net.ipv6.bindv6only)
};

struct aw_rs {
	int fd; // fixed once in the table; an eventfd that counts the connections in the queue
	int domain;
	bool datagram; // fd is a UDP socket; there is no endpoint
	bool accepted; // accepted by a listener
	struct aw_xs_ep *_Atomic ep; // set once
	_Atomic int flags; // O_NONBLOCK
	atomic_bool closed; // set by rclose while another thread is in a call
	const void *_Atomic leader; // the set of the thread that leads in rpoll, or NULL
	atomic_uint waiting; // threads that sleep on the endpoint in any call
	aw_mutex lock; // guards the fields below
	enum aw_rs_state state;
	struct aw_rs_options options;
	void *route; // the bytes of RDMA_ROUTE, which have no effect on iWARP
	socklen_t route_len;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	STAILQ_HEAD(, aw_rs) queue; // accepted connections
	unsigned int queued, queued_max;
	bool was_full; // the queue was full when the service last looked
	STAILQ_ENTRY(aw_rs) entry; // in a listener's queue

	TAILQ_ENTRY(aw_rs) watch_entry; // guarded by the service's lock, as is the next field
	bool watched; // the service serves the rsocket
	uint32_t turn; // of the service, when it has served the rsocket last
};

/* Creates an rsocket without a descriptor. NULL: no memory. */
struct aw_rs *aw_rs_create(int domain, const struct aw_rs_options *options);
/* Closes and frees an rsocket that no thread uses. */
void aw_rs_destroy(struct aw_rs *rs);

/* Returns the endpoint, or NULL while there is none. */
static inline struct aw_xs_ep *aw_rs_ep(struct aw_rs *rs)
{
	return atomic_load_explicit(&rs->ep, memory_order_acquire);
}

/* Creates an endpoint for rs. Returns 0 or a negative errno. */
int aw_rs_make_ep(struct aw_rs *rs, struct aw_xs_ep **ep) __attribute__((warn_unused_result))
AW_REQUIRES(rs->lock);
/* Gives rs the endpoint: rs is a stream from now on. */
void aw_rs_set_ep(struct aw_rs *rs, struct aw_xs_ep *ep) AW_REQUIRES(rs->lock);

/* Destroys the id and its channel, if there are any: the address is free again. */
void aw_rs_drop_id(struct aw_rs *rs) AW_REQUIRES(rs->lock);

/*
 * Begins an exported call on a descriptor. Returns its rsocket, held until aw_rs_leave. NULL with errno EBADF: the
 * descriptor is no rsocket.
 */
struct aw_rs *aw_rs_enter(int fd) __attribute__((warn_unused_result));
/* Ends the call. Returns the exported call's result: result, or -1 with errno for a negative errno. */
ssize_t aw_rs_leave(struct aw_rs *rs, ssize_t result);
/* Gives up a hold on rs, and closes it where it was the last one of an rsocket that the program has closed. */
void aw_rs_put(struct aw_rs *rs);

/* Returns whether a call with these flags (MSG_*) may wait. */
static inline bool aw_rs_may_block(const struct aw_rs *rs, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(atomic_load(&rs->flags) & O_NONBLOCK);
}

/*
 * Waits for events of the endpoint, or of the descriptor. Returns the events that hold, -EAGAIN at the
 * time-out (below 0: none), -EBADF if the rsocket was closed, or another negative errno.
 */
int aw_rs_wait(struct aw_rs *rs, short events, int64_t timeout_ns);
int aw_rs_wait_fd(struct aw_rs *rs, short events, int64_t timeout_ns);

/*
 * Called before and after a thread sleeps in a call of the endpoint's. Any sleeper may take the
 * event that another one waits for, which then sees it late: the thread that leads in rpoll has to
 * know that it is not alone.
 */
void aw_rs_wait_begin(struct aw_rs *rs);
void aw_rs_wait_end(struct aw_rs *rs);
/* Wakes the thread that leads in rpoll, to look again. */
void aw_rs_wake_leader(struct aw_rs *rs);

/* Turns a result into the exported call's: sets errno and returns -1 for a negative errno. */
static inline ssize_t aw_rs_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

#endif
