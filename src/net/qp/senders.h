// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// XRC initiators that have sent lately. The answer to an initiator's message comes to a target QP, by another connection than
// the acknowledgement of the message. An adapter receives the two in the order in which the peer sent them, and programs count
// on that: one that has the answer posts again, where its send queue has one place (perftest's ib_send_lat). So a thread that
// has completions of a target serves the initiators here first which have the same peer, before a CQ gets these completions.
// A process with more initiators than places serves the latest ones.
#ifndef NET_SENDERS_H
#define NET_SENDERS_H

#include "net/qp/uqp.h"

#define AW_SENDERS_MAX 8

/* The QP, an initiator, is about to send, if it has anything to send; or waits for acknowledgements. */
void aw_senders_note(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Serves the initiators whose peers are QPs of the same process as that QP. The caller holds no QP's lock. */
void aw_senders_serve(uint32_t peer_qpn);

#endif
