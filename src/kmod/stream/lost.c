// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds peers that vanished without a FIN or reset. TCP keep-alive finds those that owe nothing;
// this code finds those that acknowledge nothing of what is under way. A peer whose TCP answers is
// alive, though its program takes no byte: so TCP_USER_TIMEOUT, which ends a connection whose
// window stays closed, would be wrong. A stream that has nothing under way has no look.
#include "kmod/stream/io.h"

#include <net/tcp.h>

/*
 * RFC 9293 3.8.3 wants at least 100 seconds. A look's interval longer than two minutes: TCP's
 * longest pause between two probes is two minutes as well (TCP_RTO_MAX), and the probe after a lost
 * one, and its answer, have that interval.
 */
#define LOOK_S 8
#define LOST_S (120 + LOOK_S)

void awk_lost_sent(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	if (s->looking)
		return;
	s->looking = true;
	s->look_at = jiffies + LOOK_S * HZ;
	s->unanswered = 0;
}

/* The time for which TCP has heard nothing from the peer, in ticks of tcp_jiffies32. */
static u32 silent_for(const struct sock *sk)
{
	u32 ack = tcp_jiffies32 - READ_ONCE(tcp_sk(sk)->rcv_tstamp);
	u32 data = tcp_jiffies32 - READ_ONCE(inet_csk(sk)->icsk_ack.lrcvtime);

	return min(ack, data);
}

/*
 * True when TCP has asked and had no answer: it has probed a closed window, or has sent bytes after
 * it last heard from the peer.
 */
static bool is_unanswered(const struct sock *sk)
{
	u32 sent = tcp_jiffies32 - READ_ONCE(tcp_sk(sk)->lsndtime);

	return READ_ONCE(inet_csk(sk)->icsk_probes_out) > 0 ||
	       (READ_ONCE(tcp_sk(sk)->packets_out) > 0 && sent < silent_for(sk));
}

static bool has_under_way(const struct awk_stream *s, const struct sock *sk)
{
	return s->batch || READ_ONCE(tcp_sk(sk)->packets_out) > 0 ||
	       READ_ONCE(tcp_sk(sk)->write_seq) != READ_ONCE(tcp_sk(sk)->snd_nxt);
}

/*
 * The time runs from the first look at which the peer owed an answer, for as long as none has come.
 * 0 stands for never.
 */
static bool is_lost(struct awk_stream *s, const struct sock *sk)
{
	unsigned long now = jiffies | 1;

	if (!is_unanswered(sk))
		s->unanswered = 0;
	else if (!s->unanswered || silent_for(sk) < now - s->unanswered)
		s->unanswered = now;
	return s->unanswered && now - s->unanswered >= (LOST_S - LOOK_S) * HZ;
}

void awk_lost_look(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;
	const struct sock *sk;

	if (!s->looking || !s->sock || time_before(jiffies, s->look_at))
		return;
	sk = s->sock->sk;
	s->looking = has_under_way(s, sk);
	s->look_at = jiffies + LOOK_S * HZ;
	if (s->looking && is_lost(s, sk))
		awk_stream_lose(qp);
}
