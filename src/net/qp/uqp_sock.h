// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the user-space QP: its socket, from attach to the last close.
#ifndef NET_UQP_SOCK_H
#define NET_UQP_SOCK_H

#include "net/qp/uqp.h"
#include "net/qp/uqp_io.h"

/* The functions by which the progress thread acts on a QP, none of which needs a lock: the QP may be gone. */
struct aw_uqp_calls {
	void (*on_event)(uint32_t handle);
	void (*on_deadline)(uint32_t handle);
	void (*on_delivered)(uint32_t handle, uint32_t number); /* for aw_linger_told */
};

/* As aw_uqp_attach_to. On failure fd and ring stay the caller's. 0, ENOMEM, EMFILE, or start's error. */
int aw_uqp_take_socket(struct aw_uqp *qp, const struct aw_uqp_socket *to, struct aw_stream *stream,
		       const struct aw_uqp_calls *calls) AW_REQUIRES(qp->lock);

/* Bytes of one TCP segment, as the path allows now. */
uint32_t aw_uqp_segment_size(int fd);

/* How many of the pieces lie before the first of which a byte is unmapped; count: all do. */
size_t aw_uqp_readable(const struct aw_iov *iov, size_t count);

/* Gives the socket up; bytes that TCP holds still reach the peer. The core is left as it is. */
void aw_uqp_drop_socket(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Receives, transmits, and acts on the result: FIN, events, the end. */
void aw_uqp_serve(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * As aw_uqp_serve, for a thread that polls: an acknowledgement that is all there is to send may
 * wait for its next post.
 */
void aw_uqp_serve_polled(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* As aw_uqp_serve without receiving; called after posts. */
void aw_uqp_push(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Sends what waits for the program's next call (net/qp/deferral.h). */
static inline void aw_uqp_flush(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->deferral.posts.waits || qp->deferral.ack.waits)
		aw_uqp_push(qp);
}

/* Called when the ending's time may be over (core/ending.h). */
void aw_uqp_end_in_time(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * Leaves the QP to other threads than the progress thread (net/qp/serve.h). channel: of AW_SERVER_WAITER and
 * AW_SERVER_WATCHER, else NULL. The QP stays where the channel's epoll set does not take the socket.
 */
void aw_uqp_leave_to(struct aw_uqp *qp, enum aw_server server, struct aw_channel *channel)
	AW_REQUIRES(qp->lock);

/* For a thread that slept on a channel: looks the QP up and serves it. */
void aw_uqp_on_wake(uint32_t handle);

/*
 * For net/qp/flush.c, likewise: sends what waits. late: only posts that still wait too long. exit: unless the QP's lock
 * is taken, maybe by the thread that a signal handler now makes exit.
 */
void aw_uqp_on_flush(uint32_t handle);
void aw_uqp_on_late(uint32_t handle);
void aw_uqp_on_exit(uint32_t handle);

/* Calls act for the QP with this handle, if there is one, with its lock held. */
void aw_uqp_with(uint32_t handle, void (*act)(struct aw_uqp *qp));

/* Calls act for every QP, with its lock held, except those that the child of a fork inherited. */
void aw_uqp_each(void (*act)(struct aw_uqp *qp));

/* From now on a fork takes the lock of the table of all QPs, and the locks that they share. */
struct aw_table;
void aw_uqp_fork_register(struct aw_table *qps);

/* Adds the events of the core's state to those that the owners are due. */
void aw_uqp_note_events(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
/* The end of a stream that ends with its QP, or with a reset. In the child of a fork the stream is the parent's. */
void aw_uqp_note_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Raises AW_UQP_DELIVERED, if it is still due. on_delivered: for aw_linger_told, without the lock. */
void aw_uqp_note_delivered(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_uqp_on_delivered(uint32_t handle, uint32_t number);

#endif
