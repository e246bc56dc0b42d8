// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sending half of atomics: Atomic Requests of ours (RFC 7306 5.2.1), and the peer's executed
// and answered (5.2.2), each exactly once and in its turn.
#include "core/atomic.h"
#include "core/machine.h"
#include "core/reads.h"
#include "core/rx_parts.h"
#include "core/tx_parts.h"

/* The verbs' operations have no masks: FetchAdd adds 64 bits, CmpSwap compares and swaps all. */
static struct rdmap_atomic_req request_of(const struct aw_swqe *wqe, uint32_t id,
					  uint64_t write_data)
{
	struct rdmap_atomic_req req = {
		.op = RDMAP_FETCH_ADD,
		.request_id = id,
		.stag = wqe->stag,
		.to = wqe->to,
		.add_swap_data = wqe->compare_add,
		.compare_mask = UINT64_MAX, /* also where it means nothing: RFC 7306 5.2.1 */
	};

	if (wqe->op == AW_OP_CMP_SWAP) {
		req.op = RDMAP_CMP_SWAP;
		req.add_swap_data = wqe->swap;
		req.add_swap_mask = UINT64_MAX;
		req.compare_data = wqe->compare_add;
	} else if (wqe->op == AW_OP_ATOMIC_WRITE) {
		req.op = RDMAP_ATOMIC_WRITE;
		req.add_swap_data = write_data;
	}
	return req;
}

enum aw_tx aw_tx_request(struct aw_qp *qp, struct aw_tx_out *out,
			 const struct aw_tx_request *request)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(request->opcode),
		.qn = DDP_QN_READ,
		.msn = qp->tx_msn[DDP_QN_READ],
	};
	enum aw_tx tx = aw_tx_octets(qp, out, &hdr, request->octets, request->len);

	if (tx != AW_TX_FPDU)
		return tx;
	qp->tx_msn[DDP_QN_READ]++;
	*aw_orq_push(qp) = (struct aw_orq_entry){
		.sq_index = qp->sq.next,
		.sink_stag = request->id,
		.kind = request->kind,
		.ack_pos = qp->tx_pos,
	};
	return AW_TX_FPDU;
}

enum aw_tx aw_tx_answer(struct aw_qp *qp, struct aw_tx_out *out, enum rdmap_opcode opcode,
			const uint8_t *octets, uint32_t len)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(opcode),
		.qn = DDP_QN_ATOMIC,
		.msn = qp->tx_msn[DDP_QN_ATOMIC],
	};
	enum aw_tx tx = aw_tx_octets(qp, out, &hdr, octets, len);

	if (tx == AW_TX_FPDU) {
		qp->tx_msn[DDP_QN_ATOMIC]++;
		aw_irq_pop(qp);
	}
	return tx;
}

void aw_tx_refuse(struct aw_qp *qp, enum rdmap_opcode opcode, uint32_t len, enum aw_error err)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(opcode),
		.qn = DDP_QN_READ,
		.msn = qp->rx_msn[DDP_QN_READ] - qp->irq_count,
	};
	uint8_t ddp[DDP_UNTAGGED_LEN];
	const struct term_msg msg = {
		.error = err,
		.has_seg_len = true,
		.has_ddp = true,
		.seg_len = (uint16_t)(DDP_UNTAGGED_LEN + len),
		.ddp_len = (uint8_t)ddp_put(&hdr, ddp),
		.ddp = ddp,
	};

	aw_machine_terminate(qp, err, &msg);
}

enum aw_tx aw_tx_atomic_request(struct aw_qp *qp, struct aw_tx_out *out, uint64_t write_data)
{
	uint32_t id = aw_orq_new_stag(qp);
	const struct rdmap_atomic_req req =
		request_of(aw_sq_at(&qp->sq, qp->sq.next), id, write_data);
	uint8_t octets[RDMAP_ATOMIC_REQ_LEN];
	const struct aw_tx_request request = {
		.opcode = RDMAP_ATOMIC_REQ,
		.kind = AW_REQUEST_ATOMIC,
		.id = id,
		.octets = octets,
		.len = sizeof(octets),
	};

	rdmap_atomic_req_put(&req, octets);
	return aw_tx_request(qp, out, &request);
}

enum aw_tx aw_tx_atomic_response(struct aw_qp *qp, struct aw_tx_out *out)
{
	struct aw_irq_entry *entry = aw_irq_head(qp);
	struct rdmap_atomic_resp resp = { .request_id = entry->atomic_req.request_id };
	uint8_t octets[RDMAP_ATOMIC_RESP_LEN];
	/* The value before stays in the entry until a batch has room for the response. */
	enum aw_error err = aw_irq_execute_atomic(qp, entry);

	if (err) {
		/* The target went away or changed since the request was checked. */
		aw_refusal_note_atomic(qp, &entry->atomic_req);
		aw_tx_refuse(qp, RDMAP_ATOMIC_REQ, RDMAP_ATOMIC_REQ_LEN, err);
		return AW_TX_NONE;
	}
	/* The right to write is none to read what was there. */
	if (entry->atomic_req.op != RDMAP_ATOMIC_WRITE)
		resp.original = entry->original;
	rdmap_atomic_resp_put(&resp, octets);
	return aw_tx_answer(qp, out, RDMAP_ATOMIC_RESP, octets, sizeof(octets));
}
