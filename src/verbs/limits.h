// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number and size of objects, which ibv_query_device reports and every create enforces. The
// limits of one WR or one queue are the core's.
#ifndef VERBS_LIMITS_H
#define VERBS_LIMITS_H

#include "core/types.h"
#include "net/cq/cq.h"
#include "net/mr/mrtab.h"
#include "net/qp/uqp.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_QP_MAX 65536
#define VB_CQ_MAX 65536
#define VB_SRQ_MAX 65536
#define VB_PD_MAX 65536
#define VB_XRCD_MAX 65536
#define VB_AH_MAX 1048576
#define VB_COUNTER_MAX 65536
#define VB_COMP_VECTORS 1
#define VB_PORT 1 /* the only port */
/*
 * The port has no link of its own, so its speed is nominal: 4 lanes of 25 Gb/s. Programs choose by
 * it how they move bytes. UCX copies what it sends into pieces of 8 KiB on a port that seems slower
 * than memcpy.
 */
#define VB_PORT_WIDTH 2 /* 4X */
#define VB_PORT_SPEED 32 /* 25 Gb/s a lane */
#define VB_PORT_RATE 1000 /* of all lanes, in units of 100 Mb/s */
#define VB_LID 0 /* an Ethernet port has none */
#define VB_GID_MAX 256 /* ibv_global_route.sgid_index is 8 bits wide */

_Static_assert(VB_QP_MAX <= AW_QP_MAX, "the driver holds as many QPs as we promise");

/* Objects of one kind in this process. */
struct vb_limit {
	_Atomic uint32_t count;
	uint32_t max;
};

/* False when the maximum is reached. Relaxed: the count guards no other memory. */
static inline bool vb_limit_take(struct vb_limit *limit)
{
	if (atomic_fetch_add_explicit(&limit->count, 1, memory_order_relaxed) < limit->max)
		return true;
	atomic_fetch_sub_explicit(&limit->count, 1, memory_order_relaxed);
	return false;
}

static inline void vb_limit_give(struct vb_limit *limit)
{
	atomic_fetch_sub_explicit(&limit->count, 1, memory_order_relaxed);
}

#endif
