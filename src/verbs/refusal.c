// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/refusal.h"

#include "anywarp/check.h"

#include <stddef.h>

/* Release pairs with the acquire of the thread that calls it. */
static anywarp_refused *_Atomic watcher;

_Static_assert((int)ANYWARP_REFUSAL_RKEY == (int)AW_REFUSAL_STAG &&
		       (int)ANYWARP_REFUSAL_PD == (int)AW_REFUSAL_PD &&
		       (int)ANYWARP_REFUSAL_WINDOW == (int)AW_REFUSAL_WINDOW &&
		       (int)ANYWARP_REFUSAL_MR_RIGHTS == (int)AW_REFUSAL_MR_RIGHTS &&
		       (int)ANYWARP_REFUSAL_QP_RIGHTS == (int)AW_REFUSAL_QP_RIGHTS &&
		       (int)ANYWARP_REFUSAL_BOUNDS == (int)AW_REFUSAL_BOUNDS &&
		       (int)ANYWARP_REFUSAL_UNMAPPED == (int)AW_REFUSAL_UNMAPPED &&
		       (int)ANYWARP_REFUSAL_UNALIGNED == (int)AW_REFUSAL_UNALIGNED,
	       "the causes are the core's");

void avb_refusal_watch(anywarp_refused *refused)
{
	atomic_store_explicit(&watcher, refused, memory_order_release);
}

/* The stream is over, so nothing changes the refusal; a reset waits until the events are delivered. */
void vb_refusal_tell(struct vb_qp *qp)
{
	anywarp_refused *refused = atomic_load_explicit(&watcher, memory_order_acquire);
	const struct aw_access_refusal *refusal = &qp->uqp->core.refusal;

	if (!refused || refusal->cause == AW_REFUSAL_NONE)
		return;
	refused(&(struct anywarp_refusal){ .qp = &qp->ibv.qp_base,
					   .cause = (enum anywarp_refusal_cause)refusal->cause,
					   .access = refusal->access,
					   .rkey = refusal->stag,
					   .addr = refusal->to,
					   .length = refusal->len,
					   .start = refusal->start,
					   .size = refusal->size });
}
