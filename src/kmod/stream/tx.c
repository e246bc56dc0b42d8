// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transmit: the core's FPDUs in batches, one call of TCP each, without any lock held. One thread at
// a time sends for a QP. A batch stays with the stream only while the socket has not taken all of
// it. TCP copies a short batch, and keeps the pages of a long one.
#include "core/tx.h"

#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"
#include "kmod/tcp/compat.h"

#include <linux/interrupt.h>
#include <net/tcp.h>

#define EMSS_BYTES (1u << 20) /* bytes sent between two looks at TCP's segment size */
#define NOW_BYTES (16u << 10) /* a poster sends no more where it may not sleep */
#define SPLICE_BYTES_MIN \
	(32u << 10) /* a quarter of the arena, which TCP keeps as a whole until then */

/* True while the socket is full, and has not reported room since. */
static bool tx_is_blocked(const struct awk_qp *qp)
{
	const struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	return s->broken || (s->tx_blocked && !test_bit(AWK_STREAM_ROOM, &s->flags));
}

static bool tx_has_socket(const struct awk_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	/* In ERROR a waiting batch was flushed with its WRs. */
	return qp->stream->sock && qp->core.state != AW_QP_ERROR;
}

bool awk_tx_is_due(struct awk_qp *qp)
{
	const struct aw_qp *core = &qp->core;

	awk_qp_drain(qp);
	if (!tx_has_socket(qp) || tx_is_blocked(qp))
		return false;
	return core->irq_count > 0 || core->sq.next != core->sq.tail || core->rtr_due ||
	       core->term_due;
}

/* Puts the FPDUs that are due now into the batch. AW_TX_FULL: of those, not all fit into so many bytes. */
static enum aw_tx batch_fill(struct awk_qp *qp, struct awk_batch *batch, size_t room)
{
	struct awk_stream *s = qp->stream;
	struct aw_tx_out out = {
		.arena = batch->arena,
		.arena_len = room,
		.iov = batch->iov,
		.iov_max = ARRAY_SIZE(batch->iov),
	};
	enum aw_tx tx;

	/* RFC 5044 3: a change of the path is followed, but not at the cost of a look for each FPDU. */
	if (!qp->core.stream.large_fpdus && qp->core.tx_pos - s->emss_pos >= EMSS_BYTES) {
		s->emss_pos = qp->core.tx_pos;
		aw_qp_set_emss(&qp->core, awk_sock_segment_size(s->sock->sk));
	}
	awk_qp_drain(qp);
	do {
		tx = aw_tx_next(&qp->core, &out);
	} while (tx == AW_TX_FPDU);
	/* aw_qp.copies: all of it is in the arena, one FPDU behind the other. */
	batch->len = out.octets;
	batch->sent = 0;
	return tx;
}

static bool batch_is_sent(const struct awk_batch *batch)
{
	return batch->sent == batch->len;
}

/* Called without a lock. Returns the bytes that the socket took, or its error. */
static int batch_send(struct awk_stream *s, struct socket *sock, struct awk_batch *batch)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec iov = { batch->arena + batch->sent, batch->len - batch->sent };

	clear_bit(AWK_STREAM_ROOM, &s->flags);
	smp_mb__after_atomic(); /* before the socket says that it is full; with on_space in stream.c */
	/* TLS encrypts into pages of its own. */
	if (batch->pages && batch->len >= SPLICE_BYTES_MIN && !s->tls)
		return awk_sock_splice(sock, batch->pages, batch->sent, iov.iov_len);
	return kernel_sendmsg(sock, &msg, &iov, 1, iov.iov_len);
}

/* Accounts for a send. True when all of the batch is sent. */
static bool tx_account(struct awk_qp *qp, int n)
{
	struct awk_stream *s = qp->stream;
	const struct sock *sk = s->sock->sk;

	lockdep_assert_held(&qp->lock);
	if (n > 0) {
		s->batch->sent += n;
		aw_tx_sent(&qp->core, n);
		awk_lost_sent(qp);
	} else if (n == -ENOMEM || n == -ENOBUFS ||
		   (n == -EAGAIN && !READ_ONCE(sk->sk_wmem_queued))) {
		/* The socket is short of memory, and no acknowledgement will bring room. */
		s->starved = true;
		set_bit(AWK_STREAM_ROOM, &s->flags);
	} else if (n == -EINTR || n == -ERESTARTSYS) {
		/* A thread with a signal has not waited for its turn to encrypt: the worker does. */
		set_bit(AWK_STREAM_ROOM, &s->flags);
	} else if (n != -EAGAIN) {
		/* The socket may have received what explains it: the worker reads that first. */
		s->broken = true;
	}
	s->tx_blocked = !batch_is_sent(s->batch);
	return !s->tx_blocked;
}

/*
 * Sends so many batches at most, one after the other in the memory of s->batch. The lock is released for each send. True
 * when the turn ended before the work did.
 */
static bool tx_send(struct awk_qp *qp, unsigned int batches)
{
	struct awk_stream *s = qp->stream;
	bool renewed;
	int n;

	while (batches-- > 0) {
		if (!tx_has_socket(qp))
			return s->tx_again;
		s->tx_again = false;
		if (batch_is_sent(s->batch))
			batch_fill(qp, s->batch, AWK_ARENA_BYTES);
		if (batch_is_sent(s->batch))
			return s->tx_again;
		awk_qp_unlock(qp);
		n = batch_send(s, s->sock, s->batch);
		/* The next bytes must not go where TCP still has these. */
		renewed = n != s->batch->len - s->batch->sent || awk_batch_renew(s->batch);
		awk_qp_lock(qp);
		s->starved |= !renewed;
		if (!tx_account(qp, n))
			return s->tx_again || s->broken || (!s->starved && !tx_is_blocked(qp));
		if (!renewed)
			return false;
	}
	return true;
}

bool awk_tx_run(struct awk_qp *qp, unsigned int batches)
{
	struct awk_stream *s = qp->stream;
	struct awk_batch *spare = READ_ONCE(s->sock) ? awk_batch_get() : NULL;
	struct awk_batch *done = NULL;
	bool more = false;

	awk_qp_lock(qp);
	awk_qp_drain(qp);
	if (s->tx_busy) {
		s->tx_again = true;
	} else if (tx_has_socket(qp) && !tx_is_blocked(qp)) {
		if (!s->batch)
			swap(s->batch, spare);
		if (s->batch) {
			s->tx_busy = true;
			more = tx_send(qp, batches);
			awk_qp_drain(qp);
			/* In ERROR its memory is not ours to send any more. */
			if (batch_is_sent(s->batch) || qp->core.state == AW_QP_ERROR)
				swap(s->batch, done);
			s->tx_busy = false;
		} else {
			s->starved = true;
		}
	}
	awk_stream_arm(qp);
	awk_qp_unlock(qp);
	awk_batch_put(spare);
	awk_batch_put(done);
	return more;
}

/*
 * As batch_send, but never sleeps: as a softirq has the socket, without sk_lock.owned, and as TLS sends from one. -EBUSY: a thread
 * has it, and nothing was sent.
 */
static int batch_send_now(struct sock *sk, const struct awk_batch *batch)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec iov = { batch->arena, batch->len };
	gfp_t allocation;
	int n = -EBUSY;

	/* The thread that has it may have called the consumer that posts. */
	if (!spin_trylock_bh(&sk->sk_lock.slock))
		return n;
	if (!sock_owned_by_user(sk)) {
		allocation = sk->sk_allocation;
		sk->sk_allocation = GFP_ATOMIC;
		iov_iter_kvec(&msg.msg_iter, WRITE, &iov, 1, iov.iov_len);
		n = tcp_sendmsg_locked(sk, &msg, iov.iov_len);
		sk->sk_allocation = allocation;
	}
	spin_unlock_bh(&sk->sk_lock.slock);
	return n;
}

/*
 * Sends what is short, with the lock released meanwhile. True when more is due: what TCP did not take at once stays in the
 * batch, for the worker to find out why.
 */
static bool tx_send_now(struct awk_qp *qp, void (*unlock)(struct awk_qp *qp))
{
	struct awk_stream *s = qp->stream;
	bool full;
	int n;

	lockdep_assert_held(&qp->lock);
	s->tx_again = false;
	full = batch_fill(qp, s->batch, NOW_BYTES) == AW_TX_FULL;
	if (batch_is_sent(s->batch))
		return full;
	unlock(qp);
	n = batch_send_now(s->sock->sk, s->batch);
	awk_qp_lock(qp);
	if (n <= 0)
		return true;
	if (!tx_account(qp, n)) {
		s->tx_blocked = false;
		return true;
	}
	return full || s->tx_again;
}

/* True when TCP has nothing to send, and the peer has acknowledged all that was sent. */
static bool sock_is_quiet(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return READ_ONCE(tp->packets_out) == 0 &&
	       READ_ONCE(tp->write_seq) == READ_ONCE(tp->snd_nxt);
}

/*
 * As awk_tx_run, but never sleeps, and sends only what is short, without TLS, while TCP is quiet and nobody has the socket: posts
 * that follow each other share packets. unlock: awk_qp_unlock or awk_qp_unlock_posted.
 */
static bool tx_run_now(struct awk_qp *qp, void (*unlock)(struct awk_qp *qp))
{
	struct awk_stream *s = qp->stream;
	struct awk_batch *batch = awk_batch_try();
	bool more = true;

	awk_qp_lock(qp);
	if (s->tx_busy) {
		s->tx_again = true;
		more = false;
	} else if (batch && tx_has_socket(qp) && !s->tls && !s->batch &&
		   sock_is_quiet(s->sock->sk)) {
		swap(s->batch, batch);
		s->tx_busy = true;
		more = tx_send_now(qp, unlock);
		if (batch_is_sent(s->batch) || qp->core.state == AW_QP_ERROR)
			swap(s->batch, batch);
		s->tx_busy = false;
		awk_stream_arm(qp);
	}
	more |= awk_stream_ends(qp);
	/* With softirqs off, so that memory is not freed where that may sleep. */
	awk_batch_put(batch);
	unlock(qp);
	return more;
}

void awk_stream_posted(struct awk_qp *qp)
{
	bool more = true;

	if (!in_hardirq() && !irqs_disabled() && !work_pending(&qp->work)) {
		/* The peer on this host, and the softirqs that poll, have their turn once the WRs have completed. */
		local_bh_disable();
		more = tx_run_now(qp, awk_qp_unlock_posted);
		local_bh_enable();
	}
	if (more)
		awk_qp_kick(qp);
}

void awk_tx_answer(struct tasklet_struct *tasklet)
{
	struct awk_stream *s = from_tasklet(s, tasklet, answer);

	if (work_pending(&s->qp->work) || tx_run_now(s->qp, awk_qp_unlock))
		awk_qp_kick(s->qp);
}
