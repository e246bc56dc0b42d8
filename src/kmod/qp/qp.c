// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a QP: its memory, its number, its references.
#include "kmod/qp/qp.h"

#include <linux/slab.h>

#define QPN_LIMIT XA_LIMIT(2, AWK_QP_MAX + 1)

/* The core's capacity: every slot has room for an entry of the ring. */
static u32 core_capacity(const struct awk_qp *qp)
{
	return qp->user ? qp->sq.count : 2 * qp->sq.count;
}

void awk_qp_core_init(struct awk_qp *qp)
{
	struct aw_irq_entry *irq = qp->reads;
	const struct aw_qp_mem mem = {
		.srq = qp->srq,
		.sq = qp->sq_mem,
		.sq_capacity = core_capacity(qp),
		.sge_max = AWK_SGE_MAX,
		.inline_max = AWK_INLINE_MAX,
		.irq = irq,
		.irq_capacity = AWK_RD_MAX + 1,
		.orq = (struct aw_orq_entry *)(irq + AWK_RD_MAX + 1),
		.orq_capacity = AWK_RD_MAX + 1,
	};

	aw_qp_init(&qp->core, &mem, &awk_ops, qp, qp->base.pd);
	if (qp->srq)
		qp->core.recv_pd = qp->srq->base.pd;
	qp->core.copies = true;
	qp->core.sig_all = qp->sig_all;
	qp->access = 0;
	qp->idle_state = IB_QPS_RESET;
	qp->read_inv_failed = false;
	qp->delivered = 0;
}

/* libsiw maps both rings, but that of receives only without an SRQ: neither may be empty. */
static int rings_create(struct awk_qp *qp, struct ib_ucontext *uctx)
{
	u32 send_wr = max(qp->cap.max_send_wr, 1u), recv_wr = max(qp->cap.max_recv_wr, 1u);
	int err = awk_ring_create(&qp->sq, uctx, roundup_pow_of_two(send_wr),
				  sizeof(struct siw_sqe), 0);

	if (err)
		return err;
	err = awk_recvs_create(&qp->recvs, uctx, qp->srq ? 0 : recv_wr, AWK_SGE_MAX);
	if (err)
		awk_ring_destroy(&qp->sq);
	return err;
}

static int memory_create(struct awk_qp *qp)
{
	size_t sq = aw_sq_mem_size(core_capacity(qp), AWK_SGE_MAX, AWK_INLINE_MAX);
	size_t entry = sizeof(struct aw_irq_entry) + sizeof(struct aw_orq_entry);

	qp->sq_mem = kvzalloc(sq ? sq : 1, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	qp->reads = kvcalloc(AWK_RD_MAX + 1, entry, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return qp->sq_mem && qp->reads ? 0 : -ENOMEM;
}

int awk_qp_init(struct awk_qp *qp, const struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	int err;

	qp->dev = awk_device_of(qp->base.device);
	qp->send_cq = awk_cq_of(attr->send_cq);
	qp->recv_cq = awk_cq_of(attr->recv_cq);
	qp->srq = attr->srq ? awk_srq_of(attr->srq) : NULL;
	qp->user = udata;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->cap = attr->cap;
	kref_init(&qp->refs);
	init_completion(&qp->unused);
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->lock);
	err = rings_create(qp, awk_ucontext_of(udata));
	if (err)
		return err;
	err = memory_create(qp);
	if (err) {
		awk_qp_fini(qp);
		return err;
	}
	awk_qp_core_init(qp);
	/* RFC 5040's IDLE, as iWARP's devices and user space show a new QP. */
	qp->idle_state = IB_QPS_INIT;
	return 0;
}

void awk_qp_fini(struct awk_qp *qp)
{
	kvfree(qp->reads);
	kvfree(qp->sq_mem);
	awk_recvs_destroy(&qp->recvs);
	awk_ring_destroy(&qp->sq);
}

int awk_qp_enlist(struct awk_qp *qp)
{
	struct awk_device *dev = qp->dev;
	u32 qpn;
	int err = xa_alloc_cyclic(&dev->qps, &qpn, qp, QPN_LIMIT, &dev->qpn_next, GFP_KERNEL);

	if (err >= 0)
		qp->base.qp_num = qpn;
	return err < 0 ? err : 0;
}

void awk_qp_delist(struct awk_qp *qp)
{
	xa_erase(&qp->dev->qps, qp->base.qp_num);
}

struct awk_qp *awk_qp_find(struct awk_device *dev, u32 qpn)
{
	struct awk_qp *qp;

	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp && !kref_get_unless_zero(&qp->refs))
		qp = NULL;
	xa_unlock(&dev->qps);
	return qp;
}

static void qp_release(struct kref *refs)
{
	complete(&container_of(refs, struct awk_qp, refs)->unused);
}

void awk_qp_put(struct awk_qp *qp)
{
	kref_put(&qp->refs, qp_release);
}

void awk_qp_put_wait(struct awk_qp *qp)
{
	awk_qp_put(qp);
	wait_for_completion(&qp->unused);
}
