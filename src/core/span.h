// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stretch of a message as pieces of held MRs: found and checked as a whole before any octet of
// it is touched, given back after.
#ifndef CORE_SPAN_H
#define CORE_SPAN_H

#include "core/promise.h"
#include "core/xrc.h"

#include <string.h>

struct aw_span {
	uint8_t *p;
	size_t len;
	const struct aw_mr *mr; /* held; NULL: the core's own memory */
};

struct aw_spans {
	unsigned int count;
	struct aw_span at[AW_SGE_MAX];
};

/* The octets from offset to offset + len of an SGE list. */
struct aw_stretch {
	const struct aw_sge *sge;
	uint32_t sge_count;
	const void *pd; /* the PD that every MR must be of */
	uint32_t access; /* enum aw_access that every MR must grant */
	uint32_t offset;
	uint32_t len; /* at most the list's sum, less offset */
};

/*
 * For a held MR that has passed aw_mr_check for this access: AW_OK, or AW_E_RDMAP_BOUNDS when it is
 * on demand and these octets cannot be accessed.
 */
static inline enum aw_error aw_span_reach(const struct aw_qp *qp, const struct aw_mr *mr,
					  uint32_t access, const struct aw_span *span)
{
	const uint32_t writes = AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE |
				AW_ACCESS_REMOTE_ATOMIC;

	if (!(mr->access & AW_ACCESS_ON_DEMAND))
		return AW_OK;
	return qp->ops->reach(qp->ctx, mr, span->p, span->len, access & writes) ? AW_OK
										: AW_E_RDMAP_BOUNDS;
}

/* Holds the MR of octets offset to offset + len of one SGE of a stretch. On an error it is not held. */
static inline enum aw_error aw_span_hold(const struct aw_qp *qp, const struct aw_stretch *stretch,
					 const struct aw_sge *sge, uint32_t offset, uint32_t len,
					 struct aw_span *span)
{
	const struct aw_mr *mr = qp->ops->mr_get(qp->ctx, sge->lkey);
	const void *pd = stretch->access & AW_ACCESS_REMOTE ? aw_xrc_pd(qp, mr) : stretch->pd;
	/* Checked from the SGE's start, so that an address which wraps is found. */
	enum aw_error err =
		aw_mr_check(mr, pd, qp, stretch->access, sge->addr, (uint64_t)offset + len);

	if (!err) {
		*span = (struct aw_span){ aw_mr_at(mr, sge->addr + offset), len, mr };
		err = aw_span_reach(qp, mr, stretch->access, span);
	}
	if (err && mr)
		qp->ops->mr_put(qp->ctx, mr);
	return err;
}

/* As aw_spans_hold, of any stretch. */
enum aw_error aw_spans_hold_list(const struct aw_qp *qp, const struct aw_stretch *stretch,
				 struct aw_spans *spans) AW_MUST_USE;

/* Holds the MRs of a stretch. On an error none is held. Most stretches are within their first SGE. */
static inline AW_MUST_USE enum aw_error aw_spans_hold(const struct aw_qp *qp,
						      const struct aw_stretch *stretch,
						      struct aw_spans *spans)
{
	enum aw_error err;

	if (stretch->len == 0 || (uint64_t)stretch->offset + stretch->len > stretch->sge->len)
		return aw_spans_hold_list(qp, stretch, spans);
	AW_PROMISE(stretch->sge_count > 0);
	err = aw_span_hold(qp, stretch, stretch->sge, stretch->offset, stretch->len, &spans->at[0]);
	spans->count = !err;
	return err;
}

static inline void aw_spans_put(const struct aw_qp *qp, const struct aw_spans *spans)
{
	for (unsigned int i = 0; i < spans->count; i++) {
		if (spans->at[i].mr)
			qp->ops->mr_put(qp->ctx, spans->at[i].mr);
	}
}

/*
 * Holds the octets that an Atomic Request names, as the peer may use them: with RFC 7306 8.2's
 * alignment of the address that they have here. On an error none is held.
 */
enum aw_error aw_spans_hold_atomic(const struct aw_qp *qp, const struct rdmap_atomic_req *req,
				   struct aw_spans *spans) AW_MUST_USE;

/* AW_OK when the stretch could be held now. */
enum aw_error aw_spans_check(const struct aw_qp *qp, const struct aw_stretch *stretch) AW_MUST_USE;

/*
 * Copies src, as long as the stretch, into it. False when it cannot be held, or when memory of it
 * is unmapped: some octets may have been copied.
 */
bool aw_spans_place(const struct aw_qp *qp, const struct aw_stretch *stretch,
		    const uint8_t *src) AW_MUST_USE;

static inline bool aw_span_gather(const struct aw_qp *qp, const struct aw_span *span, uint8_t *dst,
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

/*
 * Copies held spans out to dst, which is as long, and folds the copy into crc unless that is NULL. False when memory of theirs is
 * unmapped.
 */
static inline AW_MUST_USE bool aw_spans_gather(const struct aw_qp *qp, const struct aw_spans *spans,
					       uint8_t *dst, uint32_t *crc)
{
	for (unsigned int i = 0; i < spans->count; i++) {
		if (!aw_span_gather(qp, &spans->at[i], dst, crc))
			return false;
		dst += spans->at[i].len;
	}
	return true;
}

/* The core's own octets as spans. */
static inline void aw_spans_own(struct aw_spans *spans, const uint8_t *p, size_t len)
{
	spans->count = len > 0;
	spans->at[0] = (struct aw_span){ (uint8_t *)p, len, NULL };
}

#endif
