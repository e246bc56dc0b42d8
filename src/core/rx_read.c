// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Read in both directions, as far as it is received: the peer's Read Requests (RFC 5040
// 5.2.1), and Read Responses to ours (5.2.2), which place nothing outside what was asked for.
#include "core/ack.h"
#include "core/completion.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/span.h"

/* RFC 5040 7.2 for Read Requests: rules 4a to 4e, unless the size is 0. */
static enum aw_error check_source(const struct aw_qp *qp, const struct rdmap_read_req *req)
{
	const struct aw_mr *mr;
	enum aw_error err;

	if (req->size == 0)
		return AW_OK;
	mr = qp->ops->mr_get(qp->ctx, req->src_stag);
	err = aw_rx_check(qp, mr, AW_ACCESS_REMOTE_READ, req->src_to, req->size);
	if (mr)
		qp->ops->mr_put(qp->ctx, mr);
	return err;
}

enum aw_error aw_rx_read_request(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_read_req req;
	enum aw_error err;

	/* The IRQ's entries are the queue's untagged buffers, of 28 octets each. */
	if (aw_irq_is_full(qp))
		return AW_E_DDP_NO_BUFFER;
	if (seg->len > RDMAP_READ_REQ_LEN)
		return AW_E_DDP_TOO_LONG;
	if (seg->len < RDMAP_READ_REQ_LEN || !seg->hdr.last)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	req = rdmap_read_req_get(seg->data);
	err = check_source(qp, &req);
	if (err)
		return err;
	*aw_irq_push(qp) = (struct aw_irq_entry){ .req = req };
	qp->rx_msn[DDP_QN_READ]++;
	return AW_OK;
}

/* RFC 5040 5.2.2: a response must be what the oldest Read asked for, in all its segments. */
static enum aw_error check_response(const struct aw_qp *qp, const struct aw_orq_entry *entry,
				    const struct aw_rx_seg *seg)
{
	uint32_t left = aw_orq_size(qp, entry) - entry->received;

	if (seg->len > 0 && seg->hdr.stag != entry->sink_stag)
		return AW_E_DDP_TAGGED_STAG;
	if (seg->len > 0 && seg->hdr.to != entry->received)
		return AW_E_DDP_TAGGED_BOUNDS;
	if (seg->len > left)
		return AW_E_DDP_TAGGED_BOUNDS;
	if (seg->hdr.last != (seg->len == left))
		return AW_E_RDMAP_OP_UNSPECIFIED;
	return AW_OK;
}

enum aw_error aw_rx_sink_place(struct aw_qp *qp, const uint8_t *data, uint32_t len)
{
	struct aw_orq_entry *entry = aw_orq_at(qp, 0);
	struct aw_swqe *wqe = aw_sq_at(&qp->sq, entry->sq_index);
	const struct aw_stretch stretch = {
		.sge = wqe->sge,
		.sge_count = wqe->sge_count,
		.pd = qp->pd,
		.access = AW_ACCESS_LOCAL_WRITE,
		.offset = entry->received,
		.len = len,
	};

	if (!aw_spans_place(qp, &stretch, data)) {
		wqe->done = true;
		wqe->status = AW_WC_LOC_PROT_ERR;
		return AW_E_LOCAL_CATASTROPHIC;
	}
	entry->received += len;
	return AW_OK;
}

void aw_rx_sink_done(struct aw_qp *qp)
{
	const struct aw_orq_entry *entry = aw_orq_at(qp, 0);

	if (!entry->rtr)
		aw_sq_at(&qp->sq, entry->sq_index)->done = true;
	aw_ack_answered(qp, entry);
	aw_orq_pop(qp);
	aw_completion_retire(qp);
}

enum aw_error aw_rx_read_response(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err;

	if (!aw_orq_awaits(qp, AW_REQUEST_READ))
		return AW_E_RDMAP_OPCODE;
	err = check_response(qp, aw_orq_at(qp, 0), seg);
	if (!err && seg->len > 0)
		err = aw_rx_sink_place(qp, seg->data, seg->len);
	if (!err && seg->hdr.last)
		aw_rx_sink_done(qp);
	return err;
}
