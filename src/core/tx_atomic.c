// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sending half of atomics: Atomic Requests of ours (RFC 7306 5.2.1),
// and the peer's executed and answered (5.2.2), each exactly once and in its turn.
#include "core/atomic.h"
#include "core/machine.h"
#include "core/reads.h"
#include "core/tx_parts.h"

/* The verbs' operations have no masks: FetchAdd adds 64 bits, CmpSwap compares and swaps all. */
static struct rdmap_atomic_req request_of(const struct aw_swqe *wqe, uint32_t id)
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
	}
	return req;
}

static enum aw_tx send_octets(struct aw_qp *qp, struct aw_tx_out *out, const struct ddp_hdr *hdr,
			      const uint8_t *octets, uint32_t len)
{
	struct aw_tx_seg seg = { .hdr = *hdr, .len = len, .copy = true };

	aw_spans_own(&seg.payload, octets, len);
	return aw_tx_frame(qp, out, &seg);
}

enum aw_tx aw_tx_atomic_request(struct aw_qp *qp, struct aw_tx_out *out)
{
	uint32_t id = aw_orq_new_stag(qp);
	const struct rdmap_atomic_req req = request_of(aw_sq_at(&qp->sq, qp->sq.next), id);
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_ATOMIC_REQ),
		.qn = DDP_QN_READ,
		.msn = qp->tx_msn[DDP_QN_READ],
	};
	uint8_t octets[RDMAP_ATOMIC_REQ_LEN];
	enum aw_tx tx;

	rdmap_atomic_req_put(&req, octets);
	tx = send_octets(qp, out, &hdr, octets, sizeof(octets));
	if (tx != AW_TX_FPDU)
		return tx;
	qp->tx_msn[DDP_QN_READ]++;
	*aw_orq_push(qp) = (struct aw_orq_entry){
		.sq_index = qp->sq.next,
		.sink_stag = id,
		.atomic = true,
		.ack_pos = qp->tx_pos,
	};
	return AW_TX_FPDU;
}

/* The target went away or changed since the request was checked. RFC 7306 8.1: no RDMA header. */
static void refuse(struct aw_qp *qp, const struct rdmap_atomic_req *req, enum aw_error err)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_ATOMIC_REQ),
		.qn = DDP_QN_READ,
		.msn = qp->rx_msn[DDP_QN_READ] - qp->irq_count,
	};
	uint8_t ddp[DDP_UNTAGGED_LEN];
	const struct term_msg msg = {
		.error = err,
		.has_seg_len = true,
		.has_ddp = true,
		.seg_len = DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQ_LEN,
		.ddp_len = (uint8_t)ddp_put(&hdr, ddp),
		.ddp = ddp,
	};

	aw_refusal_note_atomic(qp, req);
	aw_machine_terminate(qp, err, &msg);
}

/* The value before stays in the entry until a batch has room for the response. */
static enum aw_error execute(struct aw_qp *qp, struct aw_irq_entry *entry)
{
	struct aw_spans target;
	enum aw_error err;

	if (entry->executed)
		return AW_OK;
	err = aw_spans_hold_atomic(qp, &entry->atomic_req, &target);
	if (err)
		return err;
	entry->executed = qp->ops->atomic(qp->ctx, target.at[0].mr, target.at[0].p,
					  &entry->atomic_req, &entry->original);
	aw_spans_put(qp, &target);
	return entry->executed ? AW_OK : AW_E_RDMAP_BOUNDS;
}

enum aw_tx aw_tx_atomic_response(struct aw_qp *qp, struct aw_tx_out *out)
{
	struct aw_irq_entry *entry = aw_irq_head(qp);
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_ATOMIC_RESP),
		.qn = DDP_QN_ATOMIC,
		.msn = qp->tx_msn[DDP_QN_ATOMIC],
	};
	struct rdmap_atomic_resp resp = { .request_id = entry->atomic_req.request_id };
	uint8_t octets[RDMAP_ATOMIC_RESP_LEN];
	enum aw_error err = execute(qp, entry);
	enum aw_tx tx;

	if (err) {
		refuse(qp, &entry->atomic_req, err);
		return AW_TX_NONE;
	}
	resp.original = entry->original;
	rdmap_atomic_resp_put(&resp, octets);
	tx = send_octets(qp, out, &hdr, octets, sizeof(octets));
	if (tx == AW_TX_FPDU) {
		qp->tx_msn[DDP_QN_ATOMIC]++;
		aw_irq_pop(qp);
	}
	return tx;
}
