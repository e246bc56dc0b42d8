// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies into a region and out of it, page by page. The core has checked rights and bounds; here it
// is checked once more that only the region's own pages are touched.
#include "kmod/mr/mr.h"

#include "core/atomic.h"

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <linux/string.h>

static struct awk_mr *mr_of(const struct aw_mr *core)
{
	return container_of((struct aw_mr *)core, struct awk_mr, core);
}

/*
 * Returns the address of an offset, which the core's pointer is. *piece: the bytes that follow in
 * one piece, at most len. NULL beyond the last page.
 */
static u8 *mr_piece(const struct awk_mr *mr, const u8 *at, size_t len, size_t *piece)
{
	u64 offset = (uintptr_t)at;
	u32 shift = mr->pages.shift;
	u64 page = offset >> shift;
	u64 in_page = offset & ((1ull << shift) - 1);

	if (mr->kind == AWK_MR_DMA) {
		*piece = len;
		return (u8 *)at;
	}
	if (page >= mr->pages.count)
		return NULL;
	*piece = min_t(u64, len, (1ull << shift) - in_page);
	return (u8 *)mr->pages.at[page] + in_page;
}

bool awk_mr_place(const struct aw_mr *core, u8 *dst, const u8 *src, size_t len)
{
	size_t piece;

	for (; len > 0; len -= piece) {
		u8 *at = mr_piece(mr_of(core), dst, len, &piece);

		if (!at)
			return false;
		memcpy(at, src, piece);
		src += piece;
		dst += piece;
	}
	return true;
}

bool awk_mr_gather(const struct aw_mr *core, u8 *dst, const u8 *src, size_t len)
{
	size_t piece;

	for (; len > 0; len -= piece) {
		const u8 *at = mr_piece(mr_of(core), src, len, &piece);

		if (!at)
			return false;
		memcpy(dst, at, piece);
		src += piece;
		dst += piece;
	}
	return true;
}

/* Atomic also towards a program's own operations on that memory. */
bool awk_mr_atomic(const struct aw_mr *core, u8 *at, const struct rdmap_atomic_req *req,
		   u64 *before)
{
	size_t piece;
	u64 *word = (u64 *)mr_piece(mr_of(core), at, AW_ATOMIC_LEN, &piece);
	u64 old, seen;

	if (!word || piece < AW_ATOMIC_LEN || (uintptr_t)word % AW_ATOMIC_LEN != 0)
		return false;
	seen = READ_ONCE(*word);
	do {
		old = seen;
		seen = cmpxchg64(word, old, aw_atomic_next(req, old));
	} while (seen != old);
	*before = old;
	return true;
}
