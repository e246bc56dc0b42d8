// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receive under TLS. The kernel decrypts a record in the thread that reads it, which may sleep: the worker reads, into the stage,
// and the socket's callback only wakes it. A record that is no data ends the stream, as does an end of TCP without a close_notify.
#include "kmod/stream/io.h"
#include "kmod/stream/stage.h"
#include "kmod/tcp/tls.h"

#include <linux/minmax.h>
#include <linux/printk.h>

#define RX_BYTES (256 * 1024) /* bytes per turn, so that other work has its turn */

/* As awk_tls_recv, with the bytes taken by the core; the lock is released meanwhile. -EBUSY: the core takes none now. */
static int read_record(struct awk_qp *qp, struct socket *sock)
{
	struct awk_stage *stage = qp->stream->stage;
	size_t room;
	int n;

	if (!stage || !awk_stage_may_fill(qp))
		return -EBUSY;
	room = awk_stage_room(stage);
	awk_qp_unlock(qp);
	n = awk_tls_recv(sock, awk_stage_end(stage), room);
	awk_qp_lock(qp);
	/* Of a stream that ended meanwhile nothing is placed. */
	if (n > 0 && awk_stage_may_fill(qp))
		awk_stage_use(qp, n);
	return n;
}

/* Applies what a read has found, the last of this turn. */
static void follow(struct awk_qp *qp, const struct sock *sk, int n)
{
	struct awk_stream *s = qp->stream;
	bool failed = s->broken || READ_ONCE(sk->sk_err);

	lockdep_assert_held(&qp->lock);
	if (!s->sock || qp->core.state == AW_QP_ERROR)
		return;
	if (n == -EPROTO)
		pr_warn_ratelimited(
			"anywarp: a connection under TLS ends: its peer has sent a record that is no data, an "
			"alert or a change of keys, which cannot be followed\n");
	if (n == 0)
		aw_qp_peer_closed(&qp->core, awk_stage_held(s));
	else if (n < 0 && n != -EAGAIN && n != -EBUSY)
		awk_stream_lose(qp);
	else if (failed && (n == -EAGAIN || s->rx_waits || qp->core.peer_closed))
		awk_stream_lose(qp);
}

static bool is_due(const struct awk_stream *s)
{
	return test_bit(AWK_STREAM_ARRIVED, &s->flags) || READ_ONCE(s->qp->core.rx_held) ||
	       READ_ONCE(s->stage) || READ_ONCE(s->starved) || READ_ONCE(s->broken);
}

void awk_rx_tls_arrived(struct awk_qp *qp)
{
	set_bit(AWK_STREAM_ARRIVED, &qp->stream->flags);
	awk_qp_kick(qp);
}

bool awk_rx_tls_serve(struct awk_qp *qp, struct socket *sock)
{
	struct awk_stream *s = qp->stream;
	struct awk_stage *spare;
	size_t left = RX_BYTES;
	bool more;
	int n;

	if (!is_due(s))
		return false;
	spare = READ_ONCE(s->stage) ? NULL : awk_stage_get();
	clear_bit(AWK_STREAM_ARRIVED, &s->flags);
	smp_mb__after_atomic(); /* bytes that come after the read set it again */
	awk_qp_lock(qp);
	if (!s->stage)
		swap(s->stage, spare);
	s->starved = !s->stage;
	if (s->stage)
		awk_stage_wake(s);
	awk_stage_retry(qp);
	do {
		n = read_record(qp, sock);
		left -= min_t(size_t, left, max(n, 0));
	} while (n > 0 && left > 0);
	if (n > 0 || n == -EBUSY)
		set_bit(AWK_STREAM_ARRIVED, &s->flags);
	follow(qp, sock->sk, n);
	awk_stage_rest(qp);
	more = n > 0 && awk_stage_may_fill(qp);
	awk_qp_unlock(qp);
	awk_stage_put(spare);
	return more;
}
