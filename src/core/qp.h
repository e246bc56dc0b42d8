// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP machine: one RDMAP stream over one MPA connection, from start-up's end to the close.
// The driver holds its QP lock around every call. The core owns no socket, clock, lock or heap:
// octets come in by aw_rx_octets, go out by aw_tx_next, and everything else leaves through aw_ops.
// States and arrows: machine.c. RFC 5040 6 and 7, RFC 5041 6, RFC 5044 7.2.
//
// state      meaning                                     next
// IDLE       no stream; receives may be posted, WRs too  RTS by aw_qp_start; ERROR
//            if posts_early
// RTS        messages are exchanged                      CLOSING by a close of either end;
//                                                        TERMINATE by an error; ERROR; IDLE by
//                                                        aw_qp_recall if the stream ended unused
// CLOSING    what was posted goes out, then FIN; the     TERMINATE; ERROR
//            peer's FIN is awaited
// TERMINATE  the Terminate message goes out, then FIN    ERROR
// ERROR      everything was flushed in order; a post is  IDLE by aw_qp_init (a reset)
//            flushed at once
#ifndef CORE_QP_H
#define CORE_QP_H

#include "core/count.h"
#include "core/ops.h"
#include "core/queue.h"
#include "core/refusal.h"
#include "core/startup.h"
#include "core/stash.h"
#include "wire/ddp.h"
#include "wire/move.h"
#include "wire/rdmap.h"
#include "wire/term.h"

enum aw_qp_state {
	AW_QP_IDLE, /* no stream yet; receives may be posted */
	AW_QP_RTS, /* full operation */
	AW_QP_CLOSING, /* either end has begun a graceful close; posted WRs still go out */
	/* This end has found an error, and its Terminate is due or on its way. A received Terminate leads to ERROR at once. */
	AW_QP_TERMINATE,
	AW_QP_ERROR, /* over: everything was flushed, posts flush at once */
};

/*
 * Extended reliable connections (docs/extensions.md): the messages of an initiator name an SRQ of the
 * target's XRC domain, and nothing goes the other way but answers.
 */
enum aw_xrc {
	AW_XRC_NONE,
	AW_XRC_INITIATOR, /* has a send queue alone */
	AW_XRC_TARGET, /* has no queue; its pd is one that no MR has */
};

/* The requests that are answered, in their order. */
enum aw_rdma_request {
	AW_REQUEST_READ,
	AW_REQUEST_ATOMIC, /* RFC 7306, and the Atomic Write of docs/extensions.md */
	AW_REQUEST_FLUSH, /* likewise */
};

/* How far an inbound atomic or Flush is; a Read stays DUE. */
enum aw_irq_state {
	AW_IRQ_DUE,
	AW_IRQ_RUNNING, /* a Flush: the driver writes the memory back */
	AW_IRQ_EXECUTED, /* once and for all; its response may still have to wait */
	AW_IRQ_FAILED, /* a Flush: the memory was not written back */
};

/* An inbound request being answered. */
struct aw_irq_entry {
	enum aw_rdma_request kind;
	enum aw_irq_state state;
	uint64_t original; /* an atomic that is executed: the value before */
	union {
		struct rdmap_read_req req; /* advanced as segments go out */
		struct rdmap_atomic_req atomic_req;
		struct rdmap_flush_req flush_req;
	};
};

/* An outstanding Read, atomic or Flush of ours. */
struct aw_orq_entry {
	uint32_t sq_index;
	uint32_t sink_stag; /* valid for this one Read only; the Request Identifier of others */
	uint32_t received; /* octets placed so far */
	bool rtr; /* no WR belongs to it: the RTR (RFC 6581 9.2), or the Read of core/ack.h */
	enum aw_rdma_request kind;
	/* stream position: once it is answered the peer has processed what is before */
	uint64_t ack_pos;
};

/* Memory that the driver gives for the QP's life. */
struct aw_qp_mem {
	bool srq; /* receives come from an SRQ: a flush must not drain it */
	void *sq; /* aw_sq_mem_size() octets, 16-aligned */
	uint32_t sq_capacity;
	uint32_t sge_max;
	uint32_t inline_max;
	struct aw_irq_entry *irq;
	uint32_t irq_capacity; /* the most IRD this QP may agree to */
	struct aw_orq_entry *orq;
	uint32_t orq_capacity;
};

/* The parameters of the stream, fixed by aw_qp_start. */
struct aw_stream {
	bool initiator;
	bool crc; /* as start-up agreed on it for both directions */
	bool crc_ended_tx; /* set by the driver: the octets of this direction reach no wire any more */
	bool crc_ended_rx;
	bool markers_tx;
	bool markers_rx;
	bool p2p;
	uint8_t rtr; /* as in struct aw_mpa_result */
	uint32_t ird;
	uint32_t ord;
	uint32_t emss; /* octets of one TCP segment: an FPDU is no larger, unless large_fpdus */
	uint32_t stag_seed; /* random: where the one-shot sink STags start */
	bool extensions; /* as in struct aw_mpa_result */
	bool large_fpdus; /* sends FPDUs longer than a TCP segment, but not with markers */
	uint32_t fpdu_max; /* of a large FPDU, set by the driver; 0: whole segments, up to MULPDU */
	bool placement; /* as in struct aw_mpa_result */
	/* the peer may send the messages of wire/move.h; a driver may end that */
	bool moves;
};

static inline bool aw_stream_crc_out(const struct aw_stream *stream)
{
	return stream->crc && !stream->crc_ended_tx;
}

static inline bool aw_stream_crc_in(const struct aw_stream *stream)
{
	return stream->crc && !stream->crc_ended_rx;
}

/* The parameters that a start-up agreed on; the driver adds emss and stag_seed. */
struct aw_stream aw_stream_agreed(const struct aw_mpa_result *result, bool initiator);

/* A Send being received. */
struct aw_rx_send {
	bool active;
	bool kept; /* recv was taken for a message that was dropped, and is the next one's */
	enum rdmap_opcode op; /* of its first segment, and so of all */
	enum aw_wc_status status; /* the status that its receive completes with after a failure */
	uint32_t placed;
	struct aw_rwqe recv;
};

/* The state that an Immediate depends on (docs/extensions.md). */
struct aw_rx_imm {
	bool held; /* data belongs to the Send that must follow */
	uint32_t data;
	bool write_ended; /* write_len is of a whole Write, which no Immediate has completed yet */
	uint64_t write_len; /* octets of the last Write, so far */
};

/* UC: what this end could not take, and drops (core/rx_drop.c). */
struct aw_rx_drop {
	bool send; /* the segments of a Send are dropped until its last one */
	bool write; /* likewise those of a Write */
	bool wrote; /* the last Write was dropped, so that no Immediate completes it */
	uint32_t offset; /* of the next segment of that Send */
	uint32_t count; /* messages so far; it wraps */
	enum aw_error last; /* why the last one was */
};

struct aw_qp {
	/* fixed after init */
	const struct aw_ops *ops;
	void *ctx;
	const void *pd;
	/* set by the driver after init: the SRQ's, which need not be the QP's; XRC: that of rx_send.recv */
	const void *recv_pd;
	enum aw_xrc xrc; /* set by the driver after init */
	bool srq;
	bool sig_all; /* set by the driver after init: every WR is signalled */
	bool tells_each; /* set by the driver at any time: it is told of every WR that completes */
	bool copies; /* set by the driver at any time: no payload is lent to it */
	bool posts_early; /* set by the driver after init: WRs posted in IDLE wait for the start */
	bool unreliable; /* set by the driver after init: the QP is one of UC (core/rx_drop.c) */
	bool acks; /* set by the driver before the start: see core/ack.h */
	bool keeps; /* set by the driver before the start, where the peer agreed: see core/stash.h */
	struct aw_qp_count *count; /* set by the driver at any time; NULL: nobody counts */
	bool sq_halts; /* set by the driver at any time: WRs that are not begun wait */
	/* set by the driver at any time: a message without a receive waits for one */
	bool rnr_holds;
	bool rnr_over; /* it does not, because the time of one is over: core/rnr_wait.h */
	/* set by the driver at any time: the rights of any peer (enum aw_access) */
	uint32_t remote_access;
	uint32_t irq_capacity;
	uint32_t orq_capacity;
	struct aw_irq_entry *irq;
	struct aw_orq_entry *orq;
	struct aw_stream stream; /* ird and ord cut to the capacities */
	uint32_t mulpdu;

	/* the machine */
	enum aw_qp_state state;
	enum aw_error error; /* why TERMINATE or ERROR; AW_OK for a clean close */
	enum aw_error peer_error; /* the error of a received Terminate */
	bool peer_mirrored; /* its sender has the bits reversed; for the log */
	bool peer_ready; /* a valid FPDU arrived: a responder may transmit */
	bool peer_began; /* a message of its program's, no RTR and no acknowledgement, did */
	bool peer_closed; /* FIN seen */
	bool local_closed; /* aw_qp_close was called */

	/* transmit */
	struct aw_sq sq;
	bool tx_begun; /* a part of the WR at sq.next is in FPDUs */
	bool tx_used; /* a WR of the program is, or was: local operations need no stream */
	uint32_t tx_offset; /* octets of its payload that are */
	uint32_t tx_msn[4]; /* by QN */
	uint64_t tx_pos; /* octets given out by aw_tx_next */
	uint64_t sent_pos; /* octets that TCP took */
	uint64_t acked_pos; /* acks: octets that the peer has processed, as far as is known */
	uint64_t asked_pos; /* acks: octets that a request under way will acknowledge */
	uint64_t need_pos; /* acks: octets that WRs need acknowledged */
	uint64_t gone_pos; /* acks: end of the last WR that completed, maybe on TCP's word alone */
	bool ack_asked; /* acks: a Read of no octets is under way */
	bool rtr_due;
	bool term_due;
	uint8_t term_len;
	uint8_t term[TERM_MAX];
	uint64_t flush_pos; /* TERMINATE: no WR is flushed while octets before this may be lent */
	bool sq_failed; /* a WR completed in error: no later one is a success */
	bool flushed; /* every WR was flushed; later ones are flushed at once */
	bool serve_irq_next; /* turns between Read Responses and the SQ */

	/* receive */
	uint64_t rx_pos; /* stream position of the next unread octet */
	/* octets on the wire of a verified FPDU that waits, in the driver's buffer, for a receive or for room in the stash; or 0 */
	size_t rx_held;
	struct aw_stash stash; /* keeps: what waits, and does not stop what is behind it */
	bool not_ready,
		not_ready_told; /* keeps: the peer is to hold requests back; it was told so */
	bool peer_not_ready; /* keeps: this end is */
	uint32_t rx_msn[4];
	/* the message that was received last, for the driver, which sets its kind to MOVE_MSG_NONE */
	struct move_msg move;
	bool rtr_awaited; /* the first message may be a Send that is an RTR */
	struct aw_rx_send rx_send;
	struct aw_rx_imm rx_imm;
	struct aw_rx_drop rx_drop;
	struct aw_access_refusal refusal; /* why the peer's request was refused */
	uint32_t irq_head, irq_count;
	uint32_t orq_head, orq_count;
	uint32_t next_sink_stag;
};

/* The driver owns mem, which must outlive the QP. sq_capacity and capacities may be 0. */
void aw_qp_init(struct aw_qp *qp, const struct aw_qp_mem *mem, const struct aw_ops *ops, void *ctx,
		const void *pd);

/* IDLE to RTS: start-up is done and the next octet in each direction is the stream's first. */
void aw_qp_start(struct aw_qp *qp, const struct aw_stream *stream);

/* Sets TCP's segment size, which FPDUs have from here on (RFC 5044 3). Called after start. */
void aw_qp_set_emss(struct aw_qp *qp, uint32_t emss);

/*
 * Posts the WR that was filled in at aw_sq_reserve(&qp->sq). Allowed in every state but IDLE, and
 * in IDLE with posts_early. In ERROR and TERMINATE, and after aw_qp_close, the WR completes with a
 * flush error once all older WRs have completed. aw_tx_next transmits it.
 */
void aw_qp_post(struct aw_qp *qp);

/*
 * Called when receives were posted to the QP's own RQ: if all were flushed before, they are at
 * once.
 */
void aw_qp_recv_posted(struct aw_qp *qp);

/*
 * Starts a graceful close: posted WRs go out, and the peer is served as before; later posts are
 * flushed. Any state. CLOSING may last as long as the peer likes: the driver needs a timer.
 */
void aw_qp_close(struct aw_qp *qp);

/*
 * Called when the peer's FIN was read behind the last octet given to aw_rx_octets; rest: octets
 * left over.
 */
void aw_qp_peer_closed(struct aw_qp *qp, size_t rest);

/*
 * Called when the connection is gone (reset, lost, aborted, closed both ways): flushes everything.
 * To ERROR. The driver transmits no octet any more, even of those that were given out. why: AW_OK
 * after a clean close.
 */
void aw_qp_abort(struct aw_qp *qp, enum aw_error why);

/*
 * Called when TCP cannot read the next octets of a payload that was lent to it, and may have the
 * head of its FPDU: the WR fails, all others are flushed. To ERROR, since no Terminate can follow
 * half an FPDU.
 */
void aw_qp_payload_gone(struct aw_qp *qp);

/*
 * Called when the peer does not answer any more: the oldest WR fails with status, which is no
 * success, and all others are flushed. To ERROR.
 */
void aw_qp_give_up(struct aw_qp *qp, enum aw_wc_status status);

/*
 * Called when the peer's TCP has all that was sent, and no more answers will come: no WR waits for
 * its acknowledgement.
 */
void aw_qp_taken(struct aw_qp *qp);

/*
 * RTS to IDLE: the stream ended before either end had begun a message of the ULP, or is one of UC
 * (then after aw_tx_drop). Posted WRs wait for another stream.
 */
void aw_qp_recall(struct aw_qp *qp);

/*
 * A local failure that the peer should be notified of: to TERMINATE with its message due. Without a
 * stream, or after its end, there is no peer to notify: IDLE goes to ERROR, the other states stay.
 */
void aw_qp_terminate(struct aw_qp *qp, enum aw_error why);

/*
 * TERMINATE: drops those octets of the answers before the Terminate (core/tx.c) that are in no FPDU
 * yet. True when there were some.
 */
bool aw_qp_drop_answers(struct aw_qp *qp);

/*
 * True when nothing more will be transmitted and all given out was sent: in CLOSING the driver
 * sends FIN; in TERMINATE it sends FIN and gives the stream up (core/ending.h). In
 * CLOSING our own outstanding Reads are awaited too, unless the peer closed already: some peers
 * stop answering at a FIN. Called after aw_tx_next has returned NONE.
 */
bool aw_qp_tx_finished(const struct aw_qp *qp);

/* True while a message of the peer waits for its receive. */
static inline bool aw_qp_has_waiting(const struct aw_qp *qp)
{
	return qp->rx_held > 0 || !aw_stash_is_empty(&qp->stash);
}

/* Called when the driver has written back what struct aw_ops.write_back told it to, or could not. */
void aw_qp_written_back(struct aw_qp *qp, bool written);

/* True when every WR that has begun has completed: what SQ_DRAINED says of a queue that halts. */
static inline bool aw_qp_is_drained(const struct aw_qp *qp)
{
	return qp->sq.head == qp->sq.next && !qp->tx_begun;
}

#endif
