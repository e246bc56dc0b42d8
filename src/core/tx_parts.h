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

/* A request of ours that has an identifier; takes the ORQ entry, which has room. */
struct aw_tx_request {
	enum rdmap_opcode opcode;
	enum aw_rdma_request kind;
	uint32_t id;
	const uint8_t *octets;
	uint32_t len;
};
enum aw_tx aw_tx_request(struct aw_qp *qp, struct aw_tx_out *out,
			 const struct aw_tx_request *request) AW_MUST_USE;

/* The answer to the oldest inbound request, as octets on queue 3; gives its entry back. */
enum aw_tx aw_tx_answer(struct aw_qp *qp, struct aw_tx_out *out, enum rdmap_opcode opcode,
			const uint8_t *octets, uint32_t len) AW_MUST_USE;

/*
 * The oldest inbound request cannot be executed, or not any more. RFC 7306 8.1: the Terminate has
 * its DDP header, which is built anew, and no RDMA header. len: octets of the request.
 */
void aw_tx_refuse(struct aw_qp *qp, enum rdmap_opcode opcode, uint32_t len, enum aw_error err);

/* The Atomic Request, or Atomic Write, of the WR at the SQ's next, whose octets data then are. */
enum aw_tx aw_tx_atomic_request(struct aw_qp *qp, struct aw_tx_out *out,
				uint64_t write_data) AW_MUST_USE;
/* The response to the oldest inbound request, an atomic, which is executed first. */
enum aw_tx aw_tx_atomic_response(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

/* The Flush Request of the WR at the SQ's next, likewise. */
enum aw_tx aw_tx_flush_request(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/*
 * The response to the oldest inbound request, a Flush, which is executed first. NONE also when the
 * driver has only begun that.
 */
enum aw_tx aw_tx_flush_response(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

/* RFC 6581 9.2: the initiator's first message. */
enum aw_tx aw_tx_rtr(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/* core/stash.h: tells the peer whether this end is ready. */
enum aw_tx aw_tx_rnr(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;
/* core/ack.h: the Read of no octets, if one is due. */
enum aw_tx aw_tx_ack(struct aw_qp *qp, struct aw_tx_out *out) AW_MUST_USE;

#endif
