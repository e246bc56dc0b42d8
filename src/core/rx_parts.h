// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kinds of inbound messages, one function for each. Every one checks all of the segment before
// it places an octet or moves a counter; a Terminate reports the error that it returns.
#ifndef CORE_RX_PARTS_H
#define CORE_RX_PARTS_H

#include "core/rnr_wait.h"
#include "core/span.h"
#include "core/xrc.h"

struct aw_rx_seg {
	struct ddp_hdr hdr;
	enum rdmap_opcode op;
	const uint8_t *data; /* payload behind the DDP header */
	uint32_t len;
};

/*
 * AW_OK when the peer may do this to the MR (NULL: none) of the STag that it named. Errors as
 * aw_mr_check's, and AW_E_RDMAP_ACCESS when the QP grants that right to no peer.
 */
static inline enum aw_error aw_rx_check(const struct aw_qp *qp, const struct aw_mr *mr,
					uint32_t access, uint64_t to, uint64_t len)
{
	enum aw_error err = aw_mr_check(mr, aw_xrc_pd(qp, mr), qp, access, to, len);

	return !err && (access & ~qp->remote_access) ? AW_E_RDMAP_ACCESS : err;
}

/* Takes the next receive: one that a dropped message has left, else the oldest of the queue. */
static inline bool aw_rx_recv_take(struct aw_qp *qp)
{
	bool taken = qp->rx_send.kept || qp->ops->recv_take(qp->ctx, &qp->rx_send.recv);

	qp->rx_send.kept = false;
	if (taken)
		aw_rnr_wait_found(qp);
	return taken;
}

/*
 * Takes the receive of a message that begins, into rx_send.recv. AW_OK, AW_E_DDP_NO_BUFFER, or an
 * error of the message. srqn: of its header.
 */
static inline enum aw_error aw_xrc_recv_take(struct aw_qp *qp, uint32_t srqn)
{
	enum aw_error err;

	switch (qp->xrc) {
	case AW_XRC_NONE:
		break;
	case AW_XRC_INITIATOR:
		return AW_E_RDMAP_OPCODE;
	case AW_XRC_TARGET:
		err = qp->ops->xrc_take(qp->ctx, srqn, &qp->rx_send.recv, &qp->recv_pd);
		if (!err)
			aw_rnr_wait_found(qp);
		return err;
	}
	return aw_rx_recv_take(qp) ? AW_OK : AW_E_DDP_NO_BUFFER;
}

/* AW_OK for a message that is whole in one segment and has these octets; else its error. */
static inline enum aw_error aw_rx_check_size(const struct aw_rx_seg *seg, uint32_t size)
{
	if (seg->len > size)
		return AW_E_DDP_TOO_LONG;
	return seg->len == size && seg->hdr.last ? AW_OK : AW_E_RDMAP_OP_UNSPECIFIED;
}

enum aw_error aw_rx_write(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_send(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_read_request(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_read_response(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_immediate(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_atomic_request(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_atomic_response(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_flush_request(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
enum aw_error aw_rx_flush_response(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;
/* AW_OK leaves the QP in ERROR. */
enum aw_error aw_rx_terminate(struct aw_qp *qp, const struct aw_rx_seg *seg) AW_MUST_USE;

/*
 * UC (rx_drop.c). is_rest: the segment belongs to a message of which one was dropped before. drop:
 * drops the segment that err was found on, and what follows of its message. AW_OK, or err where UC
 * drops no message for it. drop_immediate: an Immediate. drop_half: half a message,
 * whose rest does not come.
 */
bool aw_rx_is_rest(const struct aw_qp *qp, const struct aw_rx_seg *seg);
enum aw_error aw_rx_drop(struct aw_qp *qp, const struct aw_rx_seg *seg,
			 enum aw_error err) AW_MUST_USE;
void aw_rx_drop_immediate(struct aw_qp *qp);
void aw_rx_drop_half(struct aw_qp *qp);

/* Executes an inbound atomic, unless that was done. An error is why the peer may not, or not any more. */
enum aw_error aw_irq_execute_atomic(struct aw_qp *qp, struct aw_irq_entry *entry) AW_MUST_USE;
/* The rights that a peer needs for a Flush: enum aw_access. */
uint32_t aw_flush_rights(const struct rdmap_flush_req *req);
/* Holds the memory that a Flush names, as the peer may flush it. On an error none is held. */
enum aw_error aw_flush_hold(const struct aw_qp *qp, const struct rdmap_flush_req *req,
			    struct aw_span *span) AW_MUST_USE;

/* Places octets that the oldest Read or atomic of ours asked for, behind those it has. */
enum aw_error aw_rx_sink_place(struct aw_qp *qp, const uint8_t *data, uint32_t len) AW_MUST_USE;
/* Called when the oldest Read or atomic of ours is complete. */
void aw_rx_sink_done(struct aw_qp *qp);

#endif
