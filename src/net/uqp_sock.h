// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the user-space QP: its socket, from attach to the last close. Callers hold the QP lock,
// but for the entry points of the progress thread and of waiters.
#ifndef NET_UQP_SOCK_H
#define NET_UQP_SOCK_H

#include "net/uqp.h"
#include "net/uqp_io.h"

/* How long a graceful close may take: what was posted, our FIN, the peer's. */
#define AW_CLOSE_MS 10000
/* How long a Terminate may take to get into the socket. */
#define AW_TERMINATE_MS 1000

/* Starts the stream on fd, or through ring. On failure both stay the caller's. 0, ENOMEM, EMFILE. */
int aw_uqp_take_socket(struct aw_uqp *qp, int fd, struct aw_stream *stream,
		       struct aw_host_ring *ring);

/* For net/carrier.c: the socket leaves the epoll sets of the CQs. */
void aw_uqp_leave_sets(struct aw_uqp *qp);

/* Octets of one of TCP's segments, as the path allows now. */
uint32_t aw_uqp_segment_size(int fd);

/*
 * In the child of a fork: the QP's stream is the parent's, or it never had one. The caller needs no lock: in the
 * child, that of such a QP may be taken for ever, by a thread that is the parent's alone.
 */
bool aw_uqp_is_inherited(const struct aw_uqp *qp);

/* Gives the socket up; what TCP holds still reaches the peer. The core is left as it is. */
void aw_uqp_drop_socket(struct aw_uqp *qp);

/* Receive, transmit, and see to what follows from it: FIN, events, the end. */
void aw_uqp_serve(struct aw_uqp *qp);

/* The same for a thread that polls: what is only to be acknowledged may wait for its post. */
void aw_uqp_serve_polled(struct aw_uqp *qp);

/* The same without the receiving: after posts. */
void aw_uqp_push(struct aw_uqp *qp);

/* What is held leaves. */
static inline void aw_uqp_let_go(struct aw_uqp *qp)
{
	if (qp->hold.listed || qp->ride.waits)
		aw_uqp_push(qp);
}

/* The program ends the stream: what is held leaves, and a Terminate does without the answers before it. */
void aw_uqp_take_leave(struct aw_uqp *qp);

/* The ending's time is over: abort, but where only answers kept a Terminate it has as much again without them. */
void aw_uqp_end_in_time(struct aw_uqp *qp);

/* Leaves the socket to polling threads, or to those that sleep on a channel, if that can be. */
void aw_uqp_lend(struct aw_uqp *qp);
void aw_uqp_lend_to(struct aw_uqp *qp, struct aw_channel *to);

/* For net/lend.c, in a child that carries on: the progress thread is to listen to the socket. */
void aw_uqp_rejoin(struct aw_uqp *qp);

/* For a thread that slept on a channel. It looks the QP up. No lock held. */
void aw_uqp_on_wake(uint32_t handle);

/*
 * For net/hold.c and net/ride.c, likewise: what the QP holds leaves. late: if it is still held too long; at_exit: unless
 * the QP is in somebody's hands, who may be whom a signal interrupted to end the process.
 */
void aw_uqp_on_release(uint32_t handle);
void aw_uqp_on_late(uint32_t handle);
void aw_uqp_on_exit(uint32_t handle);

/* For net/lost.c: the peer is gone, as if TCP had said so. */
void aw_uqp_lose(struct aw_uqp *qp);

/* Every QP there is, its lock taken for each; but none that the child of a fork inherited. */
void aw_uqp_each(void (*act)(struct aw_uqp *qp));

/* The progress thread's entry points; likewise. */
void aw_uqp_on_event(uint32_t handle);
void aw_uqp_on_deadline(uint32_t handle);

#endif
