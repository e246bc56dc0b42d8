// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts of references, which may not come back from 0.
#ifndef KSHIM_REFCOUNT_H
#define KSHIM_REFCOUNT_H

#include <linux/types.h>

typedef struct {
	int count;
} refcount_t;

#define REFCOUNT_SANE 1000000

static inline void refcount_set(refcount_t *refs, int count)
{
	refs->count = count;
}

static inline int refcount_read(const refcount_t *refs)
{
	return refs->count;
}

static inline bool refcount_inc_not_zero(refcount_t *refs)
{
	kshim_yield(false);
	KSHIM_CHECK(refs->count >= 0 && refs->count < REFCOUNT_SANE);
	if (refs->count == 0)
		return false;
	refs->count++;
	return true;
}

static inline void refcount_inc(refcount_t *refs)
{
	KSHIM_CHECK(refs->count > 0 && refs->count < REFCOUNT_SANE);
	refs->count++;
}

static inline bool refcount_dec_and_test(refcount_t *refs)
{
	kshim_yield(false);
	KSHIM_CHECK(refs->count > 0 && refs->count < REFCOUNT_SANE);
	return --refs->count == 0;
}

#endif
