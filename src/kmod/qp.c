// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a QP: its memory, its number, its references.
#include "kmod/qp.h"

#include <linux/slab.h>

#define QPN_LIMIT XA_LIMIT(2, AWK_QP_MAX + 1)

static bool cap_is_valid(const struct ib_qp_cap *cap, bool srq)
{
	return cap->max_send_wr <= AWK_WR_MAX && (srq || cap->max_recv_wr <= AWK_WR_MAX) &&
	       cap->max_send_sge <= AWK_SGE_MAX && (srq || cap->max_recv_sge <= AWK_SGE_MAX) &&
	       cap->max_inline_data <= AWK_INLINE_MAX;
}

static int attr_check(const struct ib_qp_init_attr *attr)
{
	if (attr->create_flags || attr->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || !cap_is_valid(&attr->cap, attr->srq))
		return -EINVAL;
	return 0;
}

/* The core's capacity: every slot has room for an entry of the ring. */
static u32 core_capacity(const struct awk_qp *qp)
{
	return qp->user ? qp->sq.count : 2 * qp->sq.count;
}

static void core_init(struct awk_qp *qp)
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
	qp->asked = IB_QPS_RESET;
	qp->read_inv_told = false;
	qp->told = 0;
}

/*
 * Another thread may have reset the QP meanwhile, and a stream have begun on it: then nothing is
 * done.
 */
void awk_qp_reset(struct awk_qp *qp)
{
	awk_qp_lock(qp);
	if (qp->core.state == AW_QP_ERROR && !qp->stream.sock && !qp->stream.conn)
		core_init(qp);
	awk_qp_unlock(qp);
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

static void rings_destroy(struct awk_qp *qp)
{
	awk_recvs_destroy(&qp->recvs);
	awk_ring_destroy(&qp->sq);
}

static int memory_create(struct awk_qp *qp)
{
	size_t sq = aw_sq_mem_size(core_capacity(qp), AWK_SGE_MAX, AWK_INLINE_MAX);
	size_t entry = sizeof(struct aw_irq_entry) + sizeof(struct aw_orq_entry);

	qp->sq_mem = kvzalloc(sq ? sq : 1, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	qp->reads = kvcalloc(AWK_RD_MAX + 1, entry, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	return qp->sq_mem && qp->reads ? 0 : -ENOMEM;
}

static void memory_destroy(struct awk_qp *qp)
{
	kvfree(qp->reads);
	kvfree(qp->sq_mem);
}

static int qp_enlist(struct awk_qp *qp)
{
	struct awk_device *dev = qp->dev;
	u32 qpn;
	int err = xa_alloc_cyclic(&dev->qps, &qpn, qp, QPN_LIMIT, &dev->qpn_next, GFP_KERNEL);

	if (err >= 0)
		qp->base.qp_num = qpn;
	return err < 0 ? err : 0;
}

static int qp_answer(const struct awk_qp *qp, struct ib_udata *udata)
{
	struct siw_uresp_create_qp resp = {
		.qp_id = qp->base.qp_num,
		.num_sqe = qp->sq.count,
		.num_rqe = qp->recvs.ring.count,
		.sq_key = qp->sq.key,
		.rq_key = qp->recvs.ring.key,
	};

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void qp_init(struct awk_qp *qp, const struct ib_qp_init_attr *attr, bool user)
{
	qp->dev = awk_device_of(qp->base.device);
	qp->send_cq = awk_cq_of(attr->send_cq);
	qp->recv_cq = awk_cq_of(attr->recv_cq);
	qp->srq = attr->srq ? awk_srq_of(attr->srq) : NULL;
	qp->user = user;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->cap = attr->cap;
	kref_init(&qp->refs);
	init_completion(&qp->unused);
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->lock);
}

/* The granted limits are at least those that were asked for. */
static void cap_tell(struct awk_qp *qp, struct ib_qp_init_attr *attr)
{
	qp->cap.max_send_wr = qp->sq.count;
	qp->cap.max_recv_wr = qp->recvs.ring.count;
	qp->cap.max_send_sge = AWK_SGE_MAX;
	qp->cap.max_recv_sge = AWK_SGE_MAX;
	qp->cap.max_inline_data = AWK_INLINE_MAX;
	attr->cap = qp->cap;
}

int awk_qp_create(struct ib_qp *base, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct awk_qp *qp = awk_qp_of(base);
	int err = attr_check(attr);

	if (err)
		return err;
	qp_init(qp, attr, udata);
	err = rings_create(qp, awk_ucontext_of(udata));
	if (err)
		return err;
	err = memory_create(qp);
	if (err)
		goto free_memory;
	core_init(qp);
	/* RFC 5040's IDLE, as iWARP's devices and user space show a new QP. */
	qp->asked = IB_QPS_INIT;
	awk_stream_init(qp);
	err = qp_enlist(qp);
	if (err)
		goto free_memory;
	cap_tell(qp, attr);
	err = udata ? qp_answer(qp, udata) : 0;
	if (err)
		goto delist;
	return 0;

delist:
	awk_qp_destroy(base, NULL);
	return err;
free_memory:
	memory_destroy(qp);
	rings_destroy(qp);
	return err;
}

/*
 * The order matters: no look-up finds the QP; its stream is over; no thread holds it, so that its
 * work is not queued any more; its work does not run.
 */
int awk_qp_destroy(struct ib_qp *base, struct ib_udata *udata)
{
	struct awk_qp *qp = awk_qp_of(base);

	xa_erase(&qp->dev->qps, base->qp_num);
	awk_stream_end_wait(qp);
	awk_qp_put(qp);
	wait_for_completion(&qp->unused);
	awk_stream_destroy(qp);
	memory_destroy(qp);
	rings_destroy(qp);
	return 0;
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

/* awk_qp_get_ib has taken the reference. */
void awk_qp_add_ref(struct ib_qp *base)
{
}

void awk_qp_rem_ref(struct ib_qp *base)
{
	awk_qp_put(awk_qp_of(base));
}

/*
 * Only iw_cm calls this, in order to call iw_add_ref at once, once. A program names any number, and
 * another thread of it may destroy that QP between the two calls: so the reference is taken here.
 */
struct ib_qp *awk_qp_get_ib(struct ib_device *base, int qpn)
{
	struct awk_qp *qp = awk_qp_find(awk_device_of(base), qpn);

	return qp ? &qp->base : NULL;
}
