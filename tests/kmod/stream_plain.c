// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In rx.c's and tx.c's place: the same promises, one octet string each way, and no memory to be short of. And of
// device.c what connections ask.
#include "core/rx.h"
#include "core/tx.h"

#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"

#include "tcp.h"

static u8 arena[AW_TX_ARENA_MIN];

struct net *awk_device_net(const struct awk_device *dev)
{
	return dev->netdev ? kshim_net : NULL;
}

bool awk_net_is_callers(const struct net *net)
{
	return net;
}

static void rx_pass(struct awk_qp *qp, struct sock *sk)
{
	struct kshim_tcp *tcp = sk->tcp;

	awk_qp_lock(qp);
	if (qp->stream->sock && qp->core.state != AW_QP_ERROR)
		tcp->in_at +=
			aw_rx_octets(&qp->core, tcp->in + tcp->in_at, tcp->in_len - tcp->in_at);
	awk_qp_unlock(qp);
}

void awk_rx_arrived(struct awk_qp *qp, struct sock *sk)
{
	KSHIM_CHECK(sk->owned);
	if (!qp->stream->tls)
		rx_pass(qp, sk);
	awk_qp_kick(qp);
}

/* What comes under TLS waits for the worker. */
void awk_rx_tls_arrived(struct awk_qp *qp)
{
	awk_qp_kick(qp);
}

static void rx_follow(struct awk_qp *qp, struct sock *sk)
{
	if (!qp->stream->sock || qp->core.state == AW_QP_ERROR)
		return;
	if (sk->sk_err || qp->stream->broken)
		awk_stream_lose(qp);
	else if (!qp->core.peer_closed && (sk->sk_shutdown & RCV_SHUTDOWN))
		aw_qp_peer_closed(&qp->core, sk->tcp->in_len - sk->tcp->in_at);
}

bool awk_rx_serve(struct awk_qp *qp, struct sock *sk)
{
	lock_sock(sk);
	rx_pass(qp, sk);
	awk_qp_lock(qp);
	qp->core.rnr_holds = false;
	rx_follow(qp, sk);
	awk_qp_unlock(qp);
	release_sock(sk);
	return false;
}

/* With the lock. Octets of one FPDU, in arena, or 0. */
static size_t tx_fill(struct awk_qp *qp, u8 *octets)
{
	struct aw_iov iov[AW_TX_IOV_MIN];
	struct aw_tx_out out = {
		.arena = arena,
		.arena_len = sizeof(arena),
		.iov = iov,
		.iov_max = ARRAY_SIZE(iov),
	};
	size_t len = 0;

	if (aw_tx_next(&qp->core, &out) != AW_TX_FPDU)
		return 0;
	for (size_t i = 0; i < out.iov_count; i++) {
		KSHIM_CHECK(len + iov[i].len <= TCP_OCTETS);
		memcpy(octets + len, iov[i].base, iov[i].len);
		len += iov[i].len;
	}
	return len;
}

void awk_stream_posted(struct awk_qp *qp)
{
	awk_qp_kick(qp);
}

void awk_tx_answer(struct tasklet_struct *tasklet)
{
	KSHIM_CHECK(!tasklet);
}

bool awk_tx_run(struct awk_qp *qp, unsigned int batches)
{
	struct awk_stream *s = qp->stream;
	u8 octets[TCP_OCTETS];
	bool more;
	size_t len;
	int n = 0;

	(void)batches;
	awk_qp_lock(qp);
	awk_qp_drain(qp);
	s->tx_again |= s->tx_busy;
	while (!s->tx_busy && s->sock && !s->broken && qp->core.state != AW_QP_ERROR) {
		struct kvec iov = { octets, 0 };
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

		s->tx_again = false;
		iov.iov_len = len = tx_fill(qp, octets);
		if (len == 0)
			break;
		s->tx_busy = true;
		awk_qp_unlock(qp);
		n = kernel_sendmsg(s->sock, &msg, &iov, 1, len);
		awk_qp_lock(qp);
		s->tx_busy = false;
		s->broken |= n < 0 && n != -EAGAIN;
		aw_tx_sent(&qp->core, len);
	}
	awk_qp_drain(qp);
	awk_stream_arm(qp);
	more = s->sock && (s->tx_again || n < 0);
	awk_qp_unlock(qp);
	return more;
}

bool awk_lost_look(struct awk_qp *qp)
{
	(void)qp;
	return false;
}

void awk_pool_warm(void)
{
}

void awk_pool_grow(void)
{
}

void awk_pool_flush(void)
{
}

/* The stream has none. */
void awk_stage_put(struct awk_stage *stage)
{
	KSHIM_CHECK(!stage);
}

void awk_batch_put(struct awk_batch *batch)
{
	KSHIM_CHECK(!batch);
}
