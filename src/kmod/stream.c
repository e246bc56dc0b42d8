// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stream's life, its worker, and the callbacks of its socket.
#include "kmod/stream.h"

#include "kmod/cm_conn.h"
#include "kmod/stream_io.h"
#include "kmod/stream_pool.h"

#include <linux/random.h>

#define BATCHES_OF_DOORBELL 16 /* then the worker goes on: the poster has other things to do */
#define BATCHES_OF_WORKER 64 /* per turn, so that other work has its turn */

struct workqueue_struct *awk_wq;

static void on_data(struct sock *sk)
{
	struct awk_stream *s;

	read_lock_bh(&sk->sk_callback_lock);
	s = awk_sock_user(sk, on_data);
	if (s)
		awk_rx_arrived(awk_stream_qp(s), sk);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_state(struct sock *sk)
{
	struct awk_stream *s;

	read_lock_bh(&sk->sk_callback_lock);
	s = awk_sock_user(sk, on_data);
	if (s)
		awk_stream_wake(s);
	read_unlock_bh(&sk->sk_callback_lock);
}

/* TCP calls this only after it took less than it was given, at each acknowledgement until SOCK_NOSPACE is cleared. */
static void on_space(struct sock *sk)
{
	struct awk_stream *s;

	read_lock_bh(&sk->sk_callback_lock);
	s = awk_sock_user(sk, on_data);
	if (s && sk_stream_is_writeable(sk)) {
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		set_bit(AWK_STREAM_ROOM, &s->flags);
		awk_stream_wake(s);
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
	struct awk_stream *s = container_of(work, struct awk_stream, work);
	struct awk_qp *qp = awk_stream_qp(s);
	struct socket *sock = READ_ONCE(s->sock);
	bool more = sock && awk_rx_serve(qp, sock->sk);

	more |= awk_tx_run(qp, BATCHES_OF_WORKER);
	awk_stream_settle(qp);
	if (more)
		awk_stream_wake(s);
}

static void on_timer(struct timer_list *timer)
{
	struct awk_stream *s = from_timer(s, timer, timer);

	awk_stream_wake(s);
}

void awk_stream_init(struct awk_qp *qp)
{
	struct awk_stream *s = &qp->stream;

	INIT_WORK(&s->work, stream_work);
	timer_setup(&s->timer, on_timer, 0);
	init_waitqueue_head(&s->over);
}

void awk_stream_kick(struct awk_qp *qp)
{
	awk_stream_wake(&qp->stream);
}

void awk_stream_push(struct awk_qp *qp)
{
	bool more = awk_tx_run(qp, BATCHES_OF_DOORBELL);

	awk_qp_lock(qp);
	more |= awk_stream_ends(qp);
	awk_qp_unlock(qp);
	if (more)
		awk_stream_wake(&qp->stream);
}

void awk_stream_recv_posted(struct awk_qp *qp)
{
	if (READ_ONCE(qp->stream.rx_waits) || READ_ONCE(qp->core.state) > AW_QP_RTS)
		awk_stream_wake(&qp->stream);
}

int awk_stream_claim(struct awk_qp *qp, struct awk_conn *conn)
{
	struct awk_stream *s = &qp->stream;
	int err;

	awk_qp_lock(qp);
	err = qp->core.state != AW_QP_IDLE || s->sock || s->conn ? -EINVAL : 0;
	if (!err) {
		awk_conn_get(conn);
		s->conn = conn;
	}
	awk_qp_unlock(qp);
	return err;
}

void awk_stream_unclaim(struct awk_qp *qp)
{
	struct awk_stream *s = &qp->stream;
	struct awk_conn *conn;

	awk_qp_lock(qp);
	conn = s->conn;
	s->conn = NULL;
	wake_up(&s->over);
	awk_qp_unlock(qp);
	awk_conn_put(conn);
}

/* The caller holds the lock. */
static void stream_begin(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream)
{
	struct awk_stream *s = &qp->stream;

	s->tx_again = s->tx_blocked = s->starved = s->broken = s->ending = s->fin_sent = s->lost =
		s->looking = s->rx_waits = false;
	s->emss_pos = 0;
	s->rnr_pos = s->stage_pos = U64_MAX;
	stream->emss = awk_sock_segment_size(sock->sk);
	stream->stag_seed = get_random_u32();
	qp->core.copies = true; /* pages have no address that TCP could read from */
	qp->core.rnr_holds = true;
	aw_qp_start(&qp->core, stream);
	/* Pairs with the worker's read, which takes no lock: it sees an initialised socket. */
	smp_store_release(&s->sock, sock);
}

int awk_stream_attach(struct awk_qp *qp, struct socket *sock, struct aw_stream *stream)
{
	int err;

	awk_pool_warm();
	/*
	 * Callbacks take the QP's lock, so this function installs them before it takes that lock. Until the stream begins they
	 * read nothing.
	 */
	awk_sock_take(sock->sk, &qp->stream, &stream_ops, &qp->stream.saved);
	awk_qp_lock(qp);
	err = qp->core.state != AW_QP_IDLE || qp->core.local_closed ? -EINVAL : 0;
	if (!err)
		stream_begin(qp, sock, stream);
	awk_qp_unlock(qp);
	if (err)
		awk_sock_release(sock->sk, &qp->stream.saved);
	else
		awk_stream_wake(&qp->stream);
	return err;
}

static bool stream_is_over(struct awk_qp *qp)
{
	bool is_over;

	awk_qp_lock(qp);
	is_over = !qp->stream.sock && !qp->stream.conn;
	awk_qp_unlock(qp);
	return is_over;
}

void awk_stream_end_wait(struct awk_qp *qp)
{
	awk_qp_lock(qp);
	aw_qp_abort(&qp->core, AW_OK);
	awk_qp_unlock(qp);
	awk_stream_wake(&qp->stream);
	wait_event(qp->stream.over, stream_is_over(qp));
}

/* The timer queues the work, and the work starts the timer only while there is a socket. */
void awk_stream_destroy(struct awk_qp *qp)
{
	cancel_work_sync(&qp->stream.work);
	del_timer_sync(&qp->stream.timer);
	cancel_work_sync(&qp->stream.work);
}

int awk_stream_init_module(void)
{
	awk_wq = alloc_workqueue("anywarp", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return awk_wq ? 0 : -ENOMEM;
}

void awk_stream_exit_module(void)
{
	awk_linger_flush();
	destroy_workqueue(awk_wq);
	awk_pool_flush();
}
