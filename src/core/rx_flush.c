// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiving half of the Flush (docs/extensions.md): the peer's Flush Requests, which count as
// Reads do, and Flush Responses to ours. Both only where start-up agreed on them.
#include "core/reads.h"
#include "core/rx_parts.h"

uint32_t aw_flush_rights(const struct rdmap_flush_req *req)
{
	return (req->type & RDMAP_FLUSH_GLOBAL ? AW_ACCESS_FLUSH_GLOBAL : 0) |
	       (req->type & RDMAP_FLUSH_PERSISTENT ? AW_ACCESS_FLUSH_PERSISTENT : 0);
}

enum aw_error aw_flush_hold(const struct aw_qp *qp, const struct rdmap_flush_req *req,
			    struct aw_span *span)
{
	const struct aw_mr *mr = qp->ops->mr_get(qp->ctx, req->stag);
	bool whole = mr && req->level == RDMAP_FLUSH_MR;
	uint64_t to = whole ? mr->iova : req->to;
	uint64_t len = whole ? mr->len : req->len;
	enum aw_error err = aw_rx_check(qp, mr, aw_flush_rights(req), to, len);

	if (!err)
		*span = (struct aw_span){ aw_mr_at(mr, to), (size_t)len, mr };
	else if (mr)
		qp->ops->mr_put(qp->ctx, mr);
	return err;
}

static bool is_known(const struct rdmap_flush_req *req)
{
	return req->type != 0 && !(req->type & ~RDMAP_FLUSH_TYPES) && req->level <= RDMAP_FLUSH_MR;
}

enum aw_error aw_rx_flush_request(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_flush_req req;
	struct aw_span span;
	enum aw_error err;

	if (!qp->stream.placement)
		return AW_E_RDMAP_OPCODE;
	if (aw_irq_is_full(qp))
		return AW_E_DDP_NO_BUFFER;
	err = aw_rx_check_size(seg, RDMAP_FLUSH_REQ_LEN);
	if (err)
		return err;
	req = rdmap_flush_req_get(seg->data);
	if (!is_known(&req))
		return AW_E_RDMAP_OP_UNSPECIFIED;
	err = aw_flush_hold(qp, &req, &span);
	if (err)
		return err;
	qp->ops->mr_put(qp->ctx, span.mr);
	*aw_irq_push(qp) = (struct aw_irq_entry){ .kind = AW_REQUEST_FLUSH, .flush_req = req };
	qp->rx_msn[DDP_QN_READ]++;
	return AW_OK;
}

enum aw_error aw_rx_flush_response(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err;

	if (!aw_orq_awaits(qp, AW_REQUEST_FLUSH))
		return AW_E_RDMAP_OPCODE;
	err = aw_rx_check_size(seg, RDMAP_FLUSH_RESP_LEN);
	if (err)
		return err;
	if (rdmap_flush_resp_get(seg->data) != aw_orq_at(qp, 0)->sink_stag)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	qp->rx_msn[DDP_QN_ATOMIC]++;
	aw_rx_sink_done(qp);
	return AW_OK;
}
