// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The checks on an MR, in the order of RFC 5040 7.2.
#include "core/mr.h"

enum aw_error aw_mr_check(const struct aw_mr *mr, const void *pd, const void *qp, uint32_t access,
			  uint64_t to, uint64_t len)
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
