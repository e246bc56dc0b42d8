// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of an address handle.
#include "net/ud/ud_ah.h"

#include <stdlib.h>

struct aw_ah *aw_ah_create(const struct aw_ah *from)
{
	struct aw_ah *ah = malloc(sizeof(*ah));

	if (!ah)
		return NULL;
	*ah = *from;
	atomic_init(&ah->refs, 1);
	return ah;
}

struct aw_ah *aw_ah_get(struct aw_ah *ah)
{
	atomic_fetch_add_explicit(&ah->refs, 1, memory_order_relaxed);
	return ah;
}

void aw_ah_put(struct aw_ah *ah)
{
	/*
	 * Release: this thread's reads of it are over; acquire: so are those of all threads that
	 * put it before.
	 */
	if (atomic_fetch_sub_explicit(&ah->refs, 1, memory_order_acq_rel) == 1)
		free(ah);
}
