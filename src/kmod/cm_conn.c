// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection's life: references, its work, its timer and its socket's callbacks.
#include "kmod/cm_conn.h"

#include "kmod/listen.h"
#include "kmod/qp.h"

#include <linux/slab.h>

static void conn_free(struct kref *refs)
{
	kfree(container_of(refs, struct awk_conn, refs));
}

void awk_conn_get(struct awk_conn *c)
{
	kref_get(&c->refs);
}

void awk_conn_put(struct awk_conn *c)
{
	kref_put(&c->refs, conn_free);
}

/* The work has a reference from the moment at which it is queued. */
void awk_conn_kick(struct awk_conn *c)
{
	awk_conn_get(c);
	if (!queue_work(awk_wq, &c->work))
		awk_conn_put(c);
}

static void conn_work(struct work_struct *work)
{
	struct awk_conn *c = container_of(work, struct awk_conn, work);

	awk_conn_step(c);
	awk_conn_tell(c);
	awk_conn_put(c);
}

/* finish deletes the timer before the connection gives its own reference up. */
static void on_timer(struct timer_list *timer)
{
	struct awk_conn *c = from_timer(c, timer, timer);

	awk_conn_kick(c);
}

struct awk_conn *awk_conn_create(bool initiator)
{
	struct awk_conn *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	kref_init(&c->refs);
	INIT_WORK(&c->work, conn_work);
	timer_setup(&c->timer, on_timer, 0);
	INIT_LIST_HEAD(&c->half_open);
	c->initiator = initiator;
	c->state = AWK_CONN_ANSWERING;
	if (awk_conn_enlist(c)) {
		awk_conn_put(c);
		return NULL;
	}
	return c;
}

static void on_event(struct sock *sk)
{
	struct awk_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = awk_sock_user(sk, on_event);
	if (c && awk_sock_is_over(sk))
		set_bit(AWK_CONN_GONE, &c->flags);
	if (c)
		awk_conn_kick(c);
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct awk_sock_ops conn_ops = {
	.data_ready = on_event,
	.state_change = on_event,
	.write_space = on_event,
};

void awk_conn_listen(struct awk_conn *c)
{
	awk_sock_take(c->sock->sk, c, &conn_ops, &c->saved);
	c->listens = true;
}

void awk_conn_deafen(struct awk_conn *c)
{
	if (c->listens)
		awk_sock_release(c->sock->sk, &c->saved);
	c->listens = false;
}

struct socket *awk_conn_take_sock(struct awk_conn *c)
{
	struct socket *sock = c->sock;

	awk_conn_deafen(c);
	c->sock = NULL;
	return sock;
}

void awk_conn_set_deadline(struct awk_conn *c, u32 ms)
{
	c->deadline = jiffies + msecs_to_jiffies(ms);
	mod_timer(&c->timer, c->deadline);
}

static void conn_flag(struct awk_conn *c, enum awk_conn_flag flag)
{
	if (!test_and_set_bit(flag, &c->flags))
		awk_conn_kick(c);
}

void awk_conn_abandon(struct awk_conn *c)
{
	conn_flag(c, AWK_CONN_ABANDONED);
}

void awk_conn_stream_leaves(struct awk_conn *c)
{
	conn_flag(c, AWK_CONN_LEAVES);
}

void awk_conn_stream_ended(struct awk_conn *c)
{
	conn_flag(c, AWK_CONN_ENDED);
}

void awk_conn_finish(struct awk_conn *c)
{
	struct socket *sock = awk_conn_take_sock(c);

	WRITE_ONCE(c->state, AWK_CONN_DONE);
	del_timer_sync(&c->timer);
	if (sock)
		sock_release(sock);
	if (c->listener)
		awk_listener_forget(c);
	if (c->cm_id)
		c->cm_id->rem_ref(c->cm_id);
	if (c->qp) {
		awk_stream_unclaim(c->qp);
		awk_qp_put(c->qp);
	}
	awk_conn_delist(c);
	awk_conn_put(c);
}
