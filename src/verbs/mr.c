// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MRs. lkey, rkey and handle are the STag. Nothing is pinned, and an STag names memory by address:
// memory that a program unmaps before it deregisters is gone for its peers too.
#include "base/log.h"
#include "core/types.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/mem/mapping.h"
#include "net/mem/writeback.h"
#include "net/mr/mrtab.h"
#include "net/mr/mw.h"
#include "net/qp/flush.h"
#include "net/qp/uqp.h"
#include "verbs/context.h"
#include "verbs/dm.h"
#include "verbs/dmabuf.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/newer.h"
#include "verbs/pd.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* verbs.h hides these names behind macros that choose between them. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_USED                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | VB_ACCESS_FLUSH)
/* All other flags are rejected for a dma-buf, as the kernel does. */
#define ACCESS_DMABUF                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE)
/* A promise about the pages that makes no difference here. */
#define ACCESS_IGNORED IBV_ACCESS_HUGETLB

_Static_assert(AW_ACCESS_LOCAL_WRITE == (int)IBV_ACCESS_LOCAL_WRITE, "the core has verbs' numbers");
_Static_assert(AW_ACCESS_REMOTE_WRITE == (int)IBV_ACCESS_REMOTE_WRITE, "likewise");
_Static_assert(AW_ACCESS_REMOTE_READ == (int)IBV_ACCESS_REMOTE_READ, "likewise");
_Static_assert(AW_ACCESS_REMOTE_ATOMIC == (int)IBV_ACCESS_REMOTE_ATOMIC, "likewise");
_Static_assert(AW_ACCESS_MW_BIND == (int)IBV_ACCESS_MW_BIND, "likewise");
_Static_assert(AW_ACCESS_ZERO_BASED == (int)IBV_ACCESS_ZERO_BASED, "likewise");
_Static_assert(AW_ACCESS_ON_DEMAND == (int)IBV_ACCESS_ON_DEMAND, "likewise");
_Static_assert(AW_ACCESS_FLUSH_GLOBAL == (int)VB_ACCESS_FLUSH_GLOBAL, "likewise");
_Static_assert(AW_ACCESS_FLUSH_PERSISTENT == (int)VB_ACCESS_FLUSH_PERSISTENT, "likewise");

struct vb_mr {
	struct ibv_mr ibv;
	struct aw_mr regions[2]; /* one is registered; the other is for a new translation */
	struct aw_mr *region; /* NULL: imported */
	struct vb_dm *dm; /* the device memory that it is in, or NULL */
	struct vb_mapping mapping; /* of a dma-buf: unmapped with the MR */
	uint32_t generation; /* aw_fork_generation() when made */
};

static struct vb_limit mrs = { .max = AW_MR_MAX };

static bool windows_forbid(struct aw_mr *region);
static int64_t bytes_of(const struct aw_mr *region);
static void region_remove(const struct vb_mr *mr, struct aw_mr *region);
static int access_check(unsigned int access);
static int mr_create(struct ibv_pd *pd, const struct aw_mr *want, struct vb_mr **mr);
static int mr_change(struct vb_mr *mr, const struct aw_mr *want, bool moves);

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			     unsigned int access)
{
	struct aw_mr want = {
		.access = access & ACCESS_USED,
		.iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.len = length,
		.host = addr,
		.pd = vb_pd_key(pd),
	};
	struct vb_mr *mr;
	int err = access_check(access);

	if (!err)
		err = mr_create(pd, &want, &mr);
	if (err) {
		errno = err;
		return NULL;
	}
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	return reg_mr(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	return reg_mr(pd, addr, length, iova, access);
}

struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv_dm, uint64_t offset,
			    size_t length, unsigned int access)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_dm *dm = vb_dm_of(ibv_dm)->base;
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || offset > dm->length ||
	    length > dm->length - offset) {
		errno = EINVAL;
		return NULL;
	}
	mr = reg_mr(pd, dm->memory + offset, length, 0, access);
	if (!mr)
		return NULL;
	mr->addr = NULL;
	((struct vb_mr *)mr)->dm = dm;
	vb_dm_get(dm);
	return mr;
}

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	const struct aw_mr want = {
		.access = AW_ACCESS_LOCAL_WRITE,
		.len = SIZE_MAX,
		.pd = vb_pd_key(pd),
		.null = true,
	};
	struct vb_mr *mr;
	int err = mr_create(pd, &want, &mr);

	if (err) {
		errno = err;
		return NULL;
	}
	mr->ibv.rkey = 0; /* no STag: peers have no right to it in any case */
	return &mr->ibv;
}

/* An import has the keys of another context's MR. EINVAL for an MR of another PD. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct aw_mr *region = aw_mr_get(mr_handle);
	struct vb_mr *mr = NULL;
	int err = EINVAL;

	if (region && !region->window && !region->null && region->pd == vb_pd_key(pd)) {
		mr = calloc(1, sizeof(*mr));
		err = ENOMEM;
	}
	if (mr) {
		mr->ibv.context = pd->context;
		mr->ibv.pd = pd;
		mr->ibv.length = region->len;
		mr->ibv.handle = mr->ibv.lkey = mr->ibv.rkey = mr_handle;
		vb_pd_get(pd);
	}
	if (region)
		aw_mr_put(region);
	if (!mr)
		errno = err;
	return mr ? &mr->ibv : NULL;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	ibv_dereg_mr(mr);
}

/* EOPNOTSUPP for a dma-buf that the CPU cannot map. The fd may be closed afterwards. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	bool writes = access & IBV_ACCESS_LOCAL_WRITE;
	struct vb_mapping mapping;
	struct ibv_mr *mr;
	uint8_t *host;
	uint64_t within_page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	bool fits = !((unsigned int)access & ~(unsigned int)ACCESS_DMABUF) &&
		    !((offset ^ iova) & within_page);
	int err = fits ? access_check((unsigned int)access) : EINVAL;

	if (!err)
		err = vb_dmabuf_map(fd, offset, length, writes, &mapping, &host);
	if (err) {
		errno = err;
		return NULL;
	}
	mr = reg_mr(pd, host, length, iova, (unsigned int)access);
	if (!mr) {
		err = errno;
		vb_dmabuf_unmap(&mapping);
		errno = err;
		return NULL;
	}
	mr->addr = (void *)(uintptr_t)offset;
	((struct vb_mr *)mr)->mapping = mapping;
	return mr;
}

/* The input that rdma-core's library refuses before it asks the kernel. */
static bool rereg_is_sound(const struct vb_mr *mr, int flags, const struct ibv_pd *pd,
			   const void *addr, size_t length, int access)
{
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !mr->region || mr->region->null ||
	    mr->mapping.length)
		return false;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return false;
	if (flags & IBV_REREG_MR_CHANGE_PD && !pd)
		return false;
	return !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) || (addr && length);
}

/*
 * A change of the translation gives new keys. A change of PD or access keeps the keys, as with
 * adapters: programs have sent them to their peers. Input that no MR can be given is
 * IBV_REREG_MR_ERR_INPUT; a change that this MR, or the memory, does not allow is IBV_REREG_MR_ERR_CMD, as where the
 * kernel refuses it, with errno, which is EBUSY while a memory window is bound to the MR. Unlike
 * an adapter's the MR stays as it was then, too.
 */
int ibv_rereg_mr(struct ibv_mr *ibv_mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct vb_mr *mr = (struct vb_mr *)ibv_mr;
	struct aw_mr want;
	/* The kernel's checks: something is to be changed, and device memory stays where it is. */
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	int err = !flags || (moves && mr->dm) ? EINVAL : 0;

	if (!rereg_is_sound(mr, flags, pd, addr, length, access)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	want = (struct aw_mr){
		.access = mr->region->access,
		.iova = mr->region->iova,
		.len = mr->region->len,
		.host = mr->region->host,
		.pd = mr->region->pd,
	};
	if (flags & IBV_REREG_MR_CHANGE_PD)
		want.pd = vb_pd_key(pd);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS && !err) {
		err = access_check((unsigned int)access);
		want.access = (unsigned int)access & ACCESS_USED;
	}
	if (moves) {
		want.host = addr;
		want.len = length;
		want.iova = want.access & AW_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
	if (!err)
		err = mr_change(mr, &want, moves);
	if (err) {
		errno = err;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		vb_pd_get(pd);
		vb_pd_put(ibv_mr->pd);
		ibv_mr->pd = pd;
	}
	return 0;
}

/* EBUSY while a memory window is bound to the MR. An import is given back. */
int ibv_dereg_mr(struct ibv_mr *ibv_mr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_mr *mr = (struct vb_mr *)ibv_mr;

	if (mr->region) {
		if (!windows_forbid(mr->region))
			return vb_fail(EBUSY);
		region_remove(mr, mr->region);
		vb_context_count(ibv_mr->context, 0, -1, -bytes_of(mr->region));
		vb_limit_give(&mrs);
	}
	if (mr->dm)
		vb_dm_put(mr->dm);
	vb_dmabuf_unmap(&mr->mapping);
	vb_pd_put(ibv_mr->pd);
	free(mr);
	return 0;
}

static bool windows_forbid(struct aw_mr *region)
{
	return !(region->access & AW_ACCESS_MW_BIND) || aw_mw_forbid(region);
}

/*
 * When this returns no QP of pd sends from the region, which no look-up finds any more. In the
 * child of a fork no QP sends from the parent's regions.
 */
static void region_unlend(const struct vb_mr *mr, const struct aw_mr *region, const void *pd)
{
	if (!region->null && mr->generation == aw_fork_generation())
		aw_uqp_unlend(pd, region->host, region->len);
}

/* When this returns the memory is the program's again. */
static void region_remove(const struct vb_mr *mr, struct aw_mr *region)
{
	aw_flush_posts();
	aw_mr_remove(region);
	region_unlend(mr, region, region->pd);
}

/* The bytes that the statistics count: a null MR has no memory. */
static int64_t bytes_of(const struct aw_mr *region)
{
	return region->null ? 0 : (int64_t)region->len;
}

static int access_check(unsigned int access)
{
	unsigned int remote_writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (access & IBV_ACCESS_ON_DEMAND && !aw_mapping_can_tell())
		return EOPNOTSUPP;
	if (access & ~(unsigned int)(ACCESS_USED | ACCESS_IGNORED))
		return EINVAL;
	if (access & remote_writes && !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* EINVAL for memory that no flush of a peer's can make persistent. */
static int persistence_check(const struct aw_mr *want)
{
	if (!(want->access & AW_ACCESS_FLUSH_PERSISTENT))
		return 0;
	if (!(want->access & AW_ACCESS_ON_DEMAND) && aw_writeback_can(want->host, want->len))
		return 0;
	aw_log(AW_LOG_ERROR, "mr with IBV_ACCESS_FLUSH_PERSISTENT refused: %s",
	       want->access & AW_ACCESS_ON_DEMAND
		       ? "it must be without IBV_ACCESS_ON_DEMAND"
		       : "its memory must be a shared mapping (MAP_SHARED) of a file, and not of one on "
			 "tmpfs, ramfs or hugetlbfs");
	return EINVAL;
}

/* EINVAL when the addresses or the tagged offsets of an MR wrap. */
static int range_check(const struct aw_mr *want)
{
	if (want->len > UINTPTR_MAX - (uintptr_t)want->host)
		return EINVAL;
	if (want->len > UINT64_MAX - want->iova)
		return EINVAL;
	return persistence_check(want);
}

static void keys_show(struct vb_mr *mr)
{
	mr->ibv.addr = mr->region->host;
	mr->ibv.length = mr->region->len;
	mr->ibv.handle = mr->region->stag;
	mr->ibv.lkey = mr->region->stag;
	mr->ibv.rkey = mr->region->stag;
}

static int mr_create(struct ibv_pd *pd, const struct aw_mr *want, struct vb_mr **created)
{
	struct vb_mr *mr;
	int err = range_check(want);

	if (err)
		return err;
	if (!vb_limit_take(&mrs))
		return ENOMEM;
	mr = calloc(1, sizeof(*mr));
	err = ENOMEM;
	if (!mr)
		goto give;
	mr->generation = aw_fork_generation();
	mr->region = &mr->regions[0];
	*mr->region = *want;
	err = aw_mr_add(mr->region);
	if (err)
		goto free_mr;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	keys_show(mr);
	vb_pd_get(pd);
	vb_context_count(pd->context, 0, 1, bytes_of(want));
	*created = mr;
	return 0;

free_mr:
	free(mr);
give:
	vb_limit_give(&mrs);
	return err;
}

/* Registers the new region before the old one goes. */
static int mr_move(struct vb_mr *mr, const struct aw_mr *want)
{
	struct aw_mr *old = mr->region;
	struct aw_mr *fresh = &mr->regions[old == &mr->regions[0]];
	int err;

	*fresh = *want;
	err = aw_mr_add(fresh);
	if (err)
		return err;
	if (!windows_forbid(old)) {
		aw_mr_remove(fresh);
		return EBUSY;
	}
	region_remove(mr, old);
	vb_context_count(mr->ibv.context, 0, 0, (int64_t)(fresh->len - old->len));
	mr->region = fresh;
	keys_show(mr);
	return 0;
}

static int mr_change(struct vb_mr *mr, const struct aw_mr *want, bool moves)
{
	const void *pd = mr->region->pd;
	int err = range_check(want);

	if (err)
		return err;
	if (moves)
		return mr_move(mr, want);
	aw_flush_posts();
	err = aw_mr_change(mr->region, want, windows_forbid);
	if (!err)
		region_unlend(mr, mr->region, pd);
	return err;
}
