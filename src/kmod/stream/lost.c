// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks for peers that vanished without a FIN or reset (core/liveness.h). A stream that has nothing under way has no look.
#include "kmod/stream/io.h"

#include <net/tcp.h>

#define LOOK_NS (8ull * NSEC_PER_SEC)
/* TCP's longest pause between two probes (TCP_RTO_MAX), from the first look that finds an answer owed. */
#define LOST_NS (120ull * NSEC_PER_SEC)

void awk_lost_sent(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	if (s->looking)
		return;
	s->looking = true;
	s->look_ns = awk_now_ns() + LOOK_NS;
	s->liveness = (struct aw_liveness){ 0 };
}

/* The time since a moment of TCP's clock. */
static u64 since_ns(u32 tcp_jiffies)
{
	return jiffies64_to_nsecs(tcp_jiffies32 - tcp_jiffies);
}

bool awk_lost_look(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;
	u64 now_ns = awk_now_ns();
	struct aw_tcp_seen seen;
	const struct tcp_sock *tp;
	const struct inet_connection_sock *icsk;
	bool unacked;

	lockdep_assert_held(&qp->lock);
	if (!s->looking || !s->sock || now_ns < s->look_ns)
		return false;
	tp = tcp_sk(s->sock->sk);
	icsk = inet_csk(s->sock->sk);
	unacked = READ_ONCE(tp->packets_out) > 0;
	seen = (struct aw_tcp_seen){
		.under_way = s->batch || unacked ||
			     READ_ONCE(tp->write_seq) != READ_ONCE(tp->snd_nxt),
		.unacked = unacked,
		.probing = READ_ONCE(icsk->icsk_probes_out) > 0,
		.sent_ns = since_ns(READ_ONCE(tp->lsndtime)),
		.heard_ns = min(since_ns(READ_ONCE(tp->rcv_tstamp)),
				since_ns(READ_ONCE(icsk->icsk_ack.lrcvtime))),
	};
	s->look_ns = now_ns + LOOK_NS;
	switch (aw_liveness_look(&s->liveness, &seen, LOST_NS, now_ns)) {
	case AW_LIVENESS_IDLE:
		s->looking = false;
		return false;
	case AW_LIVENESS_LOOK:
		return false;
	case AW_LIVENESS_LOST:
		return true;
	}
	return false;
}
