// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive: an FPDU is placed from TCP's buffers. Where it cannot be, and when there are markers, the core needs flat bytes
// that it may write to; they go through a stage. The core checks RFC 5044 4.4's CRC before it places a byte.
#include "core/rx.h"
#include "core/machine.h"

#include "kmod/stream/io.h"
#include "kmod/stream/pieces.h"
#include "kmod/stream/stage.h"
#include "kmod/tcp/compat.h"
#include "wire/octets.h"

#include <net/tcp.h>

#define RX_BYTES (256 * 1024) /* bytes per turn, so that other work has its turn */

/* One call of tcp_read_sock. */
struct rx_turn {
	struct awk_qp *qp;
	struct sock *sk;
	size_t done; /* bytes that the queue has next and that were taken, with those of an skb before */
};

/*
 * Bytes that the stage takes now: of an FPDU whose rest is elsewhere, no more than that rest. The bytes in it, unless they
 * wait for a receive, are less than an FPDU, and get room behind them for one.
 */
static size_t stage_takes(const struct aw_qp *core, struct awk_stage *stage)
{
	size_t room = awk_stage_room(stage);

	if (core->stream.markers_rx)
		return room;
	return min(room, aw_rx_wanted(core, stage->buf + stage->at, stage->len) - stage->len);
}

/* The number of bytes of the skb that were used; 0 when none can be now. */
static size_t rx_copy(struct awk_qp *qp, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct awk_stage *stage = awk_stage_of(qp->stream);
	size_t n = stage ? min(len, stage_takes(&qp->core, stage)) : 0;

	if (n == 0)
		return 0;
	if (skb_copy_bits(skb, offset, awk_stage_end(stage), n)) {
		awk_stream_lose(qp);
		return 0;
	}
	awk_stage_use(qp, n);
	return n;
}

/*
 * The bytes that lie in one piece from offset on, *len of them; NULL when they are not in the skb's
 * own pieces.
 */
static const u8 *skb_piece(const struct sk_buff *skb, unsigned int offset, size_t *len)
{
	unsigned int start = skb_headlen(skb), i;

	if (offset < start) {
		*len = start - offset;
		return skb->data + offset;
	}
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		unsigned int end = start + skb_frag_size(frag);
		const u8 *p = offset < end ? skb_frag_address(frag) : NULL;

		if (offset < end) {
			*len = end - offset;
			return p ? p + (offset - start) : NULL;
		}
		start = end;
	}
	return NULL;
}

/* True when TCP has room for so many bytes, and takes them without reading by us. */
static bool queue_has_room(const struct awk_qp *qp, struct sock *sk, size_t missing)
{
	return missing <= tcp_receive_window(tcp_sk(sk)) && !tcp_rmem_pressure(sk) &&
	       !awk_sock_is_over(sk) && !READ_ONCE(qp->stream->broken);
}

/* Takes the FPDU of this size at the start of pieces. Returns its bytes, or 0. */
static size_t pieces_take(struct awk_qp *qp, const struct awk_pieces *pieces, const u8 *head,
			  size_t size)
{
	struct aw_rx_scattered fpdu = { .head = head, .size = size };
	u8 crc_field[FPDU_CRC_LEN];
	size_t n;

	lockdep_assert_held(&qp->lock);
	if (aw_stream_crc_in(&qp->core.stream)) {
		fpdu.crc = awk_pieces_crc(pieces, size - FPDU_CRC_LEN);
		awk_pieces_copy(pieces, size - FPDU_CRC_LEN, crc_field, FPDU_CRC_LEN);
		fpdu.crc_field = get_le32(crc_field);
	}
	qp->source = &pieces->source;
	n = aw_rx_scattered(&qp->core, &fpdu);
	qp->source = NULL;
	return n;
}

/*
 * Takes the FPDU that begins here and ends in another piece, perhaps of another skb. Returns its bytes; 0: none can be taken
 * so, or, with rx_part, the rest is not there yet.
 */
static size_t rx_scattered(struct rx_turn *turn, struct sk_buff *skb, unsigned int offset)
{
	struct awk_qp *qp = turn->qp;
	struct awk_pieces pieces;
	u8 head[AW_RX_HEAD_MAX];
	size_t copied, size;

	/* TCP's urgent byte is no part of the stream. */
	if (qp->core.stream.markers_rx || aw_qp_has_waiting(&qp->core) ||
	    !aw_machine_runs(&qp->core) || tcp_sk(turn->sk)->urg_data)
		return 0;
	awk_pieces_init(&pieces, turn->sk, skb, offset);
	copied = min(pieces.len, sizeof(head));
	awk_pieces_copy(&pieces, 0, head, copied);
	size = aw_rx_wanted(&qp->core, head, copied);
	if (size > pieces.len) {
		if (queue_has_room(qp, turn->sk, size - pieces.len))
			WRITE_ONCE(qp->stream->rx_part, size);
		return 0;
	}
	if (size <= sizeof(head))
		return aw_rx_lent(&qp->core, head, size);
	return pieces_take(qp, &pieces, head, size);
}

/* As rx_copy, but whole FPDUs where they lie, if they can be taken so; the last may end behind len. */
static size_t rx_take(struct rx_turn *turn, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct awk_qp *qp = turn->qp;
	const struct awk_stage *stage = qp->stream->stage;
	size_t piece, n = 0;
	const u8 *p;

	if (!awk_stage_may_fill(qp))
		return 0;
	if (stage && stage->len > 0)
		return rx_copy(qp, skb, offset, len);
	p = skb_piece(skb, offset, &piece);
	if (p)
		n = aw_rx_lent(&qp->core, p, min(piece, len));
	if (n == 0)
		n = rx_scattered(turn, skb, offset);
	return n > 0 || qp->stream->rx_part ? n : rx_copy(qp, skb, offset, len);
}

/*
 * Called by tcp_read_sock: returns the bytes taken of this skb. The lock is released after each
 * skb, so that posters get their turn.
 */
static int rx_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct rx_turn *turn = desc->arg.data;
	size_t used, n;

	if (turn->done == 0)
		len = min(len, desc->count);
	used = min(turn->done, len);
	turn->done -= used;
	awk_qp_lock(turn->qp);
	while (used < len && (n = rx_take(turn, skb, offset + used, len - used)) > 0) {
		turn->done = n - min(n, len - used);
		used += n - turn->done;
	}
	awk_qp_unlock(turn->qp);
	desc->count = used < len ? 0 : max(desc->count - min(desc->count, used), turn->done);
	return used;
}

static int drop_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	desc->count = 0;
	return 1;
}

/*
 * MPA has no use for the byte that TCP calls urgent: it is no part of the stream. tcp_read_sock
 * stops before it. True when it was there, and is gone.
 */
static bool drop_urgent(struct sock *sk)
{
	read_descriptor_t desc = { .count = 1 };
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->urg_data || tp->urg_seq != tp->copied_seq ||
	    skb_queue_empty(&sk->sk_receive_queue))
		return false;
	WRITE_ONCE(tp->urg_data, 0);
	return tcp_read_sock(sk, &desc, drop_actor) == 1;
}

/*
 * TCP calls for the rest of an FPDU only once it is there, and acknowledges what comes until then; but not what came before,
 * which nobody has read.
 */
static void rx_await(struct awk_qp *qp, struct sock *sk)
{
	int bytes = max_t(int, qp->stream->rx_part, 1);

	sock_owned_by_me(sk);
	if (sk->sk_rcvlowat != bytes)
		WRITE_ONCE(sk->sk_rcvlowat, bytes);
	if (qp->stream->rx_part &&
	    tcp_sk(sk)->rcv_nxt - tcp_sk(sk)->rcv_wup > inet_csk(sk)->icsk_ack.rcv_mss)
		awk_sock_send_ack(sk);
}

/* True when there is something in TCP's queue for us to read now. */
static bool queue_is_due(const struct awk_qp *qp, struct sock *sk)
{
	return !qp->stream->rx_part && !skb_queue_empty(&sk->sk_receive_queue);
}

static void rx_pass(struct awk_qp *qp, struct sock *sk)
{
	struct awk_stream *s = qp->stream;
	struct rx_turn turn = { .qp = qp, .sk = sk };
	read_descriptor_t desc = { .arg.data = &turn, .count = RX_BYTES };

	sock_owned_by_me(sk);
	WRITE_ONCE(s->rx_part, 0);
	/* More of an FPDU whose stage was given back: without a stage nothing is read until there is one. */
	if (READ_ONCE(s->packed) && !skb_queue_empty(&sk->sk_receive_queue)) {
		awk_qp_lock(qp);
		awk_stage_wake(s);
		awk_qp_unlock(qp);
	}
	do {
		tcp_read_sock(sk, &desc, rx_actor);
	} while (drop_urgent(sk));
	rx_await(qp, sk);
}

void awk_rx_arrived(struct awk_qp *qp, struct sock *sk)
{
	bool due, answer;

	if (READ_ONCE(qp->stream->tls)) {
		awk_rx_tls_arrived(qp);
		return;
	}
	rx_pass(qp, sk);
	awk_qp_lock(qp);
	awk_stage_rest(qp);
	due = queue_is_due(qp, sk) || awk_sock_is_over(sk) || qp->stream->starved ||
	      awk_stream_ends(qp);
	answer = awk_tx_is_due(qp);
	/* A message that waits for a receive is tried again, though nothing more arrives. */
	awk_stream_arm(qp);
	awk_qp_unlock(qp);
	if (due)
		awk_qp_kick(qp);
	else if (answer)
		tasklet_schedule(&qp->stream->answer);
}

/*
 * Applies the socket's state to the stream. Bytes that the socket has received are read first, but
 * none are read behind a message that waits for a receive.
 */
static void rx_follow(struct awk_qp *qp, struct sock *sk)
{
	struct awk_stream *s = qp->stream;
	bool all_read = skb_queue_empty(&sk->sk_receive_queue) && !s->rx_waits;
	bool failed = sk->sk_err || s->broken;

	lockdep_assert_held(&qp->lock);
	if (!s->sock || qp->core.state == AW_QP_ERROR)
		return;
	if (failed && (all_read || s->rx_waits))
		awk_stream_lose(qp);
	else if (all_read && !qp->core.peer_closed && (sk->sk_shutdown & RCV_SHUTDOWN))
		aw_qp_peer_closed(&qp->core, awk_stage_held(s));
}

/*
 * True when the worker may have something to receive, something to follow, or a stage to give back.
 * Called without a lock: an event that comes later wakes the worker again.
 */
static bool rx_is_due(const struct awk_qp *qp, struct sock *sk)
{
	const struct awk_stream *s = qp->stream;

	return (!READ_ONCE(s->rx_part) && !skb_queue_empty_lockless(&sk->sk_receive_queue)) ||
	       READ_ONCE(qp->core.rx_held) || READ_ONCE(s->stage) || READ_ONCE(s->starved) ||
	       READ_ONCE(s->broken) || awk_sock_is_over(sk) || READ_ONCE(tcp_sk(sk)->urg_data);
}

bool awk_rx_serve(struct awk_qp *qp, struct sock *sk)
{
	struct awk_stream *s = qp->stream;
	bool more;

	if (READ_ONCE(s->tls))
		return awk_rx_tls_serve(qp, sk->sk_socket);
	if (!rx_is_due(qp, sk))
		return false;
	if (READ_ONCE(s->starved))
		awk_pool_warm();
	lock_sock(sk);
	awk_qp_lock(qp);
	s->starved = false;
	awk_stage_retry(qp);
	awk_qp_unlock(qp);
	rx_pass(qp, sk);
	awk_qp_lock(qp);
	rx_follow(qp, sk);
	awk_stage_rest(qp);
	more = awk_stage_may_fill(qp) && !s->starved && queue_is_due(qp, sk);
	awk_qp_unlock(qp);
	release_sock(sk);
	return more;
}
