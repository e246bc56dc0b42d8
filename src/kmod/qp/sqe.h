// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A WR as it lies in a send queue's ring, and as the core wants it.
//
// A program's ring is written by the program at any time: each entry is copied once and then
// checked. A kernel consumer's post_send takes the ring's lock alone and leaves the rest to a
// worker, so that it may be called from any context.
#ifndef KMOD_QP_SQE_H
#define KMOD_QP_SQE_H

#include "core/types.h"

#include <rdma/ib_verbs.h>
#include <rdma/siw-abi.h>

/* struct aw_swqe's mark: the two halves of a Read with invalidate. */
enum awk_mark {
	AWK_MARK_NONE,
	AWK_MARK_READ_HALF,
	AWK_MARK_INV_HALF,
};

/*
 * Writes an ib_send_wr of the kernel as an entry, but for its flags: they are returned, without
 * VALID. Or -EINVAL.
 */
int awk_sqe_from_wr(struct siw_sqe *sqe, const struct ib_send_wr *wr, u32 sge_max) AW_MUST_USE;

/*
 * Writes an entry, of which sqe is our copy, as a WR of the core. Nothing in it is trusted: a
 * malformed entry becomes a WR that the core fails with LOC_QP_OP_ERR. user: operations that only
 * the kernel has are malformed.
 */
void awk_sqe_to_wqe(const struct siw_sqe *sqe, bool user, u32 sge_max, struct aw_swqe *wqe);

/* Writes the second WR of a Read with invalidate. */
void awk_sqe_to_inv(const struct siw_sqe *sqe, struct aw_swqe *wqe);

#endif
