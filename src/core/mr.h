// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A memory region or bound window as the core sees it, and the checks of RFC 5040 7.2 and RFC 5041
// 7.1 on it. Pure: no look-up, no reference counting; those belong to the driver.
#ifndef CORE_MR_H
#define CORE_MR_H

#include "core/types.h"

struct aw_mr {
	uint32_t stag; /* also the lkey, except for a window */
	uint32_t access; /* enum aw_access */
	uint64_t iova; /* tagged offset of the first octet */
	uint64_t len;
	uint8_t *host; /* address of the first octet in this process */
	const void *pd; /* compared, never followed */
	const void *qp; /* non-NULL: only this struct aw_qp may use it (type 2 memory window) */
	bool null; /* no memory: it reads as zeros, and drops what is written; host means nothing */
	bool window; /* a memory window: for the peer alone, no SGE may name it */
	uint32_t windows; /* the driver's: windows bound to it */
};

/*
 * AW_OK when a QP of pd may use [to, to + len) of mr with all rights in access, or one of
 * AW_E_RDMAP_NOT_ASSOCIATED (other PD or QP), _ACCESS, _TO_WRAP, _BOUNDS, checked in that order: RFC 5040 7.2's. mr
 * may be NULL: AW_E_RDMAP_STAG. access without a remote right is an SGE's.
 */
static inline enum aw_error aw_mr_check(const struct aw_mr *mr, const void *pd, const void *qp,
					uint32_t access, uint64_t to, uint64_t len)
{
	if (!mr)
		return AW_E_RDMAP_STAG;
	if (mr->pd != pd || (mr->qp && mr->qp != qp))
		return AW_E_RDMAP_NOT_ASSOCIATED;
	if ((mr->access & access) != access || (mr->window && !(access & AW_ACCESS_REMOTE)))
		return AW_E_RDMAP_ACCESS;
	/* RFC 5041 7.1: the 64-bit sum must not wrap; 2^64 itself is the end of the last octet. */
	if (len > 0 && to > UINT64_MAX - (len - 1))
		return AW_E_RDMAP_TO_WRAP;
	if (to < mr->iova || to - mr->iova > mr->len || len > mr->len - (to - mr->iova))
		return AW_E_RDMAP_BOUNDS;
	return AW_OK;
}

/* Address of tagged offset `to`, which was checked. An on-demand MR may begin at 0. */
static inline uint8_t *aw_mr_at(const struct aw_mr *mr, uint64_t to)
{
	return (uint8_t *)((uintptr_t)mr->host + (uintptr_t)(to - mr->iova));
}

#endif
