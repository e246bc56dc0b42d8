// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A carrier moves a stream's bytes between two QPs: over the TCP socket, there as TLS's records, or through memory that
// two processes of one host share, where the socket carries only wakes and the end of the stream, as records where
// there is TLS. Each stream begins over TCP. A move into memory (net/qp/move.h) changes the carrier of each direction
// once, so that for a moment the two directions may have different ones.
//
// The core sees FPDUs in either case. It writes those for memory where the peer reads them, so that each payload is copied once. It gives the messages of a move to the driver (qp->move) and
// makes and checks no CRC in a direction that has moved. FPDUs in memory are read where they lie:
// a ring is mapped twice in a row, so that each FPDU is in one piece (aw_rx_lent), and only
// those that wait for a receive, or come behind one that does, go into a stage. No post is held there, because a post needs no
// system call. A QP that nobody polls marks itself `asleep` in the memory; the peer then rings a
// bell (net/qp/bells.h). A QP that pollers serve does not sleep, and the progress thread
// listens to its socket for the end alone.
#ifndef NET_CARRIER_H
#define NET_CARRIER_H

#include "net/qp/uqp_io.h"

#include <sys/types.h>
#include <sys/uio.h>

/* The caller of one of these functions holds the QP's lock; where the call is by a pointer, the compiler does not check that. */
struct aw_carrier {
	bool is_socket; /* bytes make the socket readable, room makes it writable, and each send is a system call */

	/* Of the carrier that sends (aw_uqp.out). */
	/*
	 * Memory that the peer reads, with its length: FPDUs are written there, and publish tells the peer of the first n bytes. NULL
	 * as a function or as its result: FPDUs are put into a batch, and sent.
	 */
	uint8_t *(*place)(struct aw_uqp *qp, size_t *room);
	void (*publish)(struct aw_uqp *qp, size_t n);
	/*
	 * As sendmsg(2), without waiting. EAGAIN: no room; EFAULT: the program's memory is
	 * unmapped.
	 */
	ssize_t (*send)(struct aw_uqp *qp, const struct aw_iov *iov, size_t count);
	/* After a send that took only a part, or a place that was too small: true when another try may take more. */
	bool (*has_room)(struct aw_uqp *qp);
	/* The largest FPDU that this carrier takes, in bytes. */
	uint32_t (*segment_size)(const struct aw_uqp *qp);
	/* True when the peer's end, though maybe not its program, has all bytes that were sent. */
	bool (*has_taken_all)(struct aw_uqp *qp);
	/* Ends the sending direction of the stream. */
	void (*finish)(struct aw_uqp *qp);

	/* Of the carrier that receives (aw_uqp.in). */
	/*
	 * Gives the core the bytes that have come, within a budget. polled: the calling thread
	 * polls and will look again.
	 */
	void (*receive)(struct aw_uqp *qp, bool polled);
	/*
	 * True when the peer has reset the stream. Asked while a message waits and nothing is
	 * received.
	 */
	bool (*is_reset)(struct aw_uqp *qp);
	/* True when the peer has ended the stream in any way. Asked likewise. */
	bool (*has_ended)(struct aw_uqp *qp);
	/*
	 * The epoll events to wait for on the socket: after a turn of the progress thread, while
	 * pollers serve the QP, and once the progress thread has taken the QP back. NULL: as for a
	 * TCP socket.
	 */
	uint32_t (*listens_for)(struct aw_uqp *qp);
	uint32_t (*polled)(struct aw_uqp *qp);
	uint32_t (*taken_back)(struct aw_uqp *qp);

	/* The carrier that a direction changes to when it moves into memory; NULL: it has moved, or never moves. */
	const struct aw_carrier *moved;
};

extern const struct aw_carrier aw_carrier_tcp;
extern const struct aw_carrier aw_carrier_tls;
extern const struct aw_carrier aw_carrier_host;

/* The stream begins, over its socket. */
void aw_carrier_begin(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The peer's bytes, or those of this end, go through qp->ring from here on. */
void aw_carrier_move_in(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_carrier_move_out(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * Ends the stream in this process. forgets: another process goes on with the stream or owns it
 * alone, so the peer is not notified.
 */
void aw_carrier_end(struct aw_uqp *qp, bool forgets) AW_REQUIRES(qp->lock);

/*
 * True when there is something to do of which no epoll event notifies; for a thread that polls many
 * QPs.
 */
bool aw_carrier_has_news(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

static inline size_t aw_carrier_octets(const struct aw_iov *iov, size_t count)
{
	size_t octets = 0;

	for (size_t i = 0; i < count; i++)
		octets += iov[i].len;
	return octets;
}

/* The socket has ended behind the bytes that came by it, of which rest are left of an FPDU. */
void aw_carrier_socket_ended(struct aw_uqp *qp, size_t rest) AW_REQUIRES(qp->lock);

/* As aw_uqp_stream_lost, with TLS's cause in the log. */
void aw_carrier_lose(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * Of a socket that still receives: true when the QP waits for it to be writable. This end's bytes may go through memory already, where the
 * peer rings for room behind its last FPDU here.
 */
bool aw_carrier_waits_for_socket(struct aw_uqp *qp, bool reads) AW_REQUIRES(qp->lock);

/* True when the peer died before it had read all that this end has put into the memory. */
bool aw_carrier_is_cut(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True when the peer has written to the memory what no honest end does. */
bool aw_carrier_is_broken(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * For a QP whose bytes go out through memory, before it sleeps: true when there is room, else the peer rings for it. A turn that has met
 * no full ring may end in one that is nearly full.
 */
bool aw_carrier_awaits_room(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* For a QP with a ring: true while what it listens to is as it was, and nothing but bytes moves. This end may fall asleep by it. */
bool aw_carrier_is_steady(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True when another turn is due of which no epoll event notifies, since the socket is full. */
bool aw_carrier_owes_turn(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
