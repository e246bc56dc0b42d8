// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending datagrams: one sendmsg(2) each, directly from the program's memory. A WR waits only for
// room in the socket.
#include "base/log.h"
#include "core/span.h"
#include "net/base/io_now.h"
#include "net/base/probe.h"
#include "net/roce/qpn.h"
#include "net/ud/ud.h"
#include "net/ud/udsock.h"
#include "ring/lock.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define QKEY_OWN \
	0x80000000u /* set: the QP's own is sent (InfiniBand's rule for privileged Q_Keys) */

enum ud_outcome {
	SENT, /* or lost, which is not reported */
	WAITS,
	FAILED, /* the WR's memory may not be read */
};

bool aw_ud_may_post(const struct aw_uqp *qp)
{
	return qp->ud->state >= AW_UD_RTS;
}

static struct aw_ah *ah_of(const struct aw_swqe *wqe)
{
	return (struct aw_ah *)(uintptr_t)wqe->to;
}

/* Fills in the fields of a WQE that have another meaning on a stream. */
void aw_ud_fill(const struct aw_uqp *qp, struct aw_swqe *wqe, struct aw_ah *ah, uint32_t remote_qpn,
		uint32_t qkey)
{
	wqe->to = (uintptr_t)ah;
	wqe->stag = remote_qpn & QPN_MAX;
	wqe->compare_add = qkey & QKEY_OWN ? qp->ud->qkey : qkey;
}

void aw_ud_commit(struct aw_uqp *qp)
{
	struct aw_swqe *wqe = aw_sq_at(&qp->core.sq, qp->core.sq.tail);

	aw_probe_post(qp->qpn, wqe);
	if (qp->ud->state == AW_UD_ERR) {
		wqe->to = 0;
		aw_qp_post(&qp->core);
		return;
	}
	aw_ah_get(ah_of(wqe));
	aw_sq_commit(&qp->core.sq);
}

static void header(const struct aw_uqp *qp, const struct aw_swqe *wqe, struct ud_hdr *hdr)
{
	*hdr = (struct ud_hdr){
		.sl = ah_of(wqe)->sl & UD_SL_MAX,
		.dest_qpn = wqe->stag,
		.src_qpn = qp->qpn,
		.qkey = (uint32_t)wqe->compare_add,
		.imm = wqe->inv_or_imm,
	};
	if (wqe->op == AW_OP_SEND_IMM)
		hdr->flags |= UD_FLAG_IMM;
	if (wqe->flags & AW_WR_SOLICITED)
		hdr->flags |= UD_FLAG_SOLICITED;
}

/*
 * C10-93.1.1 of the InfiniBand specification: a message that is longer than the MTU is not sent,
 * which is no error. The first one is logged, because the program's author should know.
 */
static bool is_too_long(struct aw_uqp *qp, const struct aw_swqe *wqe) AW_REQUIRES(qp->lock)
{
	if (wqe->len <= qp->attr.ud_mtu)
		return false;
	if (!qp->ud->told_long)
		aw_log(AW_LOG_WARN,
		       "qp 0x%x: ud message of %u bytes not sent: the active mtu is %u (a ud message "
		       "is one datagram)",
		       qp->qpn, wqe->len, qp->attr.ud_mtu);
	qp->ud->told_long = true;
	return true;
}

/* Looks once for each QP: a program that exchanges LIDs has peers on other hosts, or has none. */
static void look_for_lid(struct aw_uqp *qp, const struct aw_swqe *wqe) AW_REQUIRES(qp->lock)
{
	if (qp->ud->looked || !ah_of(wqe)->by_lid)
		return;
	qp->ud->looked = true;
	if (!aw_qpn_is_of_host(wqe->stag))
		aw_log(AW_LOG_ERROR,
		       "qp 0x%x: a ud datagram is lost: no process of this host has qp 0x%x, and " AW_QPN_NO_GRH
		       "; ibv_ud_pingpong: -g 0 at both ends)",
		       qp->qpn, wqe->stag);
}

/* The bytes that the kernel reads for a span, which is not longer than a datagram. */
static struct iovec iovec_of(const struct aw_span *span)
{
	static const uint8_t zeros[UD_PAYLOAD_MAX];
	bool null = span->mr && span->mr->null;

	return (struct iovec){ null ? (void *)zeros : span->p, span->len };
}

static enum ud_outcome hand_over(struct aw_uqp *qp, const struct aw_swqe *wqe,
				 const struct aw_spans *spans) AW_REQUIRES(qp->lock)
{
	uint8_t octets[UD_HDR_LEN];
	struct iovec iov[1 + AW_SGE_MAX] = { { octets, sizeof(octets) } };
	struct ud_hdr hdr;
	int err;

	look_for_lid(qp, wqe);
	header(qp, wqe, &hdr);
	ud_build(&hdr, octets);
	for (unsigned int i = 0; i < spans->count; i++)
		iov[1 + i] = iovec_of(&spans->at[i]);
	err = aw_udsock_send(qp->ud->sock, ah_of(wqe), aw_qpn_port(wqe->stag), iov,
			     1 + spans->count);
	if (err == EAGAIN)
		return WAITS;
	if (err == EFAULT) /* registered, and unmapped since */
		return FAILED;
	if (err) {
		/* The datagram is lost, as on any network; the first loss is logged. */
		if (!qp->ud->told_lost)
			aw_log(AW_LOG_WARN, "qp 0x%x: a ud datagram was lost here: %s", qp->qpn,
			       strerror(err));
		qp->ud->told_lost = true;
	}
	aw_probe_transmit(qp->qpn, wqe->len);
	if (qp->core.count)
		aw_count_segment(&qp->core.count->out, true, wqe->len);
	return SENT;
}

static enum ud_outcome send_one(struct aw_uqp *qp, struct aw_swqe *wqe) AW_REQUIRES(qp->lock)
{
	const struct aw_stretch stretch = {
		.sge = wqe->sge,
		.sge_count = wqe->sge_count,
		.pd = qp->core.pd,
		.len = wqe->len,
	};
	struct aw_spans spans;
	enum ud_outcome outcome;

	if (is_too_long(qp, wqe))
		return SENT;
	if (wqe->flags & AW_WR_INLINE || wqe->len == 0)
		aw_spans_own(&spans, wqe->data, wqe->len);
	else if (aw_spans_hold(&qp->core, &stretch, &spans))
		return FAILED;
	outcome = hand_over(qp, wqe, &spans);
	aw_spans_put(&qp->core, &spans);
	return outcome;
}

static void complete(struct aw_uqp *qp, struct aw_swqe *wqe, enum aw_wc_status status)
	AW_REQUIRES(qp->lock)
{
	const struct aw_cqe cqe = {
		.wr_id = wqe->wr_id,
		.status = status,
		.op = (enum aw_op)wqe->op,
		.flags = status == AW_WC_SUCCESS ? 0 : AW_WC_SOLICITED,
	};

	if (qp->core.tells_each)
		qp->core.ops->wr_completed(qp->core.ctx, wqe, status);
	aw_ud_drop_handle(wqe);
	qp->core.sq.head++;
	qp->core.sq.next = qp->core.sq.head;
	if (status != AW_WC_SUCCESS || qp->core.sig_all || wqe->flags & AW_WR_SIGNALED)
		qp->core.ops->complete(qp->core.ctx, AW_SQ, &cqe);
}

/* False: the WR waits. */
static bool settle(struct aw_uqp *qp, struct aw_swqe *wqe) AW_REQUIRES(qp->lock)
{
	if (qp->ud->state == AW_UD_SQE) {
		complete(qp, wqe, AW_WC_WR_FLUSH_ERR);
		return true;
	}
	switch (send_one(qp, wqe)) {
	case SENT:
		complete(qp, wqe, AW_WC_SUCCESS);
		return true;
	case FAILED:
		qp->ud->state = AW_UD_SQE;
		complete(qp, wqe, AW_WC_LOC_PROT_ERR);
		return true;
	case WAITS:
		return false;
	}
	__builtin_unreachable();
}

void aw_ud_transmit(struct aw_uqp *qp)
{
	const struct aw_sq *sq = &qp->core.sq;

	if (qp->ud->waits || (qp->ud->state != AW_UD_RTS && qp->ud->state != AW_UD_SQE))
		return;
	while (aw_sq_count(sq) > 0)
		if (!settle(qp, aw_sq_at(sq, sq->head))) {
			qp->ud->waits = true;
			aw_udsock_want_room(qp->ud->sock);
			return;
		}
}

void aw_ud_send_end(struct aw_uqp *qp)
{
	aw_ud_transmit(qp);
	aw_ud_settle(qp);
	aw_uqp_unlock(qp);
}

void aw_ud_on_room(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	qp->ud->waits = false;
	aw_ud_transmit(qp);
	aw_ud_settle(qp);
	aw_uqp_unlock(qp);
}
