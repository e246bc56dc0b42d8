// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of a stream: the core's state decides, the worker follows with the socket, and reports to the
// stream's user. RFC 5040 6.2.1: a Terminate is the last message; RFC 5044 7.2: FIN behind the
// last FPDU.
#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"
#include "kmod/tcp/linger.h"

#include <linux/slab.h>

/* The steps that the worker takes once it has released the lock. */
struct steps {
	struct socket *sock; /* to shut down or to give up; or NULL */
	bool fin;
	bool drop;
	bool reset; /* drop: the socket does not linger */
	struct awk_stream_user *user; /* is told the news; a reference, or NULL */
	enum awk_stream_news news;
};

void awk_stream_lose(struct awk_qp *qp)
{
	qp->stream->lost = true;
	aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
}

bool awk_stream_ends(const struct awk_qp *qp)
{
	const struct awk_stream *s = qp->stream;

	return qp->core.state > AW_QP_RTS && (s->sock || s->user);
}

/* The deadline starts with the ending, so that a peer that takes nothing cannot delay the flush. */
static void begin_ending(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;
	bool closing = qp->core.state == AW_QP_CLOSING;

	if (s->ending || (!closing && qp->core.state != AW_QP_TERMINATE))
		return;
	s->ending = true;
	s->deadline = jiffies + msecs_to_jiffies(closing ? AWK_CLOSE_MS : AWK_TERMINATE_MS);
	qp->core.rnr_holds = false; /* a receive posted now would flush */
}

static void end_in_time(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	if (!s->ending || time_before(jiffies, s->deadline))
		return;
	if (aw_qp_drop_answers(&qp->core))
		s->deadline = jiffies + msecs_to_jiffies(AWK_TERMINATE_MS);
	else
		aw_qp_abort(&qp->core, qp->core.error);
}

/*
 * Sends the FIN once all is sent. After a Terminate nothing that the peer sends matters, so the
 * stream ends there.
 */
static void finish_ending(struct awk_qp *qp, struct steps *steps)
{
	struct awk_stream *s = qp->stream;

	if (!s->ending || s->tx_busy || s->batch || !aw_qp_tx_finished(&qp->core))
		return;
	if (!s->fin_sent) {
		aw_qp_close(&qp->core); /* posts from now on are flushed */
		steps->sock = s->sock;
		steps->fin = true;
	}
	s->fin_sent = true;
	if (qp->core.peer_closed || qp->core.state == AW_QP_TERMINATE)
		aw_qp_abort(&qp->core, qp->core.error);
}

/*
 * In ERROR: takes the socket from the stream. A thread that transmits meanwhile finds the state,
 * and wakes the worker again.
 */
static void drop_socket(struct awk_qp *qp, struct steps *steps)
{
	struct awk_stream *s = qp->stream;

	if (s->tx_busy) {
		s->tx_again = true;
		return;
	}
	steps->sock = s->sock;
	steps->drop = true;
	steps->reset = s->lost;
	steps->news = AWK_STREAM_ENDED;
	s->sock = NULL;
	awk_stage_put(s->stage);
	kfree(s->packed);
	awk_batch_put(s->batch);
	s->stage = NULL;
	s->packed = NULL;
	s->batch = NULL;
	WRITE_ONCE(s->rx_waits, false);
}

static void decide(struct awk_qp *qp, struct steps *steps)
{
	struct awk_stream *s = qp->stream;

	awk_lost_look(qp);
	if (s->sock && qp->core.state != AW_QP_ERROR) {
		begin_ending(qp);
		end_in_time(qp);
		finish_ending(qp, steps);
	}
	steps->news = !s->sock ? AWK_STREAM_REFUSED : AWK_STREAM_ENDING;
	if (s->sock && qp->core.state == AW_QP_ERROR)
		drop_socket(qp, steps);
	if (s->user && (qp->core.state >= AW_QP_TERMINATE || qp->core.peer_closed)) {
		steps->user = s->user;
		s->user->ops->get(s->user);
	}
	awk_qp_drain(qp);
	awk_stream_arm(qp);
}

static void carry_out(struct awk_qp *qp, const struct steps *steps)
{
	if (steps->fin)
		kernel_sock_shutdown(steps->sock, SHUT_WR);
	if (steps->drop) {
		awk_sock_release(steps->sock->sk, &qp->stream->saved);
		if (steps->reset)
			sock_release(steps->sock);
		else
			awk_linger(steps->sock);
		wake_up(&qp->stream->over);
	}
	if (steps->user) {
		steps->user->ops->report(steps->user, steps->news);
		steps->user->ops->put(steps->user);
	}
}

void awk_stream_settle(struct awk_qp *qp)
{
	struct steps steps = { 0 };

	awk_qp_lock(qp);
	decide(qp, &steps);
	awk_qp_unlock(qp);
	carry_out(qp, &steps);
}

/* Sets the timer to the next time at which the worker has something to look at by itself. */
void awk_stream_arm(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;

	if (!s->sock)
		return;
	if (s->ending)
		timer_reduce(&s->timer, s->deadline);
	if (s->rx_waits)
		timer_reduce(&s->timer, jiffies + msecs_to_jiffies(AWK_RNR_RETRY_MS));
	if (s->stage && !s->rx_waits)
		timer_reduce(&s->timer, s->stage_since + msecs_to_jiffies(AWK_STAGE_MS));
	if (s->starved)
		timer_reduce(&s->timer, jiffies + msecs_to_jiffies(AWK_MEMORY_RETRY_MS));
	if (s->looking)
		timer_reduce(&s->timer, s->look_at);
}
