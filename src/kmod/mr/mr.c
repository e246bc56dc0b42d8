// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of regions by STag (core/stag.h); the key is random. A region goes when the last copy
// that found it is done.
#include "kmod/mr/mr.h"

#include "core/stag.h"
#include "kmod/mr/impl.h"

#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#define UNUSABLE 1 /* the index that scrambles to 0 */
#define INDEX_LIMIT XA_LIMIT(1, AWK_MR_MAX + UNUSABLE)

static_assert(AWK_MR_MAX + UNUSABLE <= AW_STAG_INDEX_MAX);

static bool pages_create(struct awk_pages *pages, u32 max)
{
	if (max > 0)
		pages->at = kvcalloc(max, sizeof(*pages->at), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return max == 0 || pages->at;
}

struct awk_mr *awk_mr_create(enum awk_mr_kind kind, u32 pages_max)
{
	struct awk_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->kind = kind;
	mr->pages_max = pages_max;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->unused);
	if (!pages_create(&mr->pages, pages_max) ||
	    !pages_create(&mr->mapped, kind == AWK_MR_FAST ? pages_max : 0)) {
		awk_mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	return mr;
}

void awk_mr_free(struct awk_mr *mr)
{
	ib_umem_release(mr->umem); /* NULL is allowed */
	kvfree(mr->pages.at);
	kvfree(mr->mapped.at);
	kfree_rcu(mr, rcu);
}

static u32 index_of(const struct awk_device *dev, u32 stag)
{
	return aw_stag_unscramble(&dev->stag_secret, stag >> AW_STAG_KEY_BITS);
}

/*
 * Reserves an index. STags 0 and 1 go onto the wire in zero-length operations, so they are never
 * given out.
 */
static int index_reserve(struct awk_device *dev, u32 *index)
{
	u32 unusable = aw_stag_unscramble(&dev->stag_secret, 0);
	int err = xa_alloc_cyclic(&dev->mrs, index, NULL, INDEX_LIMIT, &dev->mr_next, GFP_KERNEL);

	if (err < 0 || *index != unusable)
		return err;
	err = xa_alloc_cyclic(&dev->mrs, index, NULL, INDEX_LIMIT, &dev->mr_next, GFP_KERNEL);
	xa_release(&dev->mrs, unusable);
	return err;
}

int awk_mr_enlist(struct awk_mr *mr, struct ib_pd *pd)
{
	struct awk_device *dev = awk_device_of(pd->device);
	u32 index;
	int err;

	mr->base.device = pd->device;
	mr->core.pd = pd;
	err = index_reserve(dev, &index);
	if (err < 0)
		return err;
	mr->core.stag = aw_stag_scramble(&dev->stag_secret, index) << AW_STAG_KEY_BITS |
			(get_random_u32() & AW_STAG_KEY_MASK);
	mr->base.lkey = mr->base.rkey = mr->core.stag;
	/* From here on look-ups find it. The slot is reserved: no memory is needed. */
	xa_store(&dev->mrs, index, mr, GFP_KERNEL);
	return 0;
}

/* Finds and holds a region, valid or not. */
static struct awk_mr *mr_find(struct awk_device *dev, u32 stag)
{
	struct awk_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, index_of(dev, stag));
	if (mr && !refcount_inc_not_zero(&mr->refs))
		mr = NULL;
	rcu_read_unlock();
	/*
	 * The reference is seen before valid is read; pairs with the xchg in mr_invalidate, after
	 * which references are counted.
	 */
	smp_mb__after_atomic();
	return mr;
}

const struct aw_mr *awk_mr_get(struct awk_device *dev, u32 stag)
{
	struct awk_mr *mr = mr_find(dev, stag);

	if (!mr)
		return NULL;
	/* Pairs with the release of mr_register. */
	if (smp_load_acquire(&mr->valid) && READ_ONCE(mr->core.stag) == stag)
		return &mr->core;
	awk_mr_put(&mr->core);
	return NULL;
}

void awk_mr_put(const struct aw_mr *core)
{
	struct awk_mr *mr = container_of((struct aw_mr *)core, struct awk_mr, core);

	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->unused);
}

int awk_mr_dereg(struct ib_mr *base, struct ib_udata *udata)
{
	struct awk_mr *mr = awk_mr_of(base);
	struct awk_device *dev = awk_device_of(base->device);

	xa_erase(&dev->mrs, index_of(dev, mr->core.stag));
	awk_mr_put(&mr->core);
	wait_for_completion(&mr->unused);
	awk_mr_free(mr);
	return 0;
}

/*
 * Ends the validity of a region that was found, which REG_MR may begin again. The thread that has invalidated it, which is only
 * one, waits for those that found it valid: each copies at most one segment, without sleeping. The references that stay are
 * the table's and the caller's.
 */
static enum aw_error mr_invalidate(struct awk_mr *mr, const void *pd, u32 stag)
{
	if (!mr || !smp_load_acquire(&mr->valid) || mr->core.stag != stag)
		return AW_E_RDMAP_STAG;
	if (mr->core.pd != pd)
		return AW_E_RDMAP_NOT_ASSOCIATED;
	if (mr->kind != AWK_MR_FAST)
		return AW_E_RDMAP_CANNOT_INVALIDATE;
	if (!xchg(&mr->valid, 0))
		return AW_E_RDMAP_STAG;
	while (refcount_read(&mr->refs) > 2)
		cpu_relax();
	smp_mb(); /* their copies come before all that the owner does with the pages */
	return AW_OK;
}

enum aw_error awk_mr_invalidate(struct awk_device *dev, const void *pd, u32 stag, bool by_peer)
{
	struct awk_mr *mr = mr_find(dev, stag);
	enum aw_error err = mr_invalidate(mr, pd, stag);

	/*
	 * NFS invalidates what was registered for a call that a signal ended, though the server's reply may
	 * have invalidated it before.
	 */
	if (err && !by_peer && mr && mr->kind == AWK_MR_FAST && mr->core.pd == pd &&
	    !READ_ONCE(mr->valid))
		err = AW_OK;
	if (mr)
		awk_mr_put(&mr->core);
	return err;
}

static enum aw_wc_status mr_register(struct awk_mr *mr, const void *pd, u32 stag, u32 access)
{
	if (!mr || mr->kind != AWK_MR_FAST || mr->core.pd != pd || READ_ONCE(mr->valid))
		return AW_WC_MW_BIND_ERR;
	WRITE_ONCE(mr->core.stag, stag);
	mr->core.access = awk_mr_access(access);
	/*
	 * No thread copies, because the region is not valid. Without a new mapping it has the pages of its last registration
	 * again.
	 */
	if (mr->mapped.count > 0) {
		swap(mr->pages, mr->mapped);
		mr->mapped.count = 0;
		mr->core.iova = mr->base.iova;
		mr->core.len = mr->base.length;
		mr->core.host = (u8 *)(uintptr_t)(mr->base.iova & ((1ull << mr->pages.shift) - 1));
	}
	smp_store_release(&mr->valid, 1);
	return AW_WC_SUCCESS;
}

enum aw_wc_status awk_mr_register(struct awk_device *dev, const void *pd, u32 stag, u32 access)
{
	struct awk_mr *mr = mr_find(dev, stag);
	enum aw_wc_status status = mr_register(mr, pd, stag, access);

	if (mr)
		awk_mr_put(&mr->core);
	return status;
}
