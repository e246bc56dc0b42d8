// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The MR is looked at again, so that a request that is granted pays nothing. It may have changed since: then the cause is what
// is found now.
#include "core/refusal.h"

#include "core/atomic.h"
#include "core/machine.h"
#include "core/rx_parts.h"

static enum aw_refusal_cause cause_find(const struct aw_qp *qp, const struct aw_mr *mr,
					const struct aw_access_refusal *asked)
{
	const void *pd = aw_xrc_pd(qp, mr);

	switch ((uint32_t)aw_mr_check(mr, pd, qp, asked->access, asked->to, asked->len)) {
	case AW_E_RDMAP_STAG:
		return AW_REFUSAL_STAG;
	case AW_E_RDMAP_NOT_ASSOCIATED:
		return mr->pd == pd ? AW_REFUSAL_WINDOW : AW_REFUSAL_PD;
	case AW_E_RDMAP_ACCESS:
		return AW_REFUSAL_MR_RIGHTS;
	case AW_E_RDMAP_TO_WRAP:
	case AW_E_RDMAP_BOUNDS:
		return AW_REFUSAL_BOUNDS;
	}
	if (asked->access & ~qp->remote_access)
		return AW_REFUSAL_QP_RIGHTS;
	if (asked->is_atomic && (uintptr_t)aw_mr_at(mr, asked->to) % AW_ATOMIC_LEN != 0)
		return AW_REFUSAL_UNALIGNED;
	return AW_REFUSAL_UNMAPPED;
}

static void refusal_keep(struct aw_qp *qp, struct aw_access_refusal asked)
{
	const struct aw_mr *mr;

	if (!aw_machine_runs(qp))
		return;
	mr = qp->ops->mr_get(qp->ctx, asked.stag);
	asked.cause = cause_find(qp, mr, &asked);
	if (mr) {
		asked.start = mr->iova;
		asked.size = mr->len;
		qp->ops->mr_put(qp->ctx, mr);
	}
	qp->refusal = asked;
}

void aw_refusal_note_read(struct aw_qp *qp, const struct rdmap_read_req *req)
{
	refusal_keep(qp, (struct aw_access_refusal){ .access = AW_ACCESS_REMOTE_READ,
						     .stag = req->src_stag,
						     .to = req->src_to,
						     .len = req->size });
}

void aw_refusal_note_atomic(struct aw_qp *qp, const struct rdmap_atomic_req *req)
{
	refusal_keep(qp, (struct aw_access_refusal){ .access = aw_atomic_right(req),
						     .is_atomic = true,
						     .stag = req->stag,
						     .to = req->to,
						     .len = AW_ATOMIC_LEN });
}

void aw_refusal_note_flush(struct aw_qp *qp, const struct rdmap_flush_req *req, enum aw_error err)
{
	bool is_whole = req->level == RDMAP_FLUSH_MR;
	const struct aw_mr *mr = is_whole ? qp->ops->mr_get(qp->ctx, req->stag) : NULL;

	/* Memory that was not written back is no refusal: the driver has told why. */
	if (err != AW_E_RDMAP_STREAM_CATASTROPHIC)
		refusal_keep(qp, (struct aw_access_refusal){ .access = aw_flush_rights(req),
							     .stag = req->stag,
							     .to = mr ? mr->iova : req->to,
							     .len = mr ? mr->len : req->len });
	if (mr)
		qp->ops->mr_put(qp->ctx, mr);
}

/* RDMAP's remote protection errors and DDP's of tagged buffers (RFC 5040 4.8); RFC 7306 8.2: an atomic's address. */
static bool is_about_memory(const struct aw_rx_seg *seg, enum aw_error err)
{
	if (err == AW_E_RDMAP_STREAM_CATASTROPHIC)
		return seg->op == RDMAP_ATOMIC_REQ;
	return aw_error_layer(err) <= 1 && aw_error_type(err) == 1 &&
	       err != AW_E_DDP_TAGGED_VERSION;
}

void aw_refusal_note(struct aw_qp *qp, const struct aw_rx_seg *seg, enum aw_error err)
{
	struct rdmap_read_req read;
	struct rdmap_atomic_req atomic;
	struct rdmap_flush_req flush;

	if (!is_about_memory(seg, err))
		return;
	if (seg->op == RDMAP_WRITE) {
		refusal_keep(qp, (struct aw_access_refusal){ .access = AW_ACCESS_REMOTE_WRITE,
							     .stag = seg->hdr.stag,
							     .to = seg->hdr.to,
							     .len = seg->len });
	} else if (seg->op == RDMAP_READ_REQ) {
		read = rdmap_read_req_get(seg->data);
		aw_refusal_note_read(qp, &read);
	} else if (seg->op == RDMAP_ATOMIC_REQ) {
		atomic = rdmap_atomic_req_get(seg->data);
		aw_refusal_note_atomic(qp, &atomic);
	} else if (seg->op == RDMAP_FLUSH_REQ) {
		flush = rdmap_flush_req_get(seg->data);
		aw_refusal_note_flush(qp, &flush, err);
	}
}
