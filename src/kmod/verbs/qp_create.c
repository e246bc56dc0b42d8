// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs made and destroyed, for programs and for the kernel, and iw_cm's references of them.
#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

static int attr_check(const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (attr->create_flags || attr->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || cap->max_send_wr > AWK_WR_MAX ||
	    cap->max_send_sge > AWK_SGE_MAX || cap->max_inline_data > AWK_INLINE_MAX)
		return -EINVAL;
	if (!attr->srq && (cap->max_recv_wr > AWK_WR_MAX || cap->max_recv_sge > AWK_SGE_MAX))
		return -EINVAL;
	return 0;
}

/* The granted limits are at least those that were asked for. */
static void cap_grant(struct awk_qp *qp, struct ib_qp_init_attr *attr)
{
	qp->cap.max_send_wr = qp->sq.count;
	qp->cap.max_recv_wr = qp->recvs.ring.count;
	qp->cap.max_send_sge = AWK_SGE_MAX;
	qp->cap.max_recv_sge = AWK_SGE_MAX;
	qp->cap.max_inline_data = AWK_INLINE_MAX;
	attr->cap = qp->cap;
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

int awk_qp_create(struct ib_qp *base, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct awk_qp *qp = awk_qp_of(base);
	int err = attr_check(attr);

	if (err)
		return err;
	err = awk_qp_init(qp, attr, udata);
	if (err)
		return err;
	err = awk_stream_create(qp);
	if (err)
		goto fini;
	err = awk_qp_enlist(qp);
	if (err)
		goto destroy_stream;
	cap_grant(qp, attr);
	err = udata ? qp_answer(qp, udata) : 0;
	if (err)
		awk_qp_destroy(base, NULL); /* a program may have found it already */
	return err;

destroy_stream:
	awk_stream_destroy(qp);
fini:
	awk_qp_fini(qp);
	return err;
}

/*
 * The order matters: no look-up finds the QP; its stream is over; no thread holds it, so that its
 * work is not queued any more; its work does not run.
 */
int awk_qp_destroy(struct ib_qp *base, struct ib_udata *udata)
{
	struct awk_qp *qp = awk_qp_of(base);

	awk_qp_delist(qp);
	awk_stream_end_wait(qp);
	awk_qp_put_wait(qp);
	awk_stream_destroy(qp);
	awk_qp_fini(qp);
	return 0;
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
