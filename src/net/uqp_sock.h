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

/* Starts the stream on fd. On failure fd stays the caller's. 0, ENOMEM, EMFILE. */
int aw_uqp_take_socket(struct aw_uqp *qp, int fd, struct aw_stream *stream);

/* Octets of one of TCP's segments, as the path allows now. */
uint32_t aw_uqp_segment_size(int fd);

/* Gives the socket up; what TCP holds still reaches the peer. The core is left as it is. */
void aw_uqp_drop_socket(struct aw_uqp *qp);

/* Receive, transmit, and see to what follows from it: FIN, events, the end. */
void aw_uqp_serve(struct aw_uqp *qp);

/* The same without the receiving: after posts. */
void aw_uqp_push(struct aw_uqp *qp);

/* What is held leaves. */
static inline void aw_uqp_let_go(struct aw_uqp *qp)
{
	if (qp->hold.listed)
		aw_uqp_push(qp);
}

/* Leaves the socket to polling threads, or to those that sleep on a channel, if that can be. */
void aw_uqp_lend(struct aw_uqp *qp);
void aw_uqp_lend_to(struct aw_uqp *qp, struct aw_channel *to);

/* For net/lend.c, in a child that carries on: the progress thread is to listen to the socket. */
void aw_uqp_rejoin(struct aw_uqp *qp);

/* For a thread that slept on a channel. It looks the QP up. No lock held. */
void aw_uqp_on_wake(uint32_t handle);

/*
 * For net/hold.c, likewise: what the QP holds leaves. late: if it is still held too long; at_exit: unless
 * the QP is in somebody's hands, who may be whom a signal interrupted to end the process.
 */
void aw_uqp_on_release(uint32_t handle);
void aw_uqp_on_late(uint32_t handle);
void aw_uqp_on_exit(uint32_t handle);

/* The progress thread's entry points; likewise. */
void aw_uqp_on_event(uint32_t handle);
void aw_uqp_on_deadline(uint32_t handle);

#endif
