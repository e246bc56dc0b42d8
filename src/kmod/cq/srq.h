// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared receive queues.
#ifndef KMOD_CQ_SRQ_H
#define KMOD_CQ_SRQ_H

#include "kmod/base/device.h"
#include "kmod/cq/recvs.h"

struct awk_srq {
	struct ib_srq base;
	struct awk_recvs recvs;
	u32 limit; /* guarded by recvs.lock; 0: no event is wanted */
};

static inline struct awk_srq *awk_srq_of(struct ib_srq *base)
{
	return container_of(base, struct awk_srq, base);
}

/* Takes a receive. *limit_due: fewer are left than the program's limit. */
bool awk_srq_take(struct awk_srq *srq, struct aw_rwqe *recv, bool *limit_due);

/* The functions of struct ib_device_ops. */
int awk_srq_create(struct ib_srq *base, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int awk_srq_modify(struct ib_srq *base, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int awk_srq_query(struct ib_srq *base, struct ib_srq_attr *attr);
int awk_srq_destroy(struct ib_srq *base, struct ib_udata *udata);
int awk_srq_post(struct ib_srq *base, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);

#endif
