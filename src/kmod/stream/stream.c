// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream's life, its worker, and the callbacks of its socket.
#include "kmod/stream/stream.h"

#include "kmod/stream/io.h"
#include "kmod/stream/pool.h"
#include "kmod/tcp/linger.h"
#include "kmod/tcp/tls.h"

#include <linux/random.h>
#include <linux/slab.h>

#define BATCHES_OF_DOORBELL 16 /* then the worker goes on: the poster has other things to do */
#define BATCHES_OF_WORKER 64 /* per turn, so that other work has its turn */

static void on_data(struct sock *sk)
{
	struct awk_qp *qp;

	read_lock_bh(&sk->sk_callback_lock);
	qp = awk_sock_user(sk, on_data);
	if (qp)
		awk_rx_arrived(qp, sk);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_state(struct sock *sk)
{
	struct awk_qp *qp;

	read_lock_bh(&sk->sk_callback_lock);
	qp = awk_sock_user(sk, on_data);
	if (qp && qp->stream->tls)
		awk_rx_tls_arrived(qp);
	else if (qp)
		awk_qp_kick(qp);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* TCP calls this only after it took less than it was given, at each acknowledgement until SOCK_NOSPACE is cleared. */
static void on_space(struct sock *sk)
{
	struct awk_qp *qp;

	read_lock_bh(&sk->sk_callback_lock);
	qp = awk_sock_user(sk, on_data);
	if (qp)
		awk_sock_pass_space(sk, &qp->stream->saved);
	if (qp && sk_stream_is_writeable(sk)) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		set_bit(AWK_STREAM_ROOM, &qp->stream->flags);
		awk_qp_kick(qp);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct awk_sock_ops stream_ops = {
	.data_ready = on_data,
	.state_change = on_state,
	.write_space = on_space,
};

/* Only the worker gives the socket up, so it may use the socket without the lock. */
static void stream_work(struct work_struct *work)
{
	struct awk_qp *qp = container_of(work, struct awk_qp, work);
	struct socket *sock = READ_ONCE(qp->stream->sock);
	bool more = sock && awk_rx_serve(qp, sock->sk);

	more |= awk_tx_run(qp, BATCHES_OF_WORKER);
	awk_stream_settle(qp);
	if (more)
		awk_qp_kick(qp);
}

static void on_timer(struct timer_list *timer)
{
	struct awk_stream *s = from_timer(s, timer, timer);

	awk_qp_kick(s->qp);
}

int awk_stream_create(struct awk_qp *qp)
{
	struct awk_stream *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return -ENOMEM;
	INIT_WORK(&qp->work, stream_work);
	timer_setup(&s->timer, on_timer, 0);
	tasklet_setup(&s->answer, awk_tx_answer);
	init_waitqueue_head(&s->over);
	s->qp = qp;
	qp->stream = s;
	return 0;
}

void awk_stream_push(struct awk_qp *qp)
{
	bool more = awk_tx_run(qp, BATCHES_OF_DOORBELL);

	awk_qp_lock(qp);
	more |= awk_stream_ends(qp);
	awk_qp_unlock(qp);
	if (more)
		awk_qp_kick(qp);
}

void awk_stream_recv_posted(struct awk_qp *qp)
{
	if (READ_ONCE(qp->stream->rx_waits) || READ_ONCE(qp->core.state) > AW_QP_RTS)
		awk_qp_kick(qp);
}

int awk_stream_claim(struct awk_qp *qp, struct awk_stream_user *user)
{
	struct awk_stream *s = qp->stream;
	int err;

	awk_qp_lock(qp);
	err = qp->core.state != AW_QP_IDLE || s->sock || s->user ? -EINVAL : 0;
	if (!err) {
		user->ops->get(user);
		s->user = user;
	}
	awk_qp_unlock(qp);
	return err;
}

void awk_stream_unclaim(struct awk_qp *qp)
{
	struct awk_stream *s = qp->stream;
	struct awk_stream_user *user;

	awk_qp_lock(qp);
	user = s->user;
	s->user = NULL;
	wake_up(&s->over);
	awk_qp_unlock(qp);
	user->ops->put(user);
}

static void stream_begin(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream)
{
	struct awk_stream *s = qp->stream;

	lockdep_assert_held(&qp->lock);
	s->tx_again = s->tx_blocked = s->starved = s->broken = s->lost = s->looking = s->rx_waits =
		false;
	s->ending = (struct aw_ending){ 0 };
	s->liveness = (struct aw_liveness){ 0 };
	s->emss_pos = 0;
	s->stage_pos = U64_MAX;
	stream->emss = awk_sock_segment_size(sock->sk);
	stream->stag_seed = get_random_u32();
	qp->core.copies = true; /* pages have no address that TCP could read from */
	aw_rnr_wait_begin(&s->rnr_wait, &qp->core);
	aw_qp_start(&qp->core, stream);
	/* Pairs with the worker's read, which takes no lock: it sees an initialised socket. */
	smp_store_release(&s->sock, sock);
}

int awk_stream_attach(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream)
{
	int err;

	awk_pool_warm();
	awk_pool_grow();
	/*
	 * Callbacks take the QP's lock, so this function installs them before it takes that lock. Until the stream begins they
	 * read nothing.
	 */
	WRITE_ONCE(qp->stream->tls, awk_tls_is_on(sock->sk));
	set_bit(AWK_STREAM_ARRIVED, &qp->stream->flags);
	awk_sock_take(sock->sk, qp, &stream_ops, &qp->stream->saved);
	awk_qp_lock(qp);
	err = qp->core.state != AW_QP_IDLE || qp->core.local_closed ? -EINVAL : 0;
	if (!err)
		stream_begin(qp, sock, stream);
	awk_qp_unlock(qp);
	if (err)
		awk_sock_release(sock->sk, &qp->stream->saved);
	else
		awk_qp_kick(qp);
	return err;
}

static bool stream_is_over(struct awk_qp *qp)
{
	bool is_over;

	awk_qp_lock(qp);
	is_over = !qp->stream->sock && !qp->stream->user;
	awk_qp_unlock(qp);
	return is_over;
}

void awk_stream_end_wait(struct awk_qp *qp)
{
	awk_qp_lock(qp);
	aw_qp_abort(&qp->core, AW_OK);
	awk_qp_unlock(qp);
	awk_qp_kick(qp);
	wait_event(qp->stream->over, stream_is_over(qp));
}

void awk_stream_reset(struct awk_qp *qp)
{
	awk_qp_lock(qp);
	if (qp->core.state == AW_QP_ERROR && !qp->stream->sock && !qp->stream->user)
		awk_qp_core_init(qp);
	awk_qp_unlock(qp);
}

/* Without a socket nothing arrives. The timer queues the work, and the work starts the timer only while there is a socket. */
void awk_stream_destroy(struct awk_qp *qp)
{
	tasklet_kill(&qp->stream->answer);
	cancel_work_sync(&qp->work);
	del_timer_sync(&qp->stream->timer);
	cancel_work_sync(&qp->work);
	kfree(qp->stream);
}

int awk_stream_init_module(void)
{
	return awk_work_init_module();
}

void awk_stream_exit_module(void)
{
	awk_linger_flush();
	awk_work_exit_module();
	awk_pool_flush();
}
