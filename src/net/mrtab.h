// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory regions of this process: STags from the system's random source, look-up without a
// lock, deregistration that waits for a placement under way. Pins nothing.
#ifndef NET_MRTAB_H
#define NET_MRTAB_H

#include "core/mr.h"

#define AW_MR_MAX (1u << 20)

/*
 * Registers *mr (all but stag filled in) and sets its stag. 0, EFAULT (not mapped, or its first
 * or last page cannot be accessed as its rights ask), EINVAL (addresses or tagged offsets wrap),
 * ENOMEM (more than AW_MR_MAX), EIO (no randomness). len may be 0. The caller keeps mr's memory
 * until aw_mr_remove returns.
 */
int aw_mr_add(struct aw_mr *mr);
/* The STag is dead at once; returns when nobody holds mr any more. The caller must not hold it. */
void aw_mr_remove(struct aw_mr *mr);

/* As struct aw_ops.mr_get and mr_put. */
const struct aw_mr *aw_mr_get(uint32_t stag);
void aw_mr_put(const struct aw_mr *mr);

/*
 * Makes the STag unusable though the MR object lives on, until aw_mr_remove. Only what belongs to
 * one QP can be invalidated (RFC 5040 5.4: a type 2 memory window); errors as in core/ops.h.
 */
enum aw_error aw_mr_invalidate(uint32_t stag, const void *pd, const void *qp);

#endif
