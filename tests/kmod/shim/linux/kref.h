// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_KREF_H
#define KSHIM_KREF_H

#include <linux/refcount.h>

struct kref {
	refcount_t refcount;
};

static inline void kref_init(struct kref *kref)
{
	refcount_set(&kref->refcount, 1);
}

static inline void kref_get(struct kref *kref)
{
	refcount_inc(&kref->refcount);
}

static inline bool kref_get_unless_zero(struct kref *kref)
{
	return refcount_inc_not_zero(&kref->refcount);
}

static inline void kref_put(struct kref *kref, void (*release)(struct kref *kref))
{
	if (refcount_dec_and_test(&kref->refcount))
		release(kref);
}

#endif
