// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream under a QP: its TCP socket, what waits to be sent, what was half received.
#ifndef KMOD_STREAM_H
#define KMOD_STREAM_H

#include <linux/types.h>

struct awk_qp;

/* In struct awk_qp. Zeroed memory before awk_stream_init. */
struct awk_stream {
	struct socket *sock; /* NULL: none */
};

/* At create_qp, before anybody can find the QP. */
void awk_stream_init(struct awk_qp *qp);

/*
 * Something may be due: drain the rings, transmit, and look at what state the core came to (CLOSING: FIN
 * when all is out; TERMINATE: likewise, then the end; ERROR: the socket is given up, and iw_cm hears of
 * it). Works without a socket too: the rings are drained, so that posts flush in ERROR.
 * kick: any context, any lock: never sleeps, leaves it to a worker. push: process context without locks:
 * does it at once as far as nobody else is at it.
 */
void awk_stream_kick(struct awk_qp *qp);
void awk_stream_push(struct awk_qp *qp);

/*
 * At destroy_qp, process context: ends the stream at once (what TCP holds still goes out), iw_cm has had
 * its CLOSE, and when this returns neither callback nor worker will touch the QP again. What iw_cm itself
 * holds are references of the QP, which the caller waits for.
 */
void awk_stream_destroy(struct awk_qp *qp);

/* The module's: workqueues. */
int awk_stream_init_module(void);
void awk_stream_exit_module(void);

#endif
