// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory. Here it is the program's own memory, but counted, and reached only through its
// calls and in whole words, so that a program that would fail on an adapter fails here too.
#include "verbs/dm.h"

#include "net/base/io_now.h"
#include "verbs/context.h"
#include "verbs/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 4,
	ALIGN_LOG_MIN = 6,
	ALIGN_LOG_MAX = 12,
};

static _Atomic size_t bytes_used;

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host, size_t length);
static int copy_from(void *host, struct ibv_dm *ibv, uint64_t offset, size_t length);

static bool bytes_take(size_t length)
{
	size_t used = atomic_load_explicit(&bytes_used, memory_order_relaxed);

	/* Relaxed: the count guards no other memory. */
	do {
		if (length > VB_DM_MAX - used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&bytes_used, &used, used + length, memory_order_relaxed, memory_order_relaxed));
	return true;
}

static void bytes_give(size_t length)
{
	atomic_fetch_sub_explicit(&bytes_used, length, memory_order_relaxed);
}

static void show(struct vb_dm *dm, struct ibv_context *context)
{
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->ibv.handle = dm->base->shared.handle;
	vb_context_get(context);
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	uint32_t log = attr->log_align_req > ALIGN_LOG_MIN ? attr->log_align_req : ALIGN_LOG_MIN;
	size_t align, room;
	struct vb_dm *dm;

	if (attr->comp_mask || !attr->length || attr->log_align_req > ALIGN_LOG_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (!bytes_take(attr->length))
		goto none;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		goto give;
	align = (size_t)1 << log;
	room = (attr->length + align - 1) & ~(align - 1);
	dm->memory = aligned_alloc(align, room);
	if (!dm->memory)
		goto free_dm;
	memset(dm->memory, 0, room);
	dm->length = attr->length;
	dm->base = dm;
	vb_share_add(&dm->shared, VB_KIND_DM, context);
	show(dm, context);
	return &dm->ibv;

free_dm:
	free(dm);
give:
	bytes_give(attr->length);
none:
	errno = ENOMEM;
	return NULL;
}

/* EBUSY while an MR or an import uses the memory. An import is given back. */
int vb_free_dm(struct ibv_dm *ibv)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_dm *dm = vb_dm_of(ibv);
	struct ibv_context *context = ibv->context;

	if (dm->base != dm) {
		vb_dm_put(dm->base);
	} else {
		if (!vb_share_remove(&dm->shared))
			return vb_fail(EBUSY);
		bytes_give(dm->length);
		free(dm->memory);
	}
	free(dm);
	vb_context_put(context);
	return 0;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct vb_shared *shared = vb_share_take(context, VB_KIND_DM, dm_handle);
	struct vb_dm *dm;

	if (!shared)
		return NULL;
	struct vb_dm *base = (void *)((char *)shared - offsetof(struct vb_dm, shared));

	dm = calloc(1, sizeof(*dm));
	if (!dm) {
		vb_dm_put(base);
		errno = ENOMEM;
		return NULL;
	}
	dm->base = base;
	show(dm, context);
	return &dm->ibv;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	vb_free_dm(dm);
}

static int words_check(const struct vb_dm *base, uint64_t offset, size_t length)
{
	if (offset % WORD || length % WORD)
		return EINVAL;
	return offset > base->length || length > base->length - offset ? EINVAL : 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *host, size_t length)
{
	struct vb_dm *base = vb_dm_of(ibv)->base;
	int err = words_check(base, offset, length);

	if (!err)
		memcpy(base->memory + offset, host, length);
	return vb_fail(err);
}

static int copy_from(void *host, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	const struct vb_dm *base = vb_dm_of(ibv)->base;
	int err = words_check(base, offset, length);

	if (!err)
		memcpy(host, base->memory + offset, length);
	return vb_fail(err);
}
