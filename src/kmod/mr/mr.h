// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions as pages. The core computes no address in them: the pointer that it gives to place,
// gather and atomic is an offset into the pages (or, of a DMA region, the address).
#ifndef KMOD_MR_MR_H
#define KMOD_MR_MR_H

#include "core/mr.h"
#include "core/ops.h"
#include "kmod/base/device.h"

#include <linux/completion.h>
#include <linux/refcount.h>

enum awk_mr_kind {
	AWK_MR_DMA, /* all of the kernel's memory */
	AWK_MR_USER,
	AWK_MR_FAST, /* alloc_mr; valid between REG_MR and its invalidation */
};

struct awk_pages {
	u32 count;
	u32 shift; /* of a page's size */
	void **at; /* addresses in the kernel; each access is bounded by count */
};

struct awk_mr {
	struct ib_mr base;
	/* fixed after create */
	struct rcu_head rcu;
	struct ib_umem *umem;
	enum awk_mr_kind kind;
	u32 pages_max;
	/* the region's references: of the table, and of the core while it copies */
	refcount_t refs;
	struct completion unused;
	/* FAST: written by REG_MR, while it is not valid */
	struct aw_mr core;
	u32 valid; /* 0 or 1: not every processor can exchange a single byte */
	struct awk_pages pages;
	/* FAST: written by map_mr_sg, which a ULP orders with REG_MR; count 0: not since that */
	struct awk_pages mapped;
};

static inline struct awk_mr *awk_mr_of(struct ib_mr *base)
{
	return container_of(base, struct awk_mr, base);
}

/* As the core's ops of these names; any context. */
const struct aw_mr *awk_mr_get(struct awk_device *dev, u32 stag);
void awk_mr_put(const struct aw_mr *mr);
bool awk_mr_place(const struct aw_mr *mr, u8 *dst, const u8 *src, size_t len);
bool awk_mr_gather(const struct aw_mr *mr, u8 *dst, const u8 *src, size_t len);
bool awk_mr_atomic(const struct aw_mr *mr, u8 *at, const struct rdmap_atomic_req *req, u64 *before);
enum aw_error awk_mr_invalidate(struct awk_device *dev, const void *pd, u32 stag, bool by_peer);
/* REG_MR: gives a fast region this key and these rights. */
enum aw_wc_status awk_mr_register(struct awk_device *dev, const void *pd, u32 stag, u32 access);

/* The functions of struct ib_device_ops. */
struct ib_mr *awk_mr_get_dma(struct ib_pd *pd, int access);
struct ib_mr *awk_mr_reg_user(struct ib_pd *pd, u64 start, u64 len, u64 iova, int access,
			      struct ib_udata *udata);
struct ib_mr *awk_mr_alloc(struct ib_pd *pd, enum ib_mr_type type, u32 pages_max);
int awk_mr_map_sg(struct ib_mr *base, struct scatterlist *sg, int sg_count, unsigned int *offset);
int awk_mr_dereg(struct ib_mr *base, struct ib_udata *udata);

#endif
