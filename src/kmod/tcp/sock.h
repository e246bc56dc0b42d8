// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets of the kernel: their options, and the user of their callbacks.
#ifndef KMOD_TCP_SOCK_H
#define KMOD_TCP_SOCK_H

#include <linux/net.h>
#include <net/sock.h>

/*
 * The callbacks of a socket, with struct sock's own conventions: softirq, or the thread that has
 * the socket's lock.
 */
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
 * Callbacks to user come until release has returned; errors are state changes. Sockets accepted
 * from a listener get no user. Process context.
 */
void awk_sock_take(struct sock *sk, void *user, const struct awk_sock_ops *ops,
		   struct awk_sock_saved *saved);
void awk_sock_release(struct sock *sk, const struct awk_sock_saved *saved);

/*
 * Within a callback that holds sk_callback_lock: the socket's user; NULL when the callbacks are no
 * longer those with this data_ready, because TCP had called the callback before the socket went to
 * its next user.
 */
static inline void *awk_sock_user(struct sock *sk, void (*data_ready)(struct sock *sk))
{
	if (sk->sk_data_ready != data_ready)
		return NULL;
	return __locked_read_sk_user_data_with_flags(sk, SK_USER_DATA_NOCOPY);
}

/*
 * Within write_space: passes it on to the callback before. Records that TCP had no room for are sent by the one of the kernel's
 * TLS, and TCP's own wakes nobody here.
 */
static inline void awk_sock_pass_space(struct sock *sk, const struct awk_sock_saved *saved)
{
	saved->write_space(sk);
}

/* Makes an unbound TCP socket of this family, which holds its network namespace. */
int awk_sock_create(struct net *net, int family, struct socket **sock);

/*
 * Sets the options that every connection keeps for its life: no delay, keep-alive, memory without
 * recursion into I/O.
 */
void awk_sock_set_options(struct sock *sk);

/* Bytes of one TCP segment, as the path allows now. */
u32 awk_sock_segment_size(struct sock *sk);

/* True when the peer's FIN has come, or nothing will come any more. */
bool awk_sock_is_over(struct sock *sk);

#endif
