// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives that were posted, of a QP or an SRQ: a ring of struct siw_rqe that a program fills by
// itself, or the kernel by awk_recvs_post.
#ifndef KMOD_CQ_RECVS_H
#define KMOD_CQ_RECVS_H

#include "core/types.h"
#include "kmod/base/ring.h"

struct awk_recvs {
	struct awk_ring ring;
	bool user;
	u32 sge_max;
	spinlock_t lock; /* irqsave, inside of a QP's lock; guards what follows */
	u32 put;
	u32 get;
};

int awk_recvs_create(struct awk_recvs *recvs, struct ib_ucontext *uctx, u32 count, u32 sge_max);
void awk_recvs_destroy(struct awk_recvs *recvs);
/* For the kernel's rings. 0, or -ENOMEM, -EINVAL and *bad. */
int awk_recvs_post(struct awk_recvs *recvs, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);
/*
 * Takes the oldest receive; false when there is none. Malformed entries have no room for any byte.
 */
bool awk_recvs_take(struct awk_recvs *recvs, struct aw_rwqe *recv);
/* True when fewer than limit are left. The caller holds the lock. */
bool awk_recvs_below(struct awk_recvs *recvs, u32 limit);

#endif
