// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread that polls a CQ: where the CQ is empty, it serves the CQ's QPs (net/qp/cq_qps.h).
//
// Up to four QPs are asked by their sockets, more through an epoll set, which a CQ of more than 64
// QPs always has; QPs with a stream through memory are in no set, and 16 of them are looked at in
// turn. A thread that has to come back to such a QP asks epoll for EPOLLOUT, which the socket
// always reports at once. A poller that finds nothing while a socket is full gives its CPU away,
// because the peer may be waiting for it; after 64 empty polls of memory it does so as well.
#ifndef NET_CQ_POLL_H
#define NET_CQ_POLL_H

#include "net/cq/cq.h"

/*
 * Takes up to max completions, oldest first; serves the CQ's QPs inline when there are none.
 * Returns how many, or -EIO after an overflow was raised (RNIC verbs: the CQ is dead).
 */
int aw_cq_poll(struct aw_cq *cq, struct aw_cq_entry *out, int max)
	AW_EXCLUDES(cq->lock, cq->qps_lock);

/* Arms the CQ (aw_cq_set_arm), and leaves none of its QPs to pollers. */
void aw_cq_arm(struct aw_cq *cq, enum aw_arm arm) AW_EXCLUDES(cq->lock, cq->qps_lock);

#endif
