// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From SGE lists to checked, held memory.
#include "core/span.h"

#include "core/atomic.h"
#include "core/promise.h"
#include "core/xrc.h"

#include <string.h>

/* Octets offset to offset + len of one SGE. */
static enum aw_error hold_one(const struct aw_qp *qp, const struct aw_stretch *stretch,
			      const struct aw_sge *sge, struct aw_spans *spans,
			      const uint32_t part[2])
{
	const uint32_t offset = part[0], len = part[1];
	const struct aw_mr *mr = qp->ops->mr_get(qp->ctx, sge->lkey);
	const void *pd = stretch->access & AW_ACCESS_REMOTE ? aw_xrc_pd(qp, mr) : stretch->pd;
	/* Checked from the SGE's start, so that an address which wraps is found. */
	enum aw_error err =
		aw_mr_check(mr, pd, qp, stretch->access, sge->addr, (uint64_t)offset + len);
	struct aw_span *span = &spans->at[spans->count];

	if (!err) {
		*span = (struct aw_span){ aw_mr_at(mr, sge->addr + offset), len, mr };
		err = aw_span_reach(qp, mr, stretch->access, span);
	}
	if (err) {
		if (mr)
			qp->ops->mr_put(qp->ctx, mr);
		return err;
	}
	spans->count++;
	return AW_OK;
}

enum aw_error aw_spans_hold(const struct aw_qp *qp, const struct aw_stretch *stretch,
			    struct aw_spans *spans)
{
	uint32_t part[2] = { stretch->offset, 0 };
	uint32_t left = stretch->len;

	spans->count = 0;
	for (uint32_t i = 0; left > 0; i++) {
		const struct aw_sge *sge = &stretch->sge[i];
		enum aw_error err;

		AW_PROMISE(i < stretch->sge_count);
		if (part[0] >= sge->len) {
			part[0] -= sge->len;
			continue;
		}
		part[1] = sge->len - part[0] < left ? sge->len - part[0] : left;
		err = hold_one(qp, stretch, sge, spans, part);
		if (err) {
			aw_spans_put(qp, spans);
			return err;
		}
		left -= part[1];
		part[0] = 0;
	}
	return AW_OK;
}

void aw_spans_put(const struct aw_qp *qp, const struct aw_spans *spans)
{
	for (unsigned int i = 0; i < spans->count; i++) {
		if (spans->at[i].mr)
			qp->ops->mr_put(qp->ctx, spans->at[i].mr);
	}
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

static bool gather_one(const struct aw_qp *qp, const struct aw_span *span, uint8_t *dst,
		       uint32_t *crc)
{
	if (span->mr && !span->mr->null)
		return qp->ops->gather(qp->ctx, span->mr, dst, span->p, span->len, crc);
	if (span->mr)
		memset(dst, 0, span->len);
	else
		memcpy(dst, span->p, span->len);
	if (crc)
		*crc = qp->ops->crc32c(*crc, dst, span->len);
	return true;
}

bool aw_spans_gather(const struct aw_qp *qp, const struct aw_spans *spans, uint8_t *dst,
		     uint32_t *crc)
{
	for (unsigned int i = 0; i < spans->count; i++) {
		if (!gather_one(qp, &spans->at[i], dst, crc))
			return false;
		dst += spans->at[i].len;
	}
	return true;
}

void aw_spans_own(struct aw_spans *spans, const uint8_t *p, size_t len)
{
	spans->count = len > 0;
	spans->at[0] = (struct aw_span){ (uint8_t *)p, len, NULL };
}
