// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One ULPDU: DDP's checks (RFC 5041 7.1), RDMAP's (RFC 5040 7.2), then the message's own; and the
// Terminate that reports the error (RFC 5040 4.8, figures 9 and 10).
#include "core/rx.h"

#include "core/machine.h"
#include "core/refusal.h"
#include "core/rx_parts.h"
#include "wire/rnr.h"

/* The offset of the next segment of the Send that is being received, or dropped. */
static uint32_t send_offset(const struct aw_qp *qp)
{
	if (qp->rx_drop.send)
		return qp->rx_drop.offset;
	return qp->rx_send.active ? qp->rx_send.placed : 0;
}

/* Checks QN, MSN and MO (RFC 5041 7.1). TCP keeps order, so exactly one MSN and one MO are valid. */
static enum aw_error check_untagged(const struct aw_qp *qp, const struct ddp_hdr *hdr)
{
	uint32_t qn_max = qp->stream.extensions ? DDP_QN_ATOMIC : DDP_QN_TERMINATE;
	uint32_t mo_due;

	if (hdr->qn > qn_max)
		return AW_E_DDP_QN;
	if (hdr->msn != qp->rx_msn[hdr->qn])
		return AW_E_DDP_MSN_RANGE;
	mo_due = hdr->qn == DDP_QN_SEND ? send_offset(qp) : 0;
	return hdr->mo == mo_due ? AW_OK : AW_E_DDP_MO;
}

static enum aw_error parse(const struct aw_qp *qp, const uint8_t *head, size_t len,
			   struct aw_rx_seg *seg)
{
	enum aw_error err = ddp_get(head, len, &seg->hdr);

	if (!err && !seg->hdr.tagged)
		err = check_untagged(qp, &seg->hdr);
	if (!err)
		err = rdmap_ctrl_get(seg->hdr.ulp_ctrl, seg->hdr.tagged, seg->hdr.qn, &seg->op);
	if (err)
		return err;
	seg->len = (uint32_t)(len - ddp_hdr_len(seg->hdr.tagged));
	return AW_OK;
}

static enum aw_error deliver(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	switch (seg->op) {
	case RDMAP_WRITE:
		return aw_rx_write(qp, seg);
	case RDMAP_READ_REQ:
		return aw_rx_read_request(qp, seg);
	case RDMAP_READ_RESP:
		return aw_rx_read_response(qp, seg);
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		return aw_rx_send(qp, seg);
	case RDMAP_TERMINATE:
		return aw_rx_terminate(qp, seg);
	case RDMAP_IMM:
	case RDMAP_IMM_SE:
		return aw_rx_immediate(qp, seg);
	case RDMAP_ATOMIC_REQ:
		return aw_rx_atomic_request(qp, seg);
	case RDMAP_ATOMIC_RESP:
		return aw_rx_atomic_response(qp, seg);
	case RDMAP_FLUSH_REQ:
		return aw_rx_flush_request(qp, seg);
	case RDMAP_FLUSH_RESP:
		return aw_rx_flush_response(qp, seg);
	}
	return AW_E_RDMAP_OPCODE;
}

/* RFC 5040 figure 10: all but local and MPA errors come with the DDP header. */
static bool is_about_segment(enum aw_error err)
{
	return aw_error_layer(err) == 1 || (aw_error_layer(err) == 0 && aw_error_type(err) != 0);
}

/* RFC 5040 figure 10: a protection error of a Read Request comes with its RDMAP header. */
static bool is_about_read(enum aw_error err, const uint8_t *head, size_t len)
{
	enum rdmap_opcode op;

	return aw_error_layer(err) == 0 && aw_error_type(err) == 1 &&
	       len == DDP_UNTAGGED_LEN + RDMAP_READ_REQ_LEN && !(head[0] & DDP_CTRL_TAGGED) &&
	       rdmap_ctrl_get(head[1], false, DDP_QN_READ, &op) == AW_OK && op == RDMAP_READ_REQ;
}

/*
 * RFC 5040 7.1 rule 2: the Terminate names the message that an error was found on, even when this
 * end is at fault; but figure 10 leaves a local catastrophic error without a header.
 */
static enum aw_error as_reported(enum aw_error err)
{
	return err == AW_E_LOCAL_CATASTROPHIC ? AW_E_RDMAP_STREAM_CATASTROPHIC : err;
}

static void report(struct aw_qp *qp, const struct aw_rx_seg *seg, const uint8_t *head, size_t len,
		   enum aw_error err)
{
	struct term_msg msg = { .error = as_reported(err) };

	aw_refusal_note(qp, seg, err);
	if (is_about_segment(msg.error) && len > 0 &&
	    len >= ddp_hdr_len(head[0] & DDP_CTRL_TAGGED)) {
		msg.has_seg_len = msg.has_ddp = true;
		msg.seg_len = (uint16_t)len;
		msg.ddp = head;
		msg.ddp_len = (uint8_t)ddp_hdr_len(head[0] & DDP_CTRL_TAGGED);
		msg.has_rdmap = is_about_read(msg.error, head, len);
		msg.rdmap = head + DDP_UNTAGGED_LEN;
	}
	aw_machine_terminate(qp, err, &msg);
}

/*
 * RFC 5041 7.1 has an error for a message without a buffer, but names no moment at which that is
 * decided: a driver may hold the stream until the program posts. The segment has changed nothing so
 * far.
 */
static bool waits_for_receive(const struct aw_qp *qp, const struct aw_rx_seg *seg,
			      enum aw_error err)
{
	return err == AW_E_DDP_NO_BUFFER && seg->hdr.qn == DDP_QN_SEND && qp->rnr_holds;
}

/* Acts on a segment; UC drops it where a reliable stream would end (core/rx_drop.c). */
static enum aw_error take(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err;

	if (!qp->unreliable)
		return deliver(qp, seg);
	if (aw_rx_is_rest(qp, seg))
		return aw_rx_drop(qp, seg, qp->rx_drop.last);
	err = deliver(qp, seg);
	if (!err && seg->op == RDMAP_WRITE)
		qp->rx_drop.wrote = false;
	return err && !waits_for_receive(qp, seg, err) ? aw_rx_drop(qp, seg, err) : err;
}

static bool has_payload(const struct aw_rx_seg *seg)
{
	return seg->hdr.tagged || seg->hdr.qn == DDP_QN_SEND;
}

/* True when the ULPDU is a message of wire/rnr.h. */
static bool take_rnr(struct aw_qp *qp, const uint8_t *head, size_t len)
{
	enum rnr_kind kind;

	if (!rnr_get(head, len, &kind))
		return false;
	qp->peer_not_ready = kind == RNR_NOT_READY;
	return true;
}

/* Something waits: true for a request that comes behind it. */
static bool has_to_wait(const struct aw_qp *qp, const uint8_t *head, size_t len)
{
	return !qp->stash.replays && !aw_stash_passes(head, len);
}

/* True for a message that the peer's program has posted: no RTR (RFC 6581 9.2), no Read of core/ack.h. */
static bool is_of_program(const struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	switch (seg->op) {
	case RDMAP_WRITE:
		return seg->len > 0;
	case RDMAP_READ_REQ:
		return seg->len == RDMAP_READ_REQ_LEN && rdmap_read_req_get(seg->data).size > 0;
	case RDMAP_SEND:
		return seg->len > 0 || !qp->rtr_awaited;
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
	case RDMAP_IMM:
	case RDMAP_IMM_SE:
	case RDMAP_ATOMIC_REQ:
	case RDMAP_FLUSH_REQ:
		return true;
	case RDMAP_READ_RESP:
	case RDMAP_TERMINATE:
	case RDMAP_ATOMIC_RESP:
	case RDMAP_FLUSH_RESP:
		return false;
	}
	return false;
}

enum aw_error aw_rx_ulpdu(struct aw_qp *qp, const uint8_t *ulpdu, size_t len)
{
	return aw_rx_ulpdu_lent(qp, ulpdu, ulpdu, len);
}

enum aw_error aw_rx_ulpdu_lent(struct aw_qp *qp, const uint8_t *head, const uint8_t *ulpdu,
			       size_t len)
{
	struct aw_rx_seg seg;
	enum aw_error err;

	/* RFC 5041 7.1: after an error further segments are dropped silently. */
	if (!aw_machine_runs(qp))
		return AW_OK;
	qp->peer_ready = true;
	if (qp->stream.moves && move_get(head, len, &qp->move))
		return AW_OK;
	if (len == RNR_LEN && qp->keeps && take_rnr(qp, head, len))
		return AW_OK;
	if (!aw_stash_is_empty(&qp->stash) && has_to_wait(qp, head, len))
		return AW_E_DDP_NO_BUFFER;
	err = parse(qp, head, len, &seg);
	if (!err) {
		seg.data = ulpdu + ddp_hdr_len(seg.hdr.tagged);
		qp->peer_began = qp->peer_began || is_of_program(qp, &seg);
		err = take(qp, &seg);
	}
	if (!err && qp->count)
		aw_count_segment(&qp->count->in, seg.hdr.last, has_payload(&seg) ? seg.len : 0);
	qp->rtr_awaited = false;
	if (err && !waits_for_receive(qp, &seg, err))
		report(qp, &seg, head, len, err);
	return err;
}

void aw_rx_stashed(struct aw_qp *qp)
{
	const uint8_t *ulpdu;
	size_t len;

	while ((ulpdu = aw_stash_front(qp, &len))) {
		enum aw_error err;

		qp->stash.replays = true;
		err = aw_rx_ulpdu(qp, ulpdu, len);
		qp->stash.replays = false;
		/* After an error the stash is empty. */
		if (!aw_machine_runs(qp) || err == AW_E_DDP_NO_BUFFER)
			return;
		aw_stash_pop(qp);
	}
}
