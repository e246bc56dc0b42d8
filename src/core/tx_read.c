// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Read in both directions, as far as it is sent: Read Requests (RFC 5040 4.4) of ours and
// Read Responses (RFC 5040 5.2.2) to the peer's.
#include "core/machine.h"
#include "core/promise.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/tx_parts.h"

enum aw_tx aw_tx_read_request(struct aw_qp *qp, struct aw_tx_out *out,
			      const struct aw_tx_read *read)
{
	uint32_t stag = aw_orq_new_stag(qp);
	const struct rdmap_read_req req = {
		.sink_stag = stag,
		.size = read->size,
		.src_stag = read->src_stag,
		.src_to = read->src_to,
	};
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
		.qn = DDP_QN_READ,
		.msn = qp->tx_msn[DDP_QN_READ],
	};
	uint8_t payload[RDMAP_READ_REQ_LEN];
	enum aw_tx tx;

	rdmap_read_req_put(&req, payload);
	tx = aw_tx_octets(qp, out, &hdr, payload, sizeof(payload));
	if (tx != AW_TX_FPDU)
		return tx;
	qp->tx_msn[DDP_QN_READ]++;
	*aw_orq_push(qp) = (struct aw_orq_entry){
		.sq_index = read->sq_index,
		.sink_stag = stag,
		.rtr = read->rtr,
		.ack_pos = qp->tx_pos,
	};
	return AW_TX_FPDU;
}

/*
 * The source MR went away or changed since the request was checked. RFC 5040 4.8: the Terminate
 * carries the Read Request, moved on to where it stands; its DDP header is built anew.
 */
static enum aw_tx refuse_rest(struct aw_qp *qp, const struct aw_irq_entry *entry, enum aw_error err)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
		.qn = DDP_QN_READ,
		.msn = qp->rx_msn[DDP_QN_READ] - qp->irq_count,
	};
	uint8_t ddp[DDP_UNTAGGED_LEN], rdmap[RDMAP_READ_REQ_LEN];
	struct term_msg msg = {
		.error = err,
		.has_seg_len = true,
		.has_ddp = true,
		.has_rdmap = true,
		.seg_len = DDP_UNTAGGED_LEN + RDMAP_READ_REQ_LEN,
		.ddp_len = (uint8_t)ddp_put(&hdr, ddp),
		.ddp = ddp,
		.rdmap = rdmap,
	};

	rdmap_read_req_put(&entry->req, rdmap);
	aw_refusal_note_read(qp, &entry->req);
	aw_machine_terminate(qp, err, &msg);
	return AW_TX_NONE;
}

/* Holds the next n octets of the source; RFC 5040 5.2.1: of a Read of size 0 nothing is checked. */
static enum aw_error hold_source(const struct aw_qp *qp, const struct rdmap_read_req *req,
				 uint32_t n, struct aw_spans *spans)
{
	const struct aw_mr *mr;
	enum aw_error err;

	spans->count = 0;
	if (n == 0)
		return AW_OK;
	mr = qp->ops->mr_get(qp->ctx, req->src_stag);
	err = aw_rx_check(qp, mr, AW_ACCESS_REMOTE_READ, req->src_to, req->size);
	if (!err) {
		spans->at[0] = (struct aw_span){ aw_mr_at(mr, req->src_to), n, mr };
		err = aw_span_reach(qp, mr, AW_ACCESS_REMOTE_READ, &spans->at[0]);
	}
	if (err) {
		if (mr)
			qp->ops->mr_put(qp->ctx, mr);
		return err;
	}
	spans->count = 1;
	return AW_OK;
}

static void advance(struct aw_qp *qp, struct rdmap_read_req *req, uint32_t n)
{
	req->size -= n;
	req->src_to += n;
	req->sink_to += n;
	if (req->size == 0)
		aw_irq_pop(qp);
}

enum aw_tx aw_tx_response(struct aw_qp *qp, struct aw_tx_out *out)
{
	struct aw_irq_entry *entry = aw_irq_head(qp);
	struct rdmap_read_req *req = &entry->req;
	uint32_t max = aw_tx_payload_max(qp, true);
	uint32_t n = req->size < max ? req->size : max;
	struct aw_tx_seg seg;
	enum aw_error err;
	enum aw_tx tx;

	err = hold_source(qp, req, n, &seg.payload);
	if (err)
		return refuse_rest(qp, entry, err);
	seg.hdr = (struct ddp_hdr){
		.tagged = true,
		.last = n == req->size,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_RESP),
		.stag = req->sink_stag,
		.to = req->sink_to,
	};
	seg.len = n;
	seg.copy = true;
	tx = aw_tx_frame(qp, out, &seg);
	aw_spans_put(qp, &seg.payload);
	if (tx == AW_TX_FPDU)
		advance(qp, req, n);
	return tx == AW_TX_GONE ? refuse_rest(qp, entry, AW_E_RDMAP_BOUNDS) : tx;
}
