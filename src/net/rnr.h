// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver not ready: a Send, or a Write with immediate data, that finds no receive posted. iWARP
// has no RNR NAK; a program written for InfiniBand counts on one. So the stream is held for a
// while, TCP's window holds the peer, and only then is it an error (RFC 5041 7.1).
#ifndef NET_RNR_H
#define NET_RNR_H

#include "net/uqp.h"

/* How long a program may take to post, and how often its SRQ is looked at meanwhile. */
#define AW_RNR_MS 1000
#define AW_RNR_RETRY_MS 1
/* After that time, where a QP of the roce persona may wait longer. */
#define AW_RNR_RETRY_LATE_MS 20

/* A new stream holds; one that is closing here does not: a receive posted now would flush. */
void aw_rnr_begin(struct aw_uqp *qp);
void aw_rnr_end(struct aw_uqp *qp);

/* Whether the stream is held: nothing is read from its socket. */
bool aw_rnr_waits(const struct aw_uqp *qp);

/* When to look again. */
uint32_t aw_rnr_retry_ms(const struct aw_uqp *qp);

/* Before each try of what is held: whether it is the last, the time being over. */
void aw_rnr_try(struct aw_uqp *qp);

#endif
