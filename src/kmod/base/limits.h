// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The most that the device offers.
#ifndef KMOD_BASE_LIMITS_H
#define KMOD_BASE_LIMITS_H

#include "core/types.h"

#include <linux/build_bug.h>
#include <rdma/siw-abi.h>

#define AWK_WR_MAX 8192 /* a queue; a Read with invalidate takes two of the core's */
#define AWK_SGE_MAX SIW_MAX_SGE
#define AWK_INLINE_MAX ((u32)SIW_MAX_INLINE)
#define AWK_CQE_MAX (1u << 20)
#define AWK_SRQ_WR_MAX 8192
#define AWK_FAST_PAGES_MAX 512 /* pages of a fast-registered MR */
#define AWK_QP_MAX (1u << 16)
#define AWK_MR_MAX (1u << 20)
#define AWK_OBJECT_MAX (1u << 16) /* PDs, CQs, SRQs */
#define AWK_RD_MAX AW_RD_MAX /* IRD and ORD */

static_assert(2 * AWK_WR_MAX <= AW_WR_MAX);
static_assert(AWK_SGE_MAX <= AW_SGE_MAX && SIW_MAX_INLINE <= AW_INLINE_MAX);

#endif
