// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sending half of the Flush (docs/extensions.md): requests of ours, and the peer's executed and
// answered. All Writes before it in the stream are placed by then; only what is to outlast the host
// needs work, which the driver may do while the stream goes on.
#include "core/machine.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/tx_parts.h"

enum aw_tx aw_tx_flush_request(struct aw_qp *qp, struct aw_tx_out *out)
{
	const struct aw_swqe *wqe = aw_sq_at(&qp->sq, qp->sq.next);
	const struct rdmap_flush_req req = {
		.type = wqe->access,
		.level = (uint8_t)wqe->swap,
		.request_id = aw_orq_new_stag(qp),
		.stag = wqe->stag,
		.to = wqe->to,
		.len = wqe->compare_add,
	};
	uint8_t octets[RDMAP_FLUSH_REQ_LEN];
	const struct aw_tx_request request = {
		.opcode = RDMAP_FLUSH_REQ,
		.kind = AW_REQUEST_FLUSH,
		.id = req.request_id,
		.octets = octets,
		.len = sizeof(octets),
	};

	rdmap_flush_req_put(&req, octets);
	return aw_tx_request(qp, out, &request);
}

/* AW_OK when the request is executed, or under way; the entry's state says which. */
static enum aw_error execute(struct aw_qp *qp, struct aw_irq_entry *entry)
{
	bool persistent = entry->flush_req.type & RDMAP_FLUSH_PERSISTENT;
	enum aw_written written;
	struct aw_span span;
	enum aw_error err;

	if (entry->state == AW_IRQ_FAILED)
		return AW_E_RDMAP_STREAM_CATASTROPHIC;
	if (entry->state != AW_IRQ_DUE)
		return AW_OK;
	err = aw_flush_hold(qp, &entry->flush_req, &span);
	if (err)
		return err;
	written = qp->ops->write_back(qp->ctx, span.mr, span.p, span.len, persistent);
	qp->ops->mr_put(qp->ctx, span.mr);
	if (written == AW_UNWRITTEN)
		return AW_E_RDMAP_STREAM_CATASTROPHIC;
	entry->state = written == AW_WRITTEN ? AW_IRQ_EXECUTED : AW_IRQ_RUNNING;
	return AW_OK;
}

enum aw_tx aw_tx_flush_response(struct aw_qp *qp, struct aw_tx_out *out)
{
	struct aw_irq_entry *entry = aw_irq_head(qp);
	uint8_t octets[RDMAP_FLUSH_RESP_LEN];
	enum aw_error err = execute(qp, entry);

	if (err) {
		aw_refusal_note_flush(qp, &entry->flush_req, err);
		aw_tx_refuse(qp, RDMAP_FLUSH_REQ, RDMAP_FLUSH_REQ_LEN, err);
		return AW_TX_NONE;
	}
	if (entry->state == AW_IRQ_RUNNING)
		return AW_TX_NONE;
	rdmap_flush_resp_put(entry->flush_req.request_id, octets);
	return aw_tx_answer(qp, out, RDMAP_FLUSH_RESP, octets, sizeof(octets));
}

void aw_qp_written_back(struct aw_qp *qp, bool written)
{
	if (qp->irq_count > 0 && aw_irq_head(qp)->state == AW_IRQ_RUNNING)
		aw_irq_head(qp)->state = written ? AW_IRQ_EXECUTED : AW_IRQ_FAILED;
}
