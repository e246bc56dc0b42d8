// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the stream: the parts of receiving, transmitting and ending towards each other.
#ifndef KMOD_STREAM_IO_H
#define KMOD_STREAM_IO_H

#include "kmod/qp.h"

#include <linux/jiffies.h>

/* How long a graceful close may take: what was posted, our FIN, the peer's. */
#define AWK_CLOSE_MS 10000
/* How long a Terminate may take to get into the socket. */
#define AWK_TERMINATE_MS 1000
/* How long a message waits for a receive, and how often an SRQ or a program's RQ is looked at meanwhile. */
#define AWK_RNR_MS 1000
#define AWK_RNR_RETRY_MS 1
#define AWK_MEMORY_RETRY_MS 10
/* How long half an FPDU may keep a stage: a peer on its way with the rest needs less. */
#define AWK_STAGE_MS 100

static inline struct awk_qp *awk_stream_qp(struct awk_stream *s)
{
	return container_of(s, struct awk_qp, stream);
}

/* The worker is to come. Any context. */
static inline void awk_stream_wake(struct awk_stream *s)
{
	queue_work(awk_wq, &s->work);
}

/* rx.c: a callback of the socket. Softirq, or the thread that has the socket's lock. */
void awk_rx_arrived(struct awk_qp *qp, struct sock *sk);
/* rx.c: the worker's turn, with a socket. True when the socket may have more. */
bool awk_rx_serve(struct awk_qp *qp, struct sock *sk);

/*
 * tx.c: drains the rings and sends so many batches at most, unless another thread sends: that one sees to
 * it then. True when the worker has to go on. Process context, no lock.
 */
bool awk_tx_run(struct awk_qp *qp, unsigned int batches);
/* With the QP's lock: whether there is something that could be sent now. */
bool awk_tx_is_due(struct awk_qp *qp);

/* stream_end.c: the worker follows the core's state with the socket, and iw_cm's events. */
void awk_stream_settle(struct awk_qp *qp);
/* With the QP's lock: the connection is gone, as TCP says. */
void awk_stream_lose(struct awk_qp *qp);
/* With the QP's lock: the worker has an end, or a step towards it, to see to. */
bool awk_stream_ends(const struct awk_qp *qp);
/* With the QP's lock: the timer runs where something is to be tried again or given up. */
void awk_stream_arm(struct awk_qp *qp);

/* stream_lost.c, with the QP's lock: octets went out; and the worker's look at whether they arrive. */
void awk_lost_sent(struct awk_qp *qp);
void awk_lost_look(struct awk_qp *qp);

/* stream_linger.c: takes a socket without callbacks over, for its last octets to reach the peer. Process context. */
void awk_linger(struct socket *sock);
/* The same for a connection that no program accepted: of those there are only so many. */
void awk_linger_stranger(struct socket *sock);
/* All of them are closed now, as the module goes. */
void awk_linger_flush(void);

#endif
