// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An rsocket: what a descriptor of rsocket(3) stands for. First a name and options alone, then a
// listener or the user of an endpoint, which carries the stream. Functions answer 0 or more, or
// a negative errno; the exported calls turn that into errno by aw_rs_result.
#ifndef XSOCK_RSOCKETS_RS_SOCKET_H
#define XSOCK_RSOCKETS_RS_SOCKET_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "xsock/endpoint/ep.h"

enum aw_rs_state {
	AW_RS_NEW,
	AW_RS_BOUND, // id holds the address
	AW_RS_LISTENING, // id listens
	AW_RS_STREAM, // ep is set
};

/* What programs set and ask for. */
struct aw_rs_options {
	uint32_t sndbuf, rcvbuf, sq_size, rq_size, inline_data, iomap_size;
	int64_t send_timeout_ns, recv_timeout_ns; // below 0: none
	struct linger linger;
	int reuse_addr, keepalive, oobinline, nodelay, v6only, keepidle;
};

struct aw_rs {
	int fd; // fixed once it is in the table; an eventfd, which counts what can be accepted
	int domain;
	bool datagram; // fd is a UDP socket, and all there is
	bool accepted; // by a listener
	struct aw_xs_ep *_Atomic ep; // set once
	_Atomic int flags; // O_NONBLOCK
	atomic_bool closed; // by rclose, while another thread was inside
	atomic_bool polled; // by a thread in rpoll that leads the others there
	atomic_uint waiting; // threads that sleep for it in whatever way
	pthread_mutex_t lock; // guards what follows
	enum aw_rs_state state;
	struct aw_rs_options options;
	void *route; // RDMA_ROUTE's bytes, which mean nothing on iWARP
	socklen_t route_len;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct aw_rs *first, *last; // accepted and not taken yet
	unsigned int queued, queued_max;
	bool was_full; // the queue, when the service last looked
	struct aw_rs *next; // in such a queue
};

struct aw_rs *aw_rs_create(int domain, const struct aw_rs_options *options);
void aw_rs_destroy(struct aw_rs *rs);

/* The endpoint, or NULL where there is none (yet). */
static inline struct aw_xs_ep *aw_rs_ep(struct aw_rs *rs)
{
	return atomic_load_explicit(&rs->ep, memory_order_acquire);
}

/* Makes the endpoint of an rsocket whose lock is held. */
int aw_rs_make_ep(struct aw_rs *rs, struct aw_xs_ep **ep) __attribute__((warn_unused_result));
/* Hands it over: from now on rs is a stream. */
void aw_rs_set_ep(struct aw_rs *rs, struct aw_xs_ep *ep);

/* Gives the id and its channel back, if there are any: the address is free again. */
void aw_rs_drop_id(struct aw_rs *rs);

/* The rsocket of a descriptor: 0, to be given back by aw_rs_leave, or -EBADF. */
int aw_rs_find(int fd, struct aw_rs **rs) __attribute__((warn_unused_result));
void aw_rs_leave(struct aw_rs *rs);

/* About the sleep of a call of the endpoint's. Any sleeper may take the event that another one waits
 * for, which is then seen late: who leads in rpoll has to know that it is not alone. */
void aw_rs_wait_begin(struct aw_rs *rs);
void aw_rs_wait_end(struct aw_rs *rs);

/* In the child of a fork. */
void aw_rs_process_forked(void);

/* The last step before the ABI. */
static inline ssize_t aw_rs_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

#endif
