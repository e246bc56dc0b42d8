// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Filling in a send WQE, for ibv_post_send and the ibv_wr_* calls.
#ifndef VERBS_SEND_H
#define VERBS_SEND_H

#include "net/ud/ud.h"
#include "ring/lock.h"
#include "verbs/qp.h"

#include <stddef.h>

/*
 * Begins an empty WQE of this kind. flags: those of enum ibv_send_flags that the core knows are
 * kept.
 */
void vb_send_begin(struct aw_swqe *wqe, enum aw_op op, uint64_t wr_id, unsigned int flags);

/* Fills in the destination of a datagram. 0, or EINVAL: no address handle, or another PD's. */
int vb_send_address(const struct vb_qp *qp, struct aw_swqe *wqe, struct ibv_ah *ah,
		    uint32_t remote_qpn, uint32_t remote_qkey) AW_REQUIRES(qp->uqp->lock);

/* XRC: the SRQ of the peer that a Send or a Write with immediate data is for. */
static inline void vb_send_srqn(const struct vb_qp *qp, struct aw_swqe *wqe, uint32_t srqn)
{
	if (qp->uqp->attr.xrc &&
	    (wqe->op == AW_OP_SEND || wqe->op == AW_OP_SEND_IMM || wqe->op == AW_OP_WRITE_IMM))
		wqe->swap = srqn;
}

/*
 * 0, or EINVAL: a UD QP has only Sends, a UC QP neither Reads nor atomics; or EOPNOTSUPP: a Send with Invalidate of XRC; or immediate
 * data, an atomic, an atomic write or a flush, and the peer did not agree to such at start-up, which is logged once a QP. A QP in
 * ERROR takes all, to flush
 * it.
 */
int vb_send_agreed(struct vb_qp *qp, enum aw_op op) AW_REQUIRES(qp->uqp->lock);

/*
 * 0, or EINVAL: more SGEs than the QP takes, more bytes than a message has, not the 8 of an
 * atomic's result or an atomic write, or a WQE with inline data.
 */
int vb_send_sges(const struct vb_qp *qp, struct aw_swqe *wqe, const struct ibv_sge *sge,
		 size_t count);

/*
 * Copies bytes behind those already inline. 0, or EINVAL: more than the QP takes inline, or a WQE
 * that sends no data or has SGEs.
 */
int vb_send_inline(const struct vb_qp *qp, struct aw_swqe *wqe, const void *bytes, size_t len);

/*
 * Begin and end a call that posts: it waits for a thread between ibv_wr_start and ibv_wr_complete, whose
 * WRs lie behind the send queue's tail. Unchecked: a QP without ibv_wr_start leaves the post_lock alone.
 */
static inline void vb_post_begin(struct vb_qp *qp)
	AW_ACQUIRE(qp->post_lock, qp->uqp->lock) AW_UNCHECKED
{
	if (qp->ibv.wr_start)
		aw_lock(&qp->post_lock);
	aw_uqp_send_begin(qp->uqp);
}

/* Commit the WQE, and send, as the QP's type needs it. */
static inline void vb_send_commit(const struct vb_qp *qp) AW_REQUIRES(qp->uqp->lock)
{
	if (qp->uqp->ud)
		aw_ud_commit(qp->uqp);
	else
		aw_uqp_send_commit(qp->uqp);
}

/* Transmits, unless the posts are held, and releases the lock. Unchecked: the pointer cannot say that its target does so. */
static inline void vb_send_end(const struct vb_qp *qp) AW_RELEASE(qp->uqp->lock) AW_UNCHECKED
{
	qp->send_end(qp->uqp);
}

static inline void vb_post_end(struct vb_qp *qp)
	AW_RELEASE(qp->post_lock, qp->uqp->lock) AW_UNCHECKED
{
	vb_send_end(qp);
	if (qp->ibv.wr_start)
		aw_unlock(&qp->post_lock);
}

#endif
