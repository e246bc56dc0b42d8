// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a stream: core/ending.h decides by the core's state, the worker follows with the socket, and reports to the
// stream's user.
#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"
#include "kmod/tcp/linger.h"
#include "kmod/tcp/tls.h"

#include <linux/slab.h>

void awk_stream_lose(struct awk_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	qp->stream->lost = true;
	aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
}

bool awk_stream_ends(const struct awk_qp *qp)
{
	const struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	return qp->core.state > AW_QP_RTS && (s->sock || s->user);
}

/* True when the socket has all that was sent. With a FIN what TLS still holds would be lost. */
static bool is_sent(const struct awk_stream *s)
{
	return !s->tx_busy && !s->batch && (!s->tls || awk_tls_has_sent(s->sock->sk));
}

/* Reduces the timer to a time of awk_now_ns. */
static void arm_at(struct awk_stream *s, u64 at_ns)
{
	u64 now_ns = awk_now_ns();
	u64 left_ns = at_ns > now_ns ? at_ns - now_ns : 0;

	timer_reduce(&s->timer, jiffies + nsecs_to_jiffies(left_ns + TICK_NSEC - 1));
}

void awk_stream_arm(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	if (!s->sock)
		return;
	if (s->ending.begun)
		arm_at(s, s->ending.deadline_ns);
	/* Nobody tells when TLS has given TCP its last record. */
	if (s->ending.begun && !s->ending.fin_sent && s->tls)
		timer_reduce(&s->timer, jiffies + msecs_to_jiffies(AWK_MEMORY_RETRY_MS));
	if (s->rx_waits)
		timer_reduce(&s->timer, jiffies + msecs_to_jiffies(AW_RNR_RETRY_MS));
	if (s->stage && !s->rx_waits)
		timer_reduce(&s->timer, s->stage_since + msecs_to_jiffies(AWK_STAGE_MS));
	if (s->starved)
		timer_reduce(&s->timer, jiffies + msecs_to_jiffies(AWK_MEMORY_RETRY_MS));
	if (s->looking)
		arm_at(s, s->look_ns);
}

/*
 * Takes the socket from the stream, with all that it holds of it. False while a thread transmits: it
 * finds the state, and kicks the worker again.
 */
static bool take_socket(struct awk_stream *s)
{
	if (s->tx_busy) {
		s->tx_again = true;
		return false;
	}
	s->sock = NULL;
	awk_stage_put(s->stage);
	kfree(s->packed);
	awk_batch_put(s->batch);
	s->stage = NULL;
	s->packed = NULL;
	s->batch = NULL;
	WRITE_ONCE(s->rx_waits, false);
	return true;
}

void awk_stream_settle(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;
	struct awk_stream_user *user = NULL;
	enum awk_stream_news news;
	struct socket *sock;
	bool reset, drop;
	unsigned int steps = 0;

	awk_qp_lock(qp);
	if (awk_lost_look(qp))
		awk_stream_lose(qp);
	sock = s->sock;
	reset = s->lost;
	if (sock && qp->core.state != AW_QP_ERROR) {
		aw_ending_expire(&s->ending, &qp->core, awk_now_ns());
		steps = aw_ending_follow(&s->ending, &qp->core, is_sent(s), awk_now_ns());
	}
	drop = sock && qp->core.state == AW_QP_ERROR && take_socket(s);
	news = !sock ? AWK_STREAM_REFUSED : drop ? AWK_STREAM_ENDED : AWK_STREAM_ENDING;
	if (s->user && (qp->core.state >= AW_QP_TERMINATE || qp->core.peer_closed)) {
		user = s->user;
		user->ops->get(user);
	}
	awk_qp_drain(qp);
	awk_stream_arm(qp);
	awk_qp_unlock(qp);
	if ((steps & AW_ENDING_FIN) && s->tls)
		awk_tls_send_end(sock);
	if (steps & AW_ENDING_FIN)
		kernel_sock_shutdown(sock, SHUT_WR);
	if (drop) {
		awk_sock_release(sock->sk, &s->saved);
		if (reset)
			awk_sock_close(sock);
		else
			awk_linger(sock);
		wake_up(&s->over);
	}
	if (user) {
		user->ops->report(user, news);
		user->ops->put(user);
	}
}
