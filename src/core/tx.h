// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transmit: FPDUs out, as iovecs over an arena of the driver and, for large payloads, over the
// program's own memory. The driver combines as many as it likes into one sendmsg.
#ifndef CORE_TX_H
#define CORE_TX_H

#include "core/qp.h"

/* Payloads up to this size are copied into the arena; they then need no iovec of their own. */
#define AW_TX_COPY_MAX 2048
/* Arena octets that always suffice for one more FPDU, markers and copied payload included. */
#define AW_TX_ARENA_MIN (66064 + 128)
/* Iovecs that always suffice for one more FPDU. */
#define AW_TX_IOV_MIN (AW_SGE_MAX + 2)

/* One batch; the driver sets the first four and zeroes the rest. */
struct aw_tx_out {
	uint8_t *arena;
	size_t arena_len;
	struct aw_iov *iov;
	unsigned int iov_max;
	unsigned int iov_count;
	size_t arena_used;
	size_t octets; /* of all iovecs */
};

enum aw_tx {
	AW_TX_NONE, /* nothing is due now */
	AW_TX_FPDU, /* one FPDU was added to the batch */
	AW_TX_FULL, /* something is due, but the batch has no room for it */
	/* within the core: the memory of a payload is unmapped, and nothing was added */
	AW_TX_GONE,
};

/*
 * Adds the next FPDU to the batch: Terminate before all, then Read Responses and the SQ in turn. While the peer is not ready
 * (core/stash.h) the SQ waits.
 * Adjacent arena octets share an iovec. A payload is left in the program's memory only without CRCs: the program,
 * or a peer that may write there, can change it at any time.
 */
enum aw_tx aw_tx_next(struct aw_qp *qp, struct aw_tx_out *out);

/* Adds a message of wire/move.h to a batch that is empty; the stream has no markers. */
void aw_tx_move(struct aw_qp *qp, struct aw_tx_out *out, const struct move_msg *msg);

/*
 * True when aw_tx_next has nothing to add, so that the driver need not have a batch at hand. WRs
 * that are complete are retired, as aw_tx_next does.
 */
bool aw_tx_is_idle(struct aw_qp *qp);

/*
 * UC, while there is no stream to send on: what was posted counts as sent, as on InfiniBand, where
 * nobody notices that a message is lost. A WR that this end's own memory fails ends the QP.
 */
void aw_tx_drop(struct aw_qp *qp);

/* Called when TCP has taken n more octets of those given out: completes the WRs that end there. */
void aw_tx_sent(struct aw_qp *qp, size_t n);

#endif
