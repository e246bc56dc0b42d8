// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving datagrams. A datagram takes a receive only when all of it will be placed there. One
// that does not fit is dropped, and its sender, which may be anybody, is not notified.
#include "base/log.h"
#include "core/span.h"
#include "net/base/probe.h"
#include "net/ud/ud.h"
#include "ring/lock.h"

static _Atomic uint32_t qkey_violations;

uint32_t aw_ud_qkey_violations(void)
{
	return atomic_load_explicit(&qkey_violations, memory_order_relaxed);
}

/*
 * A wrong Q_Key comes from a stranger or from a program's mistake. The port's counter counts it,
 * and the QP's first one is logged.
 */
static bool is_admitted(struct aw_uqp *qp, const struct ud_hdr *hdr) AW_REQUIRES(qp->lock)
{
	struct aw_ud *ud = qp->ud;

	if (ud->state < AW_UD_RTR || ud->state == AW_UD_ERR)
		return false;
	if (ud->qkey == hdr->qkey)
		return true;
	atomic_fetch_add_explicit(&qkey_violations, 1, memory_order_relaxed);
	if (!ud->told_key)
		aw_log(AW_LOG_INFO, "qp 0x%x: datagram of qp 0x%x dropped: its q_key is not ours",
		       qp->qpn, hdr->src_qpn);
	ud->told_key = true;
	return false;
}

/* Takes the next receive if it has room for len bytes; a receive that has not stays posted. */
static bool ud_recv_take(struct aw_uqp *qp, uint32_t len, struct aw_rwqe *recv)
	AW_REQUIRES(qp->lock)
{
	bool is_short = false;
	bool taken = qp->attr.srq ? aw_srq_take_fit(qp->attr.srq, len, recv, &is_short)
				  : aw_rq_take_fit(&qp->rq, len, recv, &is_short);

	if (is_short && !qp->ud->told_short)
		aw_log(AW_LOG_WARN,
		       "qp 0x%x: datagram dropped: the receive is shorter than its %u bytes (of "
		       "which the first %u are a header)",
		       qp->qpn, len, UD_GRH_LEN);
	qp->ud->told_short |= is_short;
	return taken;
}

static enum aw_wc_status place(struct aw_uqp *qp, const struct aw_rwqe *recv,
			       const struct aw_ud_arrival *arrival) AW_REQUIRES(qp->lock)
{
	const struct aw_stretch stretch = {
		.sge = recv->sge,
		.sge_count = recv->sge_count,
		.pd = qp->core.recv_pd,
		.access = AW_ACCESS_LOCAL_WRITE,
		.len = UD_GRH_LEN + arrival->len,
	};

	return aw_spans_place(&qp->core, &stretch, arrival->body) ? AW_WC_SUCCESS
								  : AW_WC_LOC_PROT_ERR;
}

/*
 * RoCE v2 has no service level. In the field that holds it on InfiniBand, NVIDIA's adapters tell
 * which IP header the first 40 bytes hold, and UCX reads it there to find the destination.
 */
enum {
	L3_IPV6 = 1,
	L3_IPV4 = 2,
};

static void complete(struct aw_uqp *qp, const struct aw_rwqe *recv, enum aw_wc_status status,
		     const struct aw_ud_arrival *arrival) AW_REQUIRES(qp->lock)
{
	const struct ud_hdr *hdr = &arrival->hdr;
	struct aw_cqe cqe = {
		.wr_id = recv->wr_id,
		.status = status,
		.op = AW_OP_SEND,
		.byte_len = UD_GRH_LEN + arrival->len,
		.inv_or_imm = hdr->imm,
		.src_qpn = hdr->src_qpn,
		.sl = gid_is_ipv4(arrival->route->dst) ? L3_IPV4 : L3_IPV6,
		.flags = AW_WC_GRH,
	};

	/* Where the destination is an address of one link alone, vendor_err, which says nothing beside success, tells which link. */
	if (status == AW_WC_SUCCESS && gid_is_link_local(arrival->route->dst))
		cqe.vendor_err = arrival->route->ifindex;
	if (hdr->flags & UD_FLAG_IMM) {
		cqe.op = AW_OP_SEND_IMM;
		cqe.flags |= AW_WC_WITH_IMM;
	}
	if (hdr->flags & UD_FLAG_SOLICITED || status != AW_WC_SUCCESS)
		cqe.flags |= AW_WC_SOLICITED;
	qp->core.ops->complete(qp->core.ctx, AW_RQ, &cqe);
}

void aw_ud_receive(struct aw_uqp *qp, const struct aw_ud_arrival *arrival)
{
	enum aw_wc_status status = AW_WC_SUCCESS;
	struct aw_rwqe recv;

	aw_lock(&qp->lock);
	if (is_admitted(qp, &arrival->hdr) && ud_recv_take(qp, UD_GRH_LEN + arrival->len, &recv)) {
		aw_probe_receive(qp->qpn, arrival->len);
		status = place(qp, &recv, arrival);
		complete(qp, &recv, status, arrival);
		if (qp->core.count)
			aw_count_segment(&qp->core.count->in, true, arrival->len);
	}
	/* The receive names memory that it may not use: as on an adapter, the QP fails. */
	if (status != AW_WC_SUCCESS)
		aw_ud_fail(qp);
	aw_ud_settle(qp);
	aw_uqp_unlock(qp);
}
