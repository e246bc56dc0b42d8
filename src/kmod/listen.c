// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners: a worker accepts, and each connection's own worker goes on from there.
#include "kmod/listen.h"

#include "kmod/cm_addr.h"
#include "kmod/cm_policy.h"
#include "kmod/device.h"
#include "kmod/stream.h"

#include <linux/fcntl.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#define ACCEPTS_MAX 64 /* per turn, so that other work has its turn */
#define PAUSE_MS 100 /* when memory is out, until some may have been freed */

struct awk_listener {
	/* fixed after create */
	struct kref refs;
	struct iw_cm_id *cm_id; /* a reference, until destroy */
	struct socket *sock; /* or NULL: no connection can come */
	struct awk_sock_saved saved;
	struct delayed_work work;

	spinlock_t lock; /* process context, innermost; guards what follows */
	bool closing;
	unsigned int telling; /* connections whose Request iw_cm is being told of */
	wait_queue_head_t told;
	struct list_head half_open; /* the oldest first */
	unsigned int half_open_count;
};

static void listener_free(struct kref *refs)
{
	kfree(container_of(refs, struct awk_listener, refs));
}

static void listener_put(struct awk_listener *l)
{
	kref_put(&l->refs, listener_free);
}

/* Also called for connections in TCP's backlog, which have the callback and no user. */
static void on_event(struct sock *sk)
{
	struct awk_listener *l;

	read_lock_bh(&sk->sk_callback_lock);
	l = awk_sock_user(sk, on_event);
	if (l)
		mod_delayed_work(awk_wq, &l->work, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

static const struct awk_sock_ops listen_ops = {
	.data_ready = on_event,
	.state_change = on_event,
	.write_space = on_event,
};

/* The caller holds the lock. */
static void take_off(struct awk_listener *l, struct awk_conn *c)
{
	if (list_empty(&c->half_open))
		return;
	list_del_init(&c->half_open);
	l->half_open_count--;
}

bool awk_listener_claim(struct awk_conn *c)
{
	struct awk_listener *l = c->listener;
	bool open;

	spin_lock(&l->lock);
	open = !l->closing;
	if (open) {
		take_off(l, c);
		l->telling++;
	}
	spin_unlock(&l->lock);
	if (open)
		c->listener = NULL;
	return open;
}

int awk_listener_tell(struct awk_listener *l, struct iw_cm_event *event)
{
	return l->cm_id->event_handler(l->cm_id, event);
}

void awk_listener_told(struct awk_listener *l)
{
	spin_lock(&l->lock);
	l->telling--;
	wake_up(&l->told);
	spin_unlock(&l->lock);
	listener_put(l);
}

void awk_listener_forget(struct awk_conn *c)
{
	struct awk_listener *l = c->listener;

	spin_lock(&l->lock);
	take_off(l, c);
	spin_unlock(&l->lock);
	c->listener = NULL;
	listener_put(l);
}

/*
 * A client that behaves sends its Request at once, so the connection that has been silent longest
 * is dropped, and silent peers cannot keep others out. False: all are too young for that.
 */
static bool make_room(struct awk_listener *l)
{
	struct awk_conn *oldest = NULL;
	bool room;

	spin_lock(&l->lock);
	room = l->half_open_count < AWK_HALF_OPEN_MAX;
	if (!room)
		oldest = list_first_entry(&l->half_open, struct awk_conn, half_open);
	if (oldest &&
	    time_before(jiffies, oldest->since + msecs_to_jiffies(AWK_HALF_OPEN_YOUNG_MS)))
		oldest = NULL;
	if (oldest) {
		take_off(l, oldest);
		awk_conn_abandon(oldest);
		room = true;
	}
	spin_unlock(&l->lock);
	return room;
}

/* An accepted socket has its listener's callbacks; it gets those that TCP would have given it. */
static void begin_half_open(struct awk_listener *l, struct awk_conn *c, struct socket *sock)
{
	awk_sock_release(sock->sk, &l->saved);
	c->sock = sock;
	c->local = awk_policy_local(AWK_RD_MAX, AWK_RD_MAX);
	c->since = jiffies;
	awk_addr_learn(sock, &c->near, &c->far);
	kref_get(&l->refs);
	c->listener = l;
	spin_lock(&l->lock);
	list_add_tail(&c->half_open, &l->half_open);
	l->half_open_count++;
	spin_unlock(&l->lock);
	awk_conn_set_deadline(c, AWK_STARTUP_MS);
	awk_conn_listen(c);
	/* From here on its worker may end it. */
	awk_conn_get(c);
	smp_store_release(&c->state, AWK_CONN_AWAIT_REQUEST);
	awk_conn_kick(c);
	awk_conn_put(c);
}

/* 0; -EAGAIN: there is no more for now; or another error. */
static int accept_one(struct awk_listener *l)
{
	struct awk_conn *c;
	struct socket *sock;
	int err = kernel_accept(l->sock, &sock, O_NONBLOCK);

	if (err)
		return err;
	c = awk_conn_create(false);
	if (!c) {
		awk_sock_release(sock->sk, &l->saved); /* TCP's timers outlive the module */
		sock_release(sock);
		return -ENOMEM;
	}
	begin_half_open(l, c, sock);
	return 0;
}

/*
 * After any other error the connection was lost before it was accepted: the next one may be there
 * (accept(2)).
 */
static bool is_shortage(int err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -ENFILE || err == -EMFILE;
}

static void accept_some(struct work_struct *work)
{
	struct awk_listener *l = container_of(to_delayed_work(work), struct awk_listener, work);
	u32 pause_ms = 0;
	int i, err;

	for (i = 0; i < ACCEPTS_MAX; i++) {
		if (!make_room(l)) {
			pause_ms = AWK_HALF_OPEN_YOUNG_MS;
			break;
		}
		err = accept_one(l);
		if (err == -EAGAIN || err == -EINVAL)
			return;
		if (is_shortage(err)) {
			pause_ms = PAUSE_MS;
			break;
		}
	}
	queue_delayed_work(awk_wq, &l->work, msecs_to_jiffies(pause_ms));
}

static struct awk_listener *listener_create(struct iw_cm_id *cm_id)
{
	struct awk_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return NULL;
	kref_init(&l->refs);
	l->cm_id = cm_id;
	INIT_DELAYED_WORK(&l->work, accept_some);
	spin_lock_init(&l->lock);
	init_waitqueue_head(&l->told);
	INIT_LIST_HEAD(&l->half_open);
	return l;
}

/*
 * rdma_cm listens on each device for the "any" address, which here means the device's addresses.
 * With an address that a program gave, connections to it may come from anywhere.
 */
static int bind_listener(struct socket *sock, struct iw_cm_id *cm_id)
{
	struct sockaddr_storage *near = &cm_id->m_local_addr;
	struct sock *sk = sock->sk;

	sock_set_reuseaddr(sk);
	if (cm_id->afonly && sk->sk_family == AF_INET6)
		ip6_sock_set_v6only(sk);
	if (cm_id->tos_set && sk->sk_family == AF_INET)
		ip_sock_set_tos(sk, cm_id->tos);
	if (awk_addr_is_any(near))
		sk->sk_bound_dev_if = awk_device_of(cm_id->device)->netdev->ifindex;
	return kernel_bind(sock, (struct sockaddr *)near, awk_addr_len(near));
}

static int open_in_net(struct awk_listener *l, struct net *net, int backlog)
{
	int family = l->cm_id->m_local_addr.ss_family;
	int err;

	err = awk_sock_create(net, family, &l->sock);
	if (err)
		return err;
	awk_sock_set_options(l->sock->sk); /* accepted sockets inherit them */
	err = bind_listener(l->sock, l->cm_id);
	if (err)
		goto release;
	awk_sock_take(l->sock->sk, l, &listen_ops, &l->saved);
	err = kernel_listen(l->sock, backlog);
	if (err)
		goto give_back;
	return 0;

give_back:
	awk_sock_release(l->sock->sk, &l->saved);
	cancel_delayed_work_sync(&l->work);
release:
	sock_release(l->sock);
	return err;
}

/*
 * rdma_cm listens for the "any" address on the devices of other network namespaces too, and fails
 * when one of them does: there the listener is without a socket, so that a program takes no port of
 * a network that is not its own.
 */
static int open_listener(struct awk_listener *l, int backlog)
{
	const struct sockaddr_storage *near = &l->cm_id->m_local_addr;
	struct net *net;
	int err;

	if (!awk_addr_len(near))
		return -EAFNOSUPPORT;
	net = awk_device_net(awk_device_of(l->cm_id->device));
	if (!net)
		return -ENODEV;
	if (awk_net_is_callers(net))
		err = open_in_net(l, net, backlog);
	else
		err = awk_addr_is_any(near) ? 0 : -EADDRNOTAVAIL;
	put_net(net);
	return err;
}

int awk_listen_create(struct iw_cm_id *cm_id, int backlog)
{
	struct awk_listener *l = listener_create(cm_id);
	int err;

	if (!l)
		return -ENOMEM;
	err = open_listener(l, backlog);
	if (err) {
		listener_put(l);
		return err;
	}
	cm_id->add_ref(cm_id);
	cm_id->provider_data = l;
	return 0;
}

static bool nobody_tells(struct awk_listener *l)
{
	bool quiet;

	spin_lock(&l->lock);
	quiet = l->telling == 0;
	spin_unlock(&l->lock);
	return quiet;
}

static void end_half_open(struct awk_listener *l)
{
	struct awk_conn *c;

	spin_lock(&l->lock);
	l->closing = true;
	list_for_each_entry(c, &l->half_open, half_open) awk_conn_abandon(c);
	spin_unlock(&l->lock);
	wait_event(l->told, nobody_tells(l));
}

int awk_listen_destroy(struct iw_cm_id *cm_id)
{
	struct awk_listener *l = cm_id->provider_data;

	if (l->sock)
		awk_sock_release(l->sock->sk, &l->saved);
	cancel_delayed_work_sync(&l->work);
	end_half_open(l);
	if (l->sock)
		sock_release(l->sock);
	cm_id->provider_data = NULL;
	cm_id->rem_ref(cm_id);
	listener_put(l);
	return 0;
}
