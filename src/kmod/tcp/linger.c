// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closes a socket so that bytes that TCP already holds reach the peer: FIN, then read and drop what
// still comes until the peer's FIN or a deadline. Closing with unread input would reset the
// connection instead.
#include "kmod/tcp/linger.h"

#include "kmod/base/work.h"
#include "kmod/tcp/sock.h"
#include "kmod/tcp/tls.h"

#include <linux/list.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <net/tcp.h>

#define LINGER_MS 2000
#define UNACCEPTED_MAX 256
#define DROP_BYTES (1 << 20) /* bytes per turn, so that other work has its turn */

struct awk_lingerer {
	struct socket *sock;
	struct awk_sock_saved saved;
	struct delayed_work work; /* the deadline; at once when nothing will come any more */
	bool unaccepted;
	struct list_head entry; /* guarded by lock */
};

static DEFINE_SPINLOCK(lock); /* bh; inside of it a socket's callback lock; guards what follows */
static LIST_HEAD(lingerers);
static unsigned int unaccepted_count;
static DECLARE_WAIT_QUEUE_HEAD(empty);

static int drop_actor(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	len = min(len, desc->count);
	desc->count -= len;
	return len;
}

static void drop_input(struct sock *sk)
{
	read_descriptor_t desc = { .count = DROP_BYTES };

	sock_owned_by_me(sk);
	tcp_read_sock(sk, &desc, drop_actor);
}

static void on_data(struct sock *sk)
{
	struct awk_lingerer *l;

	read_lock_bh(&sk->sk_callback_lock);
	l = awk_sock_user(sk, on_data);
	if (l) {
		drop_input(sk);
		if (awk_sock_is_over(sk))
			mod_delayed_work(awk_wq, &l->work, 0);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_state(struct sock *sk)
{
	struct awk_lingerer *l;

	read_lock_bh(&sk->sk_callback_lock);
	l = awk_sock_user(sk, on_data);
	if (l && awk_sock_is_over(sk))
		mod_delayed_work(awk_wq, &l->work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void on_space(struct sock *sk)
{
	struct awk_lingerer *l;

	read_lock_bh(&sk->sk_callback_lock);
	l = awk_sock_user(sk, on_data);
	if (l)
		awk_sock_pass_space(sk, &l->saved);
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct awk_sock_ops linger_ops = {
	.data_ready = on_data,
	.state_change = on_state,
	.write_space = on_space,
};

/* Drops the input first, because closing with unread input would reset the connection. */
static void drop_and_close(struct socket *sock)
{
	lock_sock(sock->sk);
	drop_input(sock->sk);
	release_sock(sock->sk);
	awk_sock_close(sock);
}

/*
 * The work, at the deadline or before: only it ends a lingerer. A flush queues the works by the
 * list.
 */
static void linger_end(struct work_struct *work)
{
	struct awk_lingerer *l = container_of(to_delayed_work(work), struct awk_lingerer, work);

	spin_lock_bh(&lock);
	list_del(&l->entry);
	unaccepted_count -= l->unaccepted;
	if (list_empty(&lingerers))
		wake_up(&empty);
	spin_unlock_bh(&lock);
	awk_sock_release(l->sock->sk, &l->saved);
	cancel_delayed_work(&l->work); /* a callback may have queued it meanwhile */
	drop_and_close(l->sock);
	kfree(l);
}

/*
 * False: there are too many of that kind. A callback queues the work as soon as it is set, and a
 * flush as soon as the lingerer is listed: the lock keeps linger_end from all of it until the last
 * use here.
 */
static bool linger_enlist(struct awk_lingerer *l)
{
	struct sock *sk = l->sock->sk;
	bool fits;

	spin_lock_bh(&lock);
	fits = !l->unaccepted || unaccepted_count < UNACCEPTED_MAX;
	if (fits) {
		unaccepted_count += l->unaccepted;
		list_add_tail(&l->entry, &lingerers);
		awk_sock_take(sk, l, &linger_ops, &l->saved);
		queue_delayed_work(awk_wq, &l->work,
				   awk_sock_is_over(sk) ? 0 : msecs_to_jiffies(LINGER_MS));
	}
	spin_unlock_bh(&lock);
	return fits;
}

static void linger_begin(struct socket *sock, bool unaccepted)
{
	struct awk_lingerer *l = NULL;

	if (kernel_sock_shutdown(sock, SHUT_WR) == 0 && !awk_sock_is_over(sock->sk))
		l = kzalloc(sizeof(*l), GFP_NOIO);
	if (!l)
		goto close;
	l->sock = sock;
	l->unaccepted = unaccepted;
	INIT_DELAYED_WORK(&l->work, linger_end);
	if (linger_enlist(l))
		return;
	kfree(l);
close:
	drop_and_close(sock);
}

void awk_linger(struct socket *sock)
{
	linger_begin(sock, false);
}

void awk_linger_unaccepted(struct socket *sock)
{
	linger_begin(sock, true);
}

static bool linger_is_empty(void)
{
	bool is_empty;

	spin_lock_bh(&lock);
	is_empty = list_empty(&lingerers);
	spin_unlock_bh(&lock);
	return is_empty;
}

/* Called when no lingerer is added any more. */
void awk_linger_flush(void)
{
	struct awk_lingerer *l;

	spin_lock_bh(&lock);
	list_for_each_entry(l, &lingerers, entry) mod_delayed_work(awk_wq, &l->work, 0);
	spin_unlock_bh(&lock);
	wait_event(empty, linger_is_empty());
}
