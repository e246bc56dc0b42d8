// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets, their options and their callbacks.
#include "kmod/tcp/sock.h"

#include <linux/module.h>
#include <net/tcp.h>

/*
 * A peer that answers none of TCP's probes is lost after two minutes, as in user space: the first
 * probe is sent after one minute, and four more at this interval.
 */
#define KEEP_IDLE_S 60
#define KEEP_BETWEEN_S 15
#define KEEP_COUNT 4

#define SEGMENT_LEAST 536 /* RFC 9293 3.7.1: what every path can be asked to carry */
#define SEGMENT_SANE 128

void awk_sock_take(struct sock *sk, void *user, const struct awk_sock_ops *ops,
		   struct awk_sock_saved *saved)
{
	write_lock_bh(&sk->sk_callback_lock);
	saved->data_ready = sk->sk_data_ready;
	saved->state_change = sk->sk_state_change;
	saved->write_space = sk->sk_write_space;
	saved->error_report = sk->sk_error_report;
	__rcu_assign_sk_user_data_with_flags(sk, user, SK_USER_DATA_NOCOPY);
	sk->sk_data_ready = ops->data_ready;
	sk->sk_state_change = ops->state_change;
	sk->sk_write_space = ops->write_space;
	sk->sk_error_report = ops->state_change;
	write_unlock_bh(&sk->sk_callback_lock);
}

void awk_sock_release(struct sock *sk, const struct awk_sock_saved *saved)
{
	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, NULL);
	sk->sk_data_ready = saved->data_ready;
	sk->sk_state_change = saved->state_change;
	sk->sk_write_space = saved->write_space;
	sk->sk_error_report = saved->error_report;
	write_unlock_bh(&sk->sk_callback_lock);
}

/*
 * Not a kernel's socket: its namespace would not wait for it, and TCP's timers outlive the close.
 */
int awk_sock_create(struct net *net, int family, struct socket **sock)
{
	return __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, sock, 0);
}

void awk_sock_set_options(struct sock *sk)
{
	/* Consumers may be on the way to free memory: swap over NFS or NVMe. */
	sk->sk_allocation = GFP_NOIO;
#ifdef AWK_HAS_TASK_FRAG
	/* Older kernels take the task's page fragment only for an allocation with __GFP_FS, which GFP_NOIO lacks. */
	sk->sk_use_task_frag = false;
#endif
	tcp_sock_set_nodelay(sk);
	sock_set_keepalive(sk);
	tcp_sock_set_keepidle(sk, KEEP_IDLE_S);
	tcp_sock_set_keepintvl(sk, KEEP_BETWEEN_S);
	tcp_sock_set_keepcnt(sk, KEEP_COUNT);
}

u32 awk_sock_segment_size(struct sock *sk)
{
	u32 mss = READ_ONCE(tcp_sk(sk)->mss_cache);

	return mss < SEGMENT_SANE ? SEGMENT_LEAST : mss;
}

bool awk_sock_is_over(struct sock *sk)
{
	return (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_state) == TCP_CLOSE;
}
