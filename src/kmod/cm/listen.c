// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners: a worker accepts, and each connection's own worker goes on from there.
#include "kmod/cm/listen.h"

#include "kmod/base/device.h"
#include "kmod/base/work.h"
#include "kmod/cm/addr.h"
#include "kmod/cm/half_open.h"
#include "kmod/cm/policy.h"
#include "kmod/cm/secure.h"

#include <linux/fcntl.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#define ACCEPTS_MAX 64 /* per turn, so that other work has its turn */
#define PAUSE_MS 100 /* when memory is out, until some may have been freed */

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

/* 0; -EAGAIN: there is no more for now; or another error. */
static int accept_one(struct awk_listener *l)
{
	struct awk_conn *c;
	struct socket *sock;
	int err = kernel_accept(l->sock, &sock, O_NONBLOCK);

	if (err)
		return err;
	/* It has its listener's callbacks, and gets those that TCP would have given it: TCP's timers outlive the module. */
	awk_sock_release(sock->sk, &l->saved);
	c = awk_conn_create(false, awk_conn_work);
	if (!c) {
		sock_release(sock);
		return -ENOMEM;
	}
	c->sock = sock;
	c->tls = awk_policy_tls();
	c->local = awk_policy_local(AWK_RD_MAX, AWK_RD_MAX, c->tls);
	awk_addr_learn(sock, &c->local_addr, &c->remote_addr);
	awk_half_open_add(l, c);
	awk_conn_set_deadline(c, AWK_STARTUP_MS);
	/* From the new state on its worker may end it. */
	awk_conn_get(c);
	if (c->tls) {
		awk_secure_begin(c);
	} else {
		awk_conn_watch(c);
		awk_conn_enter(c, AWK_CONN_AWAIT_REQUEST);
	}
	awk_conn_kick(c);
	awk_conn_put(c);
	return 0;
}

static void accept_some(struct work_struct *work)
{
	struct awk_listener *l = container_of(to_delayed_work(work), struct awk_listener, work);
	u32 pause_ms = 0;
	int i, err;

	for (i = 0; i < ACCEPTS_MAX; i++) {
		if (!awk_half_open_make_room(l)) {
			pause_ms = AWK_HALF_OPEN_YOUNG_MS;
			break;
		}
		err = accept_one(l);
		if (err == -EAGAIN || err == -EINVAL)
			return;
		if (err == -ENOMEM || err == -ENOBUFS || err == -ENFILE || err == -EMFILE) {
			pause_ms = PAUSE_MS;
			break;
		}
		/* After any other error the connection was lost before: the next one may be there (accept(2)). */
	}
	queue_delayed_work(awk_wq, &l->work, msecs_to_jiffies(pause_ms));
}

/*
 * rdma_cm listens on each device for the "any" address, which here means the device's addresses.
 * With an address that a program gave, connections to it may come from anywhere.
 */
static int bind_listener(struct socket *sock, struct iw_cm_id *cm_id)
{
	struct sockaddr_storage *addr = &cm_id->m_local_addr;
	struct sock *sk = sock->sk;

	sock_set_reuseaddr(sk);
	if (cm_id->afonly && sk->sk_family == AF_INET6)
		ip6_sock_set_v6only(sk);
	if (cm_id->tos_set && sk->sk_family == AF_INET)
		ip_sock_set_tos(sk, cm_id->tos);
	if (awk_addr_is_any(addr))
		sk->sk_bound_dev_if = awk_device_of(cm_id->device)->netdev->ifindex;
	return kernel_bind(sock, (struct sockaddr *)addr, awk_addr_len(addr));
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
	const struct sockaddr_storage *addr = &l->cm_id->m_local_addr;
	struct net *net;
	int err;

	if (!awk_addr_len(addr))
		return -EAFNOSUPPORT;
	net = awk_device_net(awk_device_of(l->cm_id->device));
	if (!net)
		return -ENODEV;
	if (awk_net_is_callers(net))
		err = open_in_net(l, net, backlog);
	else
		err = awk_addr_is_any(addr) ? 0 : -EADDRNOTAVAIL;
	put_net(net);
	return err;
}

int awk_listen_create(struct iw_cm_id *cm_id, int backlog)
{
	struct awk_listener *l = awk_listener_create(cm_id, accept_some);
	int err;

	if (!l)
		return -ENOMEM;
	err = open_listener(l, backlog);
	if (err) {
		awk_listener_put(l);
		return err;
	}
	cm_id->add_ref(cm_id);
	cm_id->provider_data = l;
	return 0;
}

int awk_listen_destroy(struct iw_cm_id *cm_id)
{
	struct awk_listener *l = cm_id->provider_data;

	if (l->sock)
		awk_sock_release(l->sock->sk, &l->saved);
	cancel_delayed_work_sync(&l->work);
	awk_half_open_close(l);
	if (l->sock)
		sock_release(l->sock);
	cm_id->provider_data = NULL;
	cm_id->rem_ref(cm_id);
	awk_listener_put(l);
	return 0;
}
