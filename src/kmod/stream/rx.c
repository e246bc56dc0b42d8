// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive: an FPDU that lies in one piece of TCP's buffers is placed from there. For others, and
// when there are markers, the core needs flat bytes that it may write to; they go through a stage.
// The core checks RFC 5044 4.4's CRC before it places a byte.
#include "core/rx.h"

#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"

#include <net/tcp.h>

#define RX_BYTES (256 * 1024) /* bytes per turn, so that other work has its turn */

static bool rx_may_read(const struct awk_qp *qp)
{
	const struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	return s->sock && !qp->core.peer_closed && qp->core.state != AW_QP_ERROR && !s->rx_waits &&
	       !s->packed;
}

static struct awk_stage *stage_of(struct awk_stream *s)
{
	lockdep_assert_held(&s->qp->lock);
	if (!s->stage)
		s->stage = awk_stage_try();
	s->starved |= !s->stage;
	return s->stage;
}

static void stage_use(struct awk_qp *qp, struct awk_stage *stage)
{
	size_t used = aw_rx_octets(&qp->core, stage->buf + stage->at, stage->len);

	lockdep_assert_held(&qp->lock);
	stage->len -= used;
	stage->at = stage->len ? stage->at + used : 0;
	WRITE_ONCE(qp->stream->rx_waits, aw_rnr_wait_holds(&qp->core));
}

/*
 * A stage stays with the stream only while it holds something, and for half an FPDU only for so
 * long: by RFC 5042 6.4.1 a byte of a peer's must not cost as much as a stage. Each FPDU has the whole
 * time: the position in the stream tells one from the next.
 */
static void stage_rest(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	if (!s->stage || s->rx_waits)
		return;
	if (s->stage->len == 0) {
		awk_stage_put(s->stage);
		s->stage = NULL;
		return;
	}
	if (s->stage_pos != qp->core.rx_pos) {
		s->stage_pos = qp->core.rx_pos;
		s->stage_since = jiffies;
	}
	if (time_before(jiffies, s->stage_since + msecs_to_jiffies(AWK_STAGE_MS)))
		return;
	s->packed = awk_stage_pack(s->stage);
	if (s->packed)
		s->stage = NULL;
	else
		s->stage_since = jiffies;
}

/*
 * Bytes that the stage takes now: of an FPDU whose rest is elsewhere, no more than that rest. The bytes in it, unless they
 * wait for a receive, are less than an FPDU, and get room behind them for one.
 */
static size_t stage_takes(const struct aw_qp *core, struct awk_stage *stage)
{
	size_t room;

	if (stage->at > sizeof(stage->buf) - FPDU_MAX) {
		memmove(stage->buf, stage->buf + stage->at, stage->len);
		stage->at = 0;
	}
	room = sizeof(stage->buf) - stage->at - stage->len;
	if (core->stream.markers_rx)
		return room;
	return min(room, aw_rx_wanted(core, stage->buf + stage->at, stage->len) - stage->len);
}

/* The number of bytes of the skb that were used; 0 when none can be now. */
static size_t rx_copy(struct awk_qp *qp, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct awk_stage *stage = stage_of(qp->stream);
	size_t n = stage ? min(len, stage_takes(&qp->core, stage)) : 0;

	if (n == 0)
		return 0;
	if (skb_copy_bits(skb, offset, stage->buf + stage->at + stage->len, n)) {
		awk_stream_lose(qp);
		return 0;
	}
	stage->len += n;
	stage_use(qp, stage);
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

/* As rx_copy, but whole FPDUs where they lie, if they can be taken so. */
static size_t rx_take(struct awk_qp *qp, struct sk_buff *skb, unsigned int offset, size_t len)
{
	const struct awk_stage *stage = qp->stream->stage;
	const u8 *p = NULL;
	size_t piece, n = 0;

	if (!rx_may_read(qp))
		return 0;
	if (!stage || stage->len == 0)
		p = skb_piece(skb, offset, &piece);
	if (p)
		n = aw_rx_lent(&qp->core, p, min(piece, len));
	return n > 0 ? n : rx_copy(qp, skb, offset, len);
}

/*
 * Called by tcp_read_sock: returns the bytes taken of this skb. The lock is released after each
 * skb, so that posters get their turn.
 */
static int rx_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct awk_qp *qp = desc->arg.data;
	size_t used = 0, n;

	len = min(len, desc->count);
	awk_qp_lock(qp);
	do {
		n = rx_take(qp, skb, offset + used, len - used);
		used += n;
	} while (n > 0 && used < len);
	awk_qp_unlock(qp);
	desc->count = used < len ? 0 : desc->count - used;
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

static void rx_pass(struct awk_qp *qp, struct sock *sk)
{
	struct awk_stream *s = qp->stream;
	read_descriptor_t desc = { .arg.data = qp, .count = RX_BYTES };

	sock_owned_by_me(sk);
	/* More of an FPDU whose stage was given back: without a stage nothing is read until there is one. */
	if (READ_ONCE(s->packed) && !skb_queue_empty(&sk->sk_receive_queue)) {
		awk_qp_lock(qp);
		if (s->packed && stage_of(s)) {
			awk_stage_unpack(s->stage, s->packed);
			s->packed = NULL;
		}
		awk_qp_unlock(qp);
	}
	do {
		tcp_read_sock(sk, &desc, rx_actor);
	} while (drop_urgent(sk));
}

void awk_rx_arrived(struct awk_qp *qp, struct sock *sk)
{
	bool due;

	rx_pass(qp, sk);
	awk_qp_lock(qp);
	stage_rest(qp);
	due = !skb_queue_empty(&sk->sk_receive_queue) || awk_sock_is_over(sk) ||
	      qp->stream->starved || awk_stream_ends(qp) || awk_tx_is_due(qp);
	/* A message that waits for a receive is tried again, though nothing more arrives. */
	awk_stream_arm(qp);
	awk_qp_unlock(qp);
	if (due)
		awk_qp_kick(qp);
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
	size_t rest = s->packed ? s->packed->len : s->stage ? s->stage->len : 0;

	lockdep_assert_held(&qp->lock);
	if (!s->sock || qp->core.state == AW_QP_ERROR)
		return;
	if (failed && (all_read || s->rx_waits))
		awk_stream_lose(qp);
	else if (all_read && !qp->core.peer_closed && (sk->sk_shutdown & RCV_SHUTDOWN))
		aw_qp_peer_closed(&qp->core, rest);
}

/*
 * True when the worker may have something to receive, something to follow, or a stage to give back.
 * Called without a lock: an event that comes later wakes the worker again.
 */
static bool rx_is_due(const struct awk_qp *qp, struct sock *sk)
{
	const struct awk_stream *s = qp->stream;

	return !skb_queue_empty_lockless(&sk->sk_receive_queue) || READ_ONCE(qp->core.rx_held) ||
	       READ_ONCE(s->stage) || READ_ONCE(s->starved) || READ_ONCE(s->broken) ||
	       awk_sock_is_over(sk) || READ_ONCE(tcp_sk(sk)->urg_data);
}

bool awk_rx_serve(struct awk_qp *qp, struct sock *sk)
{
	struct awk_stream *s = qp->stream;
	bool more;

	if (!rx_is_due(qp, sk))
		return false;
	if (READ_ONCE(s->starved))
		awk_pool_warm();
	lock_sock(sk);
	awk_qp_lock(qp);
	s->starved = false;
	if (qp->core.rx_held && s->stage) {
		aw_rnr_wait_try(&s->rnr_wait, &qp->core, AW_RNR_MS, awk_now_ns());
		stage_use(qp, s->stage);
	}
	awk_qp_unlock(qp);
	rx_pass(qp, sk);
	awk_qp_lock(qp);
	rx_follow(qp, sk);
	stage_rest(qp);
	more = rx_may_read(qp) && !s->starved && !skb_queue_empty(&sk->sk_receive_queue);
	awk_qp_unlock(qp);
	release_sock(sk);
	return more;
}
