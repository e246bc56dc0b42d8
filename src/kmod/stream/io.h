// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the stream: the interface between receiving, transmitting and ending.
#ifndef KMOD_STREAM_IO_H
#define KMOD_STREAM_IO_H

#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"

#include <linux/jiffies.h>

/* How long a graceful close may take: sending what was posted, our FIN, the peer's. */
#define AWK_CLOSE_MS 10000
/* How long a Terminate may take to reach the socket. */
#define AWK_TERMINATE_MS 1000
/* How long a message waits for a receive, and how often an SRQ or a program's RQ is looked at meanwhile. */
#define AWK_RNR_MS 1000
#define AWK_RNR_RETRY_MS 1
#define AWK_MEMORY_RETRY_MS 10
/* How long half an FPDU may keep a stage: a peer on its way with the rest needs less. */
#define AWK_STAGE_MS 100

/*
 * rx.c: a callback of the socket. Called in softirq, or by the thread that has the socket's lock.
 */
void awk_rx_arrived(struct awk_qp *qp, struct sock *sk);
/* rx.c: the worker's turn, with a socket. True when the socket may have more. */
bool awk_rx_serve(struct awk_qp *qp, struct sock *sk);

/*
 * tx.c: drains the rings and sends so many batches at most, unless another thread sends, which then
 * sees to it. True when the worker has to go on. Process context, no lock.
 */
bool awk_tx_run(struct awk_qp *qp, unsigned int batches);
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
 * arrive.
 */
void awk_lost_sent(struct awk_qp *qp);
void awk_lost_look(struct awk_qp *qp);

#endif
