// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of messages that aw_tx_next chooses from. Each adds at most one FPDU, or returns NONE
// or FULL, or has led to TERMINATE (and then returns NONE).
#ifndef CORE_TX_PARTS_H
#define CORE_TX_PARTS_H

#include "core/tx.h"
#include "core/tx_frame.h"

/* The next message of the SQ. */
enum aw_tx aw_tx_sq(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

/*
 * Passes over WRs that need no FPDU: flushed ones, and local operations, which are executed here.
 * Those need not wait for the peer's first FPDU.
 */
void aw_tx_local(struct aw_qp *qp);

/* True when the WR at the SQ's next waits for Reads of ours to complete. */
bool aw_tx_sq_waits(const struct aw_qp *qp);

/* The next segment of the Read Response to the oldest inbound Read. */
enum aw_tx aw_tx_response(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

/* A Read Request of ours; takes the ORQ entry, which has room. */
struct aw_tx_read {
	uint32_t sq_index;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
	bool rtr;
};
enum aw_tx aw_tx_read_request(struct aw_qp *qp, struct aw_tx_out *out,
			      const struct aw_tx_read *read) AW_MUST_USE;

/* The Atomic Request of the WR at the SQ's next; takes the ORQ entry, which has room. */
enum aw_tx aw_tx_atomic_request(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/* The response to the oldest inbound request, an atomic, which is executed first. */
enum aw_tx aw_tx_atomic_response(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

/* RFC 6581 9.2: the initiator's first message. */
enum aw_tx aw_tx_rtr(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/* core/stash.h: tells the peer whether this end is ready. */
enum aw_tx aw_tx_rnr(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/* core/ack.h: the Read of no octets, if one is due. */
enum aw_tx aw_tx_ack(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

#endif
