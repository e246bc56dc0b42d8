// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From SGE lists to checked, held memory.
#include "core/span.h"

#include "core/atomic.h"

enum aw_error aw_spans_hold_list(const struct aw_qp *qp, const struct aw_stretch *stretch,
				 struct aw_spans *spans)
{
	uint32_t offset = stretch->offset, left = stretch->len;

	spans->count = 0;
	for (uint32_t i = 0; left > 0; i++) {
		const struct aw_sge *sge = &stretch->sge[i];
		enum aw_error err;
		uint32_t len;

		AW_PROMISE(i < stretch->sge_count);
		if (offset >= sge->len) {
			offset -= sge->len;
			continue;
		}
		len = sge->len - offset < left ? sge->len - offset : left;
		err = aw_span_hold(qp, stretch, sge, offset, len, &spans->at[spans->count]);
		if (err) {
			aw_spans_put(qp, spans);
			return err;
		}
		spans->count++;
		left -= len;
		offset = 0;
	}
	return AW_OK;
}

enum aw_error aw_spans_hold_atomic(const struct aw_qp *qp, const struct rdmap_atomic_req *req,
				   struct aw_spans *spans)
{
	const struct aw_sge sge = { req->to, AW_ATOMIC_LEN, req->stag };
	const struct aw_stretch stretch = {
		.sge = &sge,
		.sge_count = 1,
		.pd = qp->pd,
		.access = aw_atomic_right(req),
		.len = AW_ATOMIC_LEN,
	};
	enum aw_error err = aw_spans_hold(qp, &stretch, spans);

	if (err)
		return err;
	if (!(qp->remote_access & stretch.access))
		err = AW_E_RDMAP_ACCESS;
	else if ((uintptr_t)spans->at[0].p % AW_ATOMIC_LEN != 0)
		err = AW_E_RDMAP_STREAM_CATASTROPHIC;
	if (err)
		aw_spans_put(qp, spans);
	return err;
}

enum aw_error aw_spans_check(const struct aw_qp *qp, const struct aw_stretch *stretch)
{
	struct aw_spans spans;
	enum aw_error err = aw_spans_hold(qp, stretch, &spans);

	if (!err)
		aw_spans_put(qp, &spans);
	return err;
}

bool aw_spans_place(const struct aw_qp *qp, const struct aw_stretch *stretch, const uint8_t *src)
{
	struct aw_spans spans;
	bool placed = !aw_spans_hold(qp, stretch, &spans);

	if (!placed)
		return false;
	for (unsigned int i = 0; i < spans.count && placed; i++) {
		const struct aw_span *span = &spans.at[i];

		placed = span->mr->null ||
			 qp->ops->place(qp->ctx, span->mr, span->p, src, span->len);
		src += span->len;
	}
	aw_spans_put(qp, &spans);
	return placed;
}
