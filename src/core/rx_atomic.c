// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The receiving half of atomics: the peer's Atomic Requests (RFC 7306
// 5.2.1), which any peer may send, and Atomic Responses to ours (5.2.2).
#include "core/atomic.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/span.h"

static enum aw_error check_target(const struct aw_qp *qp, const struct rdmap_atomic_req *req)
{
	struct aw_spans spans;
	enum aw_error err = aw_spans_hold_atomic(qp, req, &spans);

	if (!err)
		aw_spans_put(qp, &spans);
	return err;
}

enum aw_error aw_irq_execute_atomic(struct aw_qp *qp, struct aw_irq_entry *entry)
{
	struct aw_spans target;
	enum aw_error err;

	if (entry->state == AW_IRQ_EXECUTED)
		return AW_OK;
	err = aw_spans_hold_atomic(qp, &entry->atomic_req, &target);
	if (err)
		return err;
	if (qp->ops->atomic(qp->ctx, target.at[0].mr, target.at[0].p, &entry->atomic_req,
			    &entry->original))
		entry->state = AW_IRQ_EXECUTED;
	aw_spans_put(qp, &target);
	return entry->state == AW_IRQ_EXECUTED ? AW_OK : AW_E_RDMAP_BOUNDS;
}

/*
 * An Atomic Write is a Write: a Send behind it says to the program that it is there. So it does not
 * wait for its answer's turn, but only for older atomics. One that fails is refused in its turn.
 */
static void execute_atomics(struct aw_qp *qp)
{
	for (uint32_t i = 0; i < qp->irq_count; i++) {
		struct aw_irq_entry *entry = aw_irq_at(qp, i);

		if (entry->kind == AW_REQUEST_ATOMIC && aw_irq_execute_atomic(qp, entry))
			return;
	}
}

enum aw_error aw_rx_atomic_request(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_atomic_req req;
	enum aw_error err;

	if (aw_irq_is_full(qp))
		return AW_E_DDP_NO_BUFFER;
	err = aw_rx_check_size(seg, RDMAP_ATOMIC_REQ_LEN);
	if (err)
		return err;
	req = rdmap_atomic_req_get(seg->data);
	if (!aw_atomic_known(&req) || (req.op == RDMAP_ATOMIC_WRITE && !qp->stream.placement))
		return AW_E_RDMAP_OPCODE;
	err = check_target(qp, &req);
	if (err)
		return err;
	*aw_irq_push(qp) = (struct aw_irq_entry){ .kind = AW_REQUEST_ATOMIC, .atomic_req = req };
	qp->rx_msn[DDP_QN_READ]++;
	if (req.op == RDMAP_ATOMIC_WRITE)
		execute_atomics(qp);
	return AW_OK;
}

enum aw_error aw_rx_atomic_response(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct rdmap_atomic_resp resp;
	enum aw_error err;

	/* Requests are answered in order, Reads among them. */
	if (!aw_orq_awaits(qp, AW_REQUEST_ATOMIC))
		return AW_E_RDMAP_OPCODE;
	err = aw_rx_check_size(seg, RDMAP_ATOMIC_RESP_LEN);
	if (err)
		return err;
	resp = rdmap_atomic_resp_get(seg->data);
	if (resp.request_id != aw_orq_at(qp, 0)->sink_stag)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	/* The program's result is in this host's byte order. An Atomic Write has none. */
	if (aw_op_is_atomic((enum aw_op)aw_sq_at(&qp->sq, aw_orq_at(qp, 0)->sq_index)->op))
		err = aw_rx_sink_place(qp, (const uint8_t *)&resp.original, AW_ATOMIC_LEN);
	if (err)
		return err;
	qp->rx_msn[DDP_QN_ATOMIC]++;
	aw_rx_sink_done(qp);
	return AW_OK;
}
