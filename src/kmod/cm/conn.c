// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection's life: references, state, its timer, its socket's callbacks, and the table of all. iw_cm knows a Request by
// its number in that table, because it may drop an event with all that it names; and the module waits for the last
// connection.
#include "kmod/cm/conn.h"

#include "kmod/base/work.h"
#include "kmod/qp/qp.h"

#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/xarray.h>

static DEFINE_XARRAY_FLAGS(conns, XA_FLAGS_ALLOC1);
/* A number is not used again for long, because a program may come late with it. */
static u32 next_handle;
static DECLARE_WAIT_QUEUE_HEAD(conns_empty);

static const unsigned int arrows[] = {
	[AWK_CONN_WAITING] = BIT(AWK_CONN_CONNECTING) | BIT(AWK_CONN_OVER),
	[AWK_CONN_CONNECTING] = BIT(AWK_CONN_SECURING) | BIT(AWK_CONN_SENDING) |
				BIT(AWK_CONN_REFUSED) | BIT(AWK_CONN_OVER),
	[AWK_CONN_REFUSED] = BIT(AWK_CONN_CONNECTING) | BIT(AWK_CONN_OVER),
	[AWK_CONN_SECURING] = BIT(AWK_CONN_SENDING) | BIT(AWK_CONN_AWAIT_REQUEST) |
			      BIT(AWK_CONN_OVER),
	[AWK_CONN_SENDING] = BIT(AWK_CONN_AWAIT_REPLY) | BIT(AWK_CONN_OVER),
	[AWK_CONN_AWAIT_REPLY] = BIT(AWK_CONN_RUNNING) | BIT(AWK_CONN_CONNECTING) |
				 BIT(AWK_CONN_OVER),
	[AWK_CONN_AWAIT_REQUEST] = BIT(AWK_CONN_DECIDING) | BIT(AWK_CONN_OVER),
	[AWK_CONN_DECIDING] = 0, /* awk_conn_claim */
	[AWK_CONN_ANSWERING] = BIT(AWK_CONN_WAITING) | BIT(AWK_CONN_CONNECTING) |
			       BIT(AWK_CONN_SECURING) | BIT(AWK_CONN_AWAIT_REQUEST) |
			       BIT(AWK_CONN_RUNNING) | BIT(AWK_CONN_OVER) | BIT(AWK_CONN_DONE),
	[AWK_CONN_RUNNING] = BIT(AWK_CONN_DONE),
	[AWK_CONN_OVER] = BIT(AWK_CONN_DONE),
	[AWK_CONN_DONE] = 0,
};

void awk_conn_enter(struct awk_conn *c, enum awk_conn_state next)
{
	WARN_ON_ONCE(!(arrows[c->state] & BIT(next)));
	/* The next owner sees all that this one has written. */
	smp_store_release(&c->state, next);
}

bool awk_conn_claim(struct awk_conn *c)
{
	return cmpxchg(&c->state, AWK_CONN_DECIDING, AWK_CONN_ANSWERING) == AWK_CONN_DECIDING;
}

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

static void conn_flag(struct awk_conn *c, enum awk_conn_flag flag)
{
	if (!test_and_set_bit(flag, &c->flags))
		awk_conn_kick(c);
}

void awk_conn_abandon(struct awk_conn *c)
{
	conn_flag(c, AWK_CONN_ABANDONED);
}

static struct awk_conn *conn_of(struct awk_stream_user *user)
{
	return container_of(user, struct awk_conn, user);
}

static void user_get(struct awk_stream_user *user)
{
	awk_conn_get(conn_of(user));
}

static void user_put(struct awk_stream_user *user)
{
	awk_conn_put(conn_of(user));
}

static void user_report(struct awk_stream_user *user, enum awk_stream_news news)
{
	switch (news) {
	case AWK_STREAM_REFUSED:
		awk_conn_abandon(conn_of(user));
		break;
	case AWK_STREAM_ENDING:
		conn_flag(conn_of(user), AWK_CONN_STREAM_ENDING);
		break;
	case AWK_STREAM_ENDED:
		conn_flag(conn_of(user), AWK_CONN_STREAM_ENDED);
		break;
	}
}

static const struct awk_stream_user_ops user_ops = {
	.get = user_get,
	.put = user_put,
	.report = user_report,
};

/* finish deletes the timer before the connection gives its own reference up. */
static void on_timer(struct timer_list *timer)
{
	struct awk_conn *c = from_timer(c, timer, timer);

	awk_conn_kick(c);
}

struct awk_conn *awk_conn_create(bool initiator, work_func_t work)
{
	struct awk_conn *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	kref_init(&c->refs);
	c->user.ops = &user_ops;
	INIT_WORK(&c->work, work);
	timer_setup(&c->timer, on_timer, 0);
	INIT_LIST_HEAD(&c->half_open);
	c->initiator = initiator;
	c->state = AWK_CONN_ANSWERING;
	if (xa_alloc_cyclic(&conns, &c->handle, c, xa_limit_32b, &next_handle, GFP_KERNEL) < 0) {
		awk_conn_put(c);
		return NULL;
	}
	return c;
}

struct awk_conn *awk_conn_find(u32 handle)
{
	struct awk_conn *c;

	xa_lock(&conns);
	c = xa_load(&conns, handle);
	if (c)
		awk_conn_get(c);
	xa_unlock(&conns);
	return c;
}

static void on_event(struct sock *sk)
{
	struct awk_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = awk_sock_user(sk, on_event);
	if (c && awk_sock_is_over(sk))
		set_bit(AWK_CONN_PEER_CLOSED, &c->flags);
	if (c)
		awk_conn_kick(c);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_space(struct sock *sk)
{
	struct awk_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = awk_sock_user(sk, on_event);
	if (c) {
		awk_sock_pass_space(sk, &c->saved);
		awk_conn_kick(c);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct awk_sock_ops conn_ops = {
	.data_ready = on_event,
	.state_change = on_event,
	.write_space = on_space,
};

void awk_conn_watch(struct awk_conn *c)
{
	awk_sock_take(c->sock->sk, c, &conn_ops, &c->saved);
	c->watched = true;
}

void awk_conn_unwatch(struct awk_conn *c)
{
	if (c->watched)
		awk_sock_release(c->sock->sk, &c->saved);
	c->watched = false;
}

struct socket *awk_conn_take_sock(struct awk_conn *c)
{
	struct socket *sock = c->sock;

	awk_conn_unwatch(c);
	c->sock = NULL;
	return sock;
}

void awk_conn_set_deadline(struct awk_conn *c, u32 ms)
{
	c->deadline = jiffies + msecs_to_jiffies(ms);
	mod_timer(&c->timer, c->deadline);
}

void awk_conn_finish(struct awk_conn *c)
{
	struct socket *sock = awk_conn_take_sock(c);

	awk_conn_enter(c, AWK_CONN_DONE);
	del_timer_sync(&c->timer);
	if (sock)
		awk_sock_close(sock);
	if (c->cm_id)
		c->cm_id->rem_ref(c->cm_id);
	if (c->qp) {
		awk_stream_unclaim(c->qp);
		awk_qp_put(c->qp);
	}
	xa_erase(&conns, c->handle);
	wake_up(&conns_empty);
	awk_conn_put(c);
}

/* An insert that ran out of memory may leave nodes without an entry: xa_empty is never true again. */
static bool no_conn_is_left(void)
{
	unsigned long handle = 0;

	return !xa_find(&conns, &handle, ULONG_MAX, XA_PRESENT);
}

void awk_conn_flush(void)
{
	struct awk_conn *c;
	unsigned long handle;

	xa_lock(&conns);
	xa_for_each(&conns, handle, c) awk_conn_abandon(c);
	xa_unlock(&conns);
	wait_event(conns_empty, no_conn_is_left());
	xa_destroy(&conns);
}
