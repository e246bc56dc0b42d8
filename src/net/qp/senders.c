// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The places are atomic words, so that a sender takes no lock. A place is free again once its QP was served, and taken anew
// where acknowledgements are still to come.
#include "net/qp/senders.h"

#include "net/qp/uqp_sock.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <stdatomic.h>

/* The port of a process, in the numbers of its QPs (net/roce/qpn.h). */
#define PORT_SHIFT 8

static _Atomic uint32_t senders[AW_SENDERS_MAX]; /* handle + 1, or 0 */

void aw_senders_note(const struct aw_uqp *qp)
{
	if (aw_sq_count(&qp->core.sq) == 0)
		return;
	/* Relaxed: a thread that has the answer to what is sent from here on has got it by way of the peer. */
	atomic_store_explicit(&senders[qp->handle % AW_SENDERS_MAX], qp->handle + 1,
			      memory_order_relaxed);
}

static void serve_sender(struct aw_uqp *qp, uint32_t peer_qpn)
{
	aw_lock(&qp->lock);
	bool awaits = qp->fd >= 0 && aw_sq_count(&qp->core.sq) > 0;

	if (awaits && qp->peer_qpn >> PORT_SHIFT == peer_qpn >> PORT_SHIFT)
		aw_uqp_serve(qp);
	else if (awaits)
		aw_senders_note(qp);
	aw_uqp_unlock(qp);
}

void aw_senders_serve(uint32_t peer_qpn)
{
	for (int i = 0; i < AW_SENDERS_MAX; i++) {
		struct aw_uqp *qp;
		uint32_t taken;

		if (!atomic_load_explicit(&senders[i], memory_order_relaxed))
			continue;
		taken = atomic_exchange_explicit(&senders[i], 0, memory_order_relaxed);
		qp = taken ? aw_uqp_at(taken - 1) : NULL;
		if (!qp)
			continue;
		serve_sender(qp, peer_qpn);
		aw_uqp_put(qp);
	}
}
