// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiving half of atomics: the peer's Atomic Requests (RFC 7306
// 5.2.1), which any peer may send, and Atomic Responses to ours (5.2.2).
#include "core/atomic.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/span.h"

/* The message must be whole in one segment, and no octet longer. */
static enum aw_error check_size(const struct aw_rx_seg *seg, uint32_t size)
{
	if (seg->len > size)
		return AW_E_DDP_TOO_LONG;
	return seg->len == size && seg->hdr.last ? AW_OK : AW_E_RDMAP_OP_UNSPECIFIED;
}

static enum aw_error check_target(const struct aw_qp *qp, const struct rdmap_atomic_req *req)
{
	struct aw_spans spans;
	enum aw_error err = aw_spans_hold_atomic(qp, req, &spans);

	if (!err)
		aw_spans_put(qp, &spans);
	return err;
}

enum aw_error aw_rx_atomic_request(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_atomic_req req;
	enum aw_error err;

	if (aw_irq_is_full(qp))
		return AW_E_DDP_NO_BUFFER;
	err = check_size(seg, RDMAP_ATOMIC_REQ_LEN);
	if (err)
		return err;
	req = rdmap_atomic_req_get(seg->data);
	if (!aw_atomic_known(&req))
		return AW_E_RDMAP_OPCODE;
	err = check_target(qp, &req);
	if (err)
		return err;
	*aw_irq_push(qp) = (struct aw_irq_entry){ .atomic = true, .atomic_req = req };
	qp->rx_msn[DDP_QN_READ]++;
	return AW_OK;
}

enum aw_error aw_rx_atomic_response(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_atomic_resp resp;
	enum aw_error err;

	/* Requests are answered in order, Reads among them. */
	if (qp->orq_count == 0 || !aw_orq_at(qp, 0)->atomic)
		return AW_E_RDMAP_OPCODE;
	err = check_size(seg, RDMAP_ATOMIC_RESP_LEN);
	if (err)
		return err;
	resp = rdmap_atomic_resp_get(seg->data);
	if (resp.request_id != aw_orq_at(qp, 0)->sink_stag)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	/* The program's result is in this host's byte order. */
	err = aw_rx_sink_place(qp, (const uint8_t *)&resp.original, AW_ATOMIC_LEN);
	if (err)
		return err;
	qp->rx_msn[DDP_QN_ATOMIC]++;
	aw_rx_sink_done(qp);
	return AW_OK;
}
