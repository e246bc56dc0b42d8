// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the stream: the interface between receiving, transmitting and ending.
#ifndef KMOD_STREAM_IO_H
#define KMOD_STREAM_IO_H

#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"

#include <linux/jiffies.h>

/* The time until the next try where memory for a buffer was out. */
#define AWK_MEMORY_RETRY_MS 10
/* How long half an FPDU may keep a stage: a peer on its way with the rest needs less. */
#define AWK_STAGE_MS 100

/* The clock of what core decides about a stream. It goes with the timers, whose unit is the tick. */
static inline u64 awk_now_ns(void)
{
	return jiffies64_to_nsecs(get_jiffies_64());
}

/*
 * rx.c: a callback of the socket. Called in softirq, or by the thread that has the socket's lock.
 */
void awk_rx_arrived(struct awk_qp *qp, struct sock *sk);
/* rx.c: the worker's turn, with a socket. True when the socket may have more. */
bool awk_rx_serve(struct awk_qp *qp, struct sock *sk);

/* rx_tls.c: the same of a stream under TLS, whose socket may have more, or may have ended. */
void awk_rx_tls_arrived(struct awk_qp *qp);
bool awk_rx_tls_serve(struct awk_qp *qp, struct socket *sock);

/*
 * tx.c: drains the rings and sends so many batches at most, unless another thread sends, which then
 * sees to it. True when the worker has to go on. Process context, no lock.
 */
bool awk_tx_run(struct awk_qp *qp, unsigned int batches);
/* tx.c: the function of the stream's tasklet. */
void awk_tx_answer(struct tasklet_struct *tasklet);
/* True when there is something that could be sent now. The caller holds the QP's lock. */
bool awk_tx_is_due(struct awk_qp *qp);

/* end.c: the worker applies the core's state to the socket, and reports it to the user. */
void awk_stream_settle(struct awk_qp *qp);
/* Called with the QP's lock when TCP reports that the connection is gone. */
void awk_stream_lose(struct awk_qp *qp);
/*
 * True when the worker has an end, or a step towards it, to see to. The caller holds the QP's lock.
 */
bool awk_stream_ends(const struct awk_qp *qp);
/* Sets the timer for what is to be tried again or given up. The caller holds the QP's lock. */
void awk_stream_arm(struct awk_qp *qp);

/*
 * lost.c, with the QP's lock. sent: bytes went out. look: the worker checks whether they
 * arrive; true: the peer has vanished.
 */
void awk_lost_sent(struct awk_qp *qp);
bool awk_lost_look(struct awk_qp *qp);

#endif
