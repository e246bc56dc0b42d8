// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets of the kernel: their options, and whose callbacks they have.
#ifndef KMOD_STREAM_SOCK_H
#define KMOD_STREAM_SOCK_H

#include <linux/net.h>
#include <net/sock.h>

/* What a socket calls, with struct sock's own conventions: softirq, or the thread that has the socket's lock. */
struct awk_sock_ops {
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*write_space)(struct sock *sk);
};

struct awk_sock_saved {
	void (*data_ready)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*error_report)(struct sock *sk);
};

/*
 * Callbacks to user come, until release returned; errors are state changes. Children of a listener get no
 * user. Process context.
 */
void awk_sock_take(struct sock *sk, void *user, const struct awk_sock_ops *ops,
		   struct awk_sock_saved *saved);
void awk_sock_release(struct sock *sk, const struct awk_sock_saved *saved);

/*
 * Within a callback that holds sk_callback_lock: whose it is; NULL: not that of whom data_ready is any more. TCP had
 * called the callback before the socket went to its next user.
 */
static inline void *awk_sock_user(struct sock *sk, void (*data_ready)(struct sock *sk))
{
	if (sk->sk_data_ready != data_ready)
		return NULL;
	return __locked_read_sk_user_data_with_flags(sk, SK_USER_DATA_NOCOPY);
}

/* An unbound TCP socket of this family, which keeps its network namespace. */
int awk_sock_create(struct net *net, int family, struct socket **sock);

/* What every connection has for its life: no delay, keep-alive, memory without recursion into I/O. */
void awk_sock_set_options(struct sock *sk);

/* Octets of one of TCP's segments, as the path allows now. */
u32 awk_sock_segment_size(struct sock *sk);

/* Whether the peer's FIN came, or nothing will come any more. */
bool awk_sock_is_over(struct sock *sk);

/* The peer hears of it at once: no FIN, a reset. The socket is freed. */
void awk_sock_reset(struct socket *sock);

#endif
