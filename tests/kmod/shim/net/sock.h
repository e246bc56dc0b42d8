// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP sockets as the module sees them. Nothing arrives unless the peer, which is a test's, does it.
#ifndef KSHIM_SOCK_H
#define KSHIM_SOCK_H

#include <linux/mm.h>
#include <linux/spinlock.h>

#include <netinet/in.h>
#include <sys/socket.h>

struct net;
struct sk_buff;
struct socket;
struct kshim_tcp;

struct sock {
	int sk_family;
	int sk_state;
	int sk_shutdown;
	int sk_err;
	int sk_bound_dev_if;
	gfp_t sk_allocation;
	rwlock_t sk_callback_lock;
	void *sk_user_data;
	void (*sk_data_ready)(struct sock *sk);
	void (*sk_state_change)(struct sock *sk);
	void (*sk_write_space)(struct sock *sk);
	void (*sk_error_report)(struct sock *sk);
	struct socket *sk_socket;
	struct kshim_tcp *tcp; /* the connection */
	bool owned; /* lock_sock */
	u32 mss_cache;
	int tos, tclass;
};

struct socket {
	struct sock *sk;
	unsigned long flags;
};

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_CLOSE = 7,
	TCP_LISTEN = 10,
};

#define RCV_SHUTDOWN 1
#define SEND_SHUTDOWN 2
#define SOCK_NOSPACE 2
#define SK_USER_DATA_NOCOPY 1

#define tcp_sk(sk) (sk)
#define inet_sk(sk) (sk)
#define inet6_sk(sk) (sk)
#define rcu_assign_sk_user_data(sk, user) ((void)((sk)->sk_user_data = (user)))
#define __rcu_assign_sk_user_data_with_flags(sk, user, flags) ((void)((sk)->sk_user_data = (user)))
#define __locked_read_sk_user_data_with_flags(sk, flags) ((sk)->sk_user_data)

#define tcp_sock_set_nodelay(sk) ((void)(sk))
#define sock_set_keepalive(sk) ((void)(sk))
#define tcp_sock_set_keepidle(sk, seconds) ((void)(sk))
#define tcp_sock_set_keepintvl(sk, seconds) ((void)(sk))
#define tcp_sock_set_keepcnt(sk, count) ((void)(sk))
#define sock_set_reuseaddr(sk) ((void)(sk))
#define ip_sock_set_tos(sk, value) ((void)((sk)->tos = (value)))
#define ip6_sock_set_v6only(sk) ((void)(sk))
#define sk_stream_is_writeable(sk) kshim_sock_has_room(sk)
#define net_eq(a, b) ((a) == (b))
#define sock_net(sk) ((void)(sk), kshim_net)
#define put_net(net) ((void)(net))

extern struct net *const kshim_net;
bool kshim_sock_has_room(const struct sock *sk);
void lock_sock(struct sock *sk);
void release_sock(struct sock *sk);
#define sock_owned_by_me(sk) KSHIM_CHECK((sk)->owned)

struct kvec {
	void *iov_base;
	size_t iov_len;
};

int __sock_create(struct net *net, int family, int type, int protocol, struct socket **sock,
		  int kern);
void sock_release(struct socket *sock);
int kernel_bind(struct socket *sock, struct sockaddr *addr, int len);
int kernel_listen(struct socket *sock, int backlog);
int kernel_accept(struct socket *sock, struct socket **child, int flags);
int kernel_connect(struct socket *sock, struct sockaddr *addr, int len, int flags);
int kernel_getsockname(struct socket *sock, struct sockaddr *addr);
int kernel_getpeername(struct socket *sock, struct sockaddr *addr);
int kernel_sock_shutdown(struct socket *sock, int how);
int kernel_sendmsg(struct socket *sock, struct msghdr *msg, struct kvec *iov, size_t count,
		   size_t len);
int kernel_recvmsg(struct socket *sock, struct msghdr *msg, struct kvec *iov, size_t count,
		   size_t len, int flags);

typedef struct {
	size_t count;
} read_descriptor_t;

int tcp_read_sock(struct sock *sk, read_descriptor_t *desc,
		  int (*actor)(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
			       size_t len));

#define ipv6_addr_any(addr) IN6_IS_ADDR_UNSPECIFIED(addr)
#define ipv6_addr_equal(a, b) IN6_ARE_ADDR_EQUAL(a, b)
#define ipv6_addr_v4mapped(addr) IN6_IS_ADDR_V4MAPPED(addr)

#endif
