// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A UD QP: it has the queues, CQs and number of any QP (net/qp/uqp.h), but its own states, and
// datagrams in place of a stream. One WR is one UDP datagram; it completes when the kernel has
// taken it. An arriving datagram takes a receive or is dropped without notice. docs/roce-ud.md.
//
// The core of a UD QP knows only IDLE and ERROR, which flushes. A CQ keeps the sockets of its UD
// QPs apart from those of its RC QPs (net/cq/cq_sock.c). The progress thread reads a socket while
// nobody polls; it stops listening while pollers come, checks every millisecond whether they still
// do, and listens again at once when a CQ is armed.
#ifndef NET_UD_H
#define NET_UD_H

#include "net/qp/ud_state.h"
#include "net/qp/uqp.h"
#include "net/ud/ud_ah.h"

/* A datagram that has come for a QP: net/ud/udsock.c has read and parsed it. */
struct aw_ud_arrival {
	struct ud_hdr hdr;
	const struct ud_route *route;
	const uint8_t *body; /* UD_GRH_LEN bytes that describe its route, then the payload */
	uint32_t len; /* bytes of payload */
};

/* A UD QP is created with this kind, in the roce persona alone. */
extern const struct aw_uqp_kind aw_ud_kind;

/*
 * Posting. may_post: this state has a send queue. fill: the parts of a WR that an RC one does not
 * have. commit, send_end: in place of aw_uqp_send_commit and aw_uqp_send_end.
 */
bool aw_ud_may_post(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_ud_fill(const struct aw_uqp *qp, struct aw_swqe *wqe, struct aw_ah *ah, uint32_t remote_qpn,
		uint32_t qkey) AW_REQUIRES(qp->lock);
void aw_ud_commit(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_ud_send_end(struct aw_uqp *qp) AW_RELEASE(qp->lock);
void aw_ud_transmit(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Called when the socket has room again, with no lock held. */
void aw_ud_on_room(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/* Moves the QP; the caller checks that the move is allowed. No lock held. */
void aw_ud_move(struct aw_uqp *qp, enum aw_ud_state state) AW_EXCLUDES(qp->lock);
enum aw_ud_state aw_ud_state(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);
void aw_ud_set_qkey(struct aw_uqp *qp, uint32_t qkey) AW_EXCLUDES(qp->lock);

/* Give back the address handle of a WR that is done, and those of all that are posted and not sent. */
void aw_ud_drop_handle(struct aw_swqe *wqe);
void aw_ud_drop_handles(struct aw_uqp *qp);

/* Moves the QP to ERR; settle: where a CQ of it has overflowed. */
void aw_ud_fail(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_ud_settle(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* For net/ud/udsock.c: a datagram has come for qp. */
void aw_ud_receive(struct aw_uqp *qp, const struct aw_ud_arrival *arrival) AW_EXCLUDES(qp->lock);

/* Datagrams with a wrong Q_Key that this process has received. */
uint32_t aw_ud_qkey_violations(void);

#endif
