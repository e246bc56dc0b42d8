// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver not ready: a Send, or a Write with immediate data, finds no receive posted. iWARP has no
// RNR NAK, but a program written for InfiniBand counts on one. So the QP holds the stream for a
// while, TCP's window stops the peer, and only after that time it is an error (RFC 5041 7.1).
#ifndef NET_RNR_H
#define NET_RNR_H

#include "net/qp/uqp.h"

/* How long a program may take to post a receive, and how often its SRQ is looked at meanwhile. */
#define AW_RNR_MS 1000
#define AW_RNR_RETRY_MS 1
/* The interval after that time, where a QP of the roce persona may wait longer. */
#define AW_RNR_RETRY_LATE_MS 20

/*
 * A new stream may be held. A stream that closes here may not: a receive posted now would be
 * flushed.
 */
void aw_rnr_begin(struct aw_uqp *qp);
void aw_rnr_end(struct aw_uqp *qp);

/* True while the stream is held: nothing is read from its socket. */
bool aw_rnr_waits(const struct aw_uqp *qp);

/* The time until the SRQ is looked at again. */
uint32_t aw_rnr_retry_ms(const struct aw_uqp *qp);

/* Called before each try of the held message: when its time is over, this try is the last. */
void aw_rnr_try(struct aw_uqp *qp);

#endif
