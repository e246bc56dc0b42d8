// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Makes an initiator's TCP connection.
#include "core/attempt.h"
#include "kmod/cm/addr.h"
#include "kmod/cm/conn.h"
#include "kmod/cm/order.h"

#include <linux/fcntl.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>

static void set_tos(struct sock *sk, int tos)
{
	if (tos < 0)
		return;
	if (sk->sk_family == AF_INET) {
		ip_sock_set_tos(sk, tos);
		return;
	}
	lock_sock(sk);
	inet6_sk(sk)->tclass = tos;
	release_sock(sk);
}

/*
 * rdma_cm chooses a port among its own, and TCP may have it in use: then another port is bound, as
 * where a port mapper maps it.
 */
static int bind_local(struct awk_conn *c)
{
	struct sockaddr *local = (struct sockaddr *)&c->local_addr;
	int len = awk_addr_len(&c->local_addr);
	int err;

	if (!len || (awk_addr_is_any(&c->local_addr) && !awk_addr_port(&c->local_addr)))
		return 0;
	err = kernel_bind(c->sock, local, len);
	if (err != -EADDRINUSE || !awk_addr_port(&c->local_addr))
		return err;
	awk_addr_set_port(&c->local_addr, 0);
	return kernel_bind(c->sock, local, len);
}

int awk_conn_try_tcp(struct awk_conn *c)
{
	int err = kernel_connect(c->sock, (struct sockaddr *)&c->remote_addr,
				 awk_addr_len(&c->remote_addr), O_NONBLOCK);

	if (err == -EALREADY)
		return -EINPROGRESS;
	return err == -EISCONN ? 0 : err;
}

int awk_conn_open(struct awk_conn *c, struct net *net, int tos)
{
	int err;

	if (!awk_addr_len(&c->remote_addr))
		return -EAFNOSUPPORT;
	err = awk_sock_create(net, c->remote_addr.ss_family, &c->sock);
	if (err)
		return err;
	awk_sock_set_options(c->sock->sk);
	sock_set_reuseaddr(c->sock->sk);
	set_tos(c->sock->sk, tos);
	err = bind_local(c);
	if (err)
		return err;
	awk_conn_watch(c);
	/* A second try takes its place at once: what it replaces has had its turn. */
	if (c->again) {
		awk_order_lead(c);
	} else if (!awk_order_take(c)) {
		awk_conn_set_deadline(c, AW_ATTEMPT_WAIT_MS);
		awk_conn_enter(c, AWK_CONN_WAITING);
		return 0;
	}
	awk_conn_try_tcp(c); /* the worker tries again, and gets errors too */
	awk_conn_set_deadline(c, AWK_STARTUP_MS);
	awk_conn_enter(c, AWK_CONN_CONNECTING);
	return 0;
}

/* Writes a Request of revision 1 with the same private data. */
static void write_plain_request(struct awk_conn *c)
{
	struct mpa_frame asked = { 0 };
	size_t used, front;

	mpa_parse(c->out.octets, c->out.len, &asked, &used);
	front = asked.flags & MPA_FLAG_ENHANCED ? MPA_ENH_LEN : 0;
	memcpy(c->in.octets, asked.pd + front, asked.pd_len - front);
	c->local.revision = 1;
	c->local.p2p = false;
	c->out.len = aw_mpa_request(&c->local, c->in.octets, asked.pd_len - front, c->out.octets);
}

int awk_conn_open_again(struct awk_conn *c, bool plainly)
{
	struct socket *before = awk_conn_take_sock(c);
	const struct sock *sk = before->sk;
	int err;

	if (plainly)
		write_plain_request(c);
	c->again = true;
	c->refusals = 0;
	c->out.done = c->in.done = 0;
	awk_addr_set_port(&c->local_addr, 0); /* the old port is not free yet */
	err = awk_conn_open(c, sock_net(sk),
			    sk->sk_family == AF_INET ? inet_sk(sk)->tos : inet6_sk(sk)->tclass);
	awk_sock_close(before);
	return err;
}
