// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a DDP segment to an FPDU in the driver's batch.
#ifndef CORE_TX_FRAME_H
#define CORE_TX_FRAME_H

#include "core/span.h"
#include "core/tx.h"

struct aw_tx_seg {
	struct ddp_hdr hdr;
	struct aw_spans payload;
	uint32_t len; /* of payload */
	bool copy; /* never lend the payload to TCP */
};

/* The largest ULPDU this stream sends; with markers also bounded by what the arena can hold. */
uint32_t aw_tx_mulpdu(const struct aw_stream *stream);

/* Most payload octets of a segment. */
static inline uint32_t aw_tx_payload_max(const struct aw_qp *qp, bool tagged)
{
	return qp->mulpdu - (uint32_t)ddp_hdr_len(tagged);
}

/* Adds the segment to the batch, and its octets to the stream. FPDU, FULL or GONE. */
enum aw_tx aw_tx_frame(struct aw_qp *qp, struct aw_tx_out *out,
		       const struct aw_tx_seg *seg) AW_MUST_USE;

/* Likewise, a segment with octets of the core's own. */
enum aw_tx aw_tx_octets(struct aw_qp *qp, struct aw_tx_out *out, const struct ddp_hdr *hdr,
			const uint8_t *octets, uint32_t len) AW_MUST_USE;

#endif
