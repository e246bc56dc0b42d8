// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion queues, of programs and of the kernel: one ring of struct siw_cqe.
#ifndef KMOD_CQ_CQ_H
#define KMOD_CQ_CQ_H

#include "core/types.h"
#include "kmod/base/device.h"
#include "kmod/base/ring.h"
#include "kmod/cq/compat.h"

struct awk_cq {
	struct ib_cq base;
	struct awk_ring ring;
	struct siw_cq_ctrl *ctrl; /* behind the ring; a program arms the CQ by it */
	spinlock_t lock; /* irqsave, innermost; guards what follows and the ring's entries */
	u32 put;
	u32 get; /* a kernel's */
	bool overflowed; /* for good: its QPs go to error; also read without the lock */
};

static inline struct awk_cq *awk_cq_of(struct ib_cq *base)
{
	return container_of(base, struct awk_cq, base);
}

/* The result of a push. */
enum awk_cq_news {
	AWK_CQ_QUIET,
	AWK_CQ_NOTIFY, /* the CQ was armed: its handler is due */
	AWK_CQ_OVERFLOW, /* a CQE found no room, for the first time */
};

enum awk_cq_news awk_cq_push(struct awk_cq *cq, const struct siw_cqe *cqe);

/* The functions of struct ib_device_ops. */
int awk_cq_create(struct ib_cq *base, const struct ib_cq_init_attr *attr, awk_cq_request *request);
int awk_cq_destroy(struct ib_cq *base, struct ib_udata *udata);
int awk_cq_poll(struct ib_cq *base, int count, struct ib_wc *wc);
int awk_cq_req_notify(struct ib_cq *base, enum ib_cq_notify_flags flags);

#endif
