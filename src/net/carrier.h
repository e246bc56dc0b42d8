// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who carries a stream's bytes between two QPs: the TCP socket, or memory that two processes of one host share, with
// the socket for wakes and for the end. Chosen once, as the stream begins; a responder that has offered memory
// waits for the initiator's verdict first. All with the QP lock.
#ifndef NET_CARRIER_H
#define NET_CARRIER_H

#include "net/uqp_io.h"

#include <sys/types.h>
#include <sys/uio.h>

struct aw_carrier {
	const char *name; /* for the log */
	bool is_socket; /* bytes make the socket readable, room makes it writable, and each send is a system call */

	/* As sendmsg(2), without waiting: EAGAIN: no room; EFAULT: the program's memory is gone. */
	ssize_t (*send)(struct aw_uqp *qp, const struct aw_iov *iov, size_t count);
	/* After a send that was not whole: is it worth another one? */
	bool (*has_room)(struct aw_uqp *qp);
	/* What an FPDU may have. */
	uint32_t (*segment_size)(const struct aw_uqp *qp);
	/* Gives the core what has come, within a budget. polled: by a thread that will look again. */
	void (*receive)(struct aw_uqp *qp, bool polled);
	/* A held stream is not received from. */
	bool (*is_reset)(struct aw_uqp *qp);
	/* Whether the peer's end has all that was sent, its program or not. */
	bool (*has_taken_all)(struct aw_uqp *qp);
	/* Nothing more is sent. */
	void (*finish)(struct aw_uqp *qp);
	/*
	 * What to listen for on the socket, now that this turn is over; and while pollers look after the QP. NULL: that of the
	 * socket.
	 */
	uint32_t (*listens_for)(struct aw_uqp *qp);
	uint32_t (*lent)(struct aw_uqp *qp);
	uint32_t (*taken_back)(struct aw_uqp *qp);
};

extern const struct aw_carrier aw_carrier_tcp;
extern const struct aw_carrier aw_carrier_host;
extern const struct aw_carrier aw_carrier_undecided;

/* ring: NULL, or what the two ends have agreed on; from here on the QP's. */
void aw_carrier_begin(struct aw_uqp *qp, struct aw_host_ring *ring);

/* The stream is over here. forgets: another process goes on with it, or has it alone: without a word. */
void aw_carrier_end(struct aw_uqp *qp, bool forgets);

/* Whether something came that no event tells of: for a thread that polls many QPs. */
bool aw_carrier_has_news(struct aw_uqp *qp);

#endif
