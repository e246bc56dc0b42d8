// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tcp.h"

struct net *const kshim_net = (struct net *)(uintptr_t)1;
struct kshim_tcp *kshim_tcps[TCP_MAX];
unsigned int kshim_tcp_count;

/* TCP's own callbacks, which every socket must have when it is closed. */
static void sock_quiet(struct sock *sk)
{
	(void)sk;
}

static struct kshim_tcp *tcp_create(int family)
{
	struct kshim_tcp *tcp;

	if (kshim_tcp_count == TCP_MAX)
		return NULL;
	tcp = calloc(1, sizeof(*tcp));
	KSHIM_CHECK(tcp);
	tcp->sk = (struct sock){
		.sk_family = family,
		.sk_state = TCP_CLOSE,
		.sk_data_ready = sock_quiet,
		.sk_state_change = sock_quiet,
		.sk_write_space = sock_quiet,
		.sk_error_report = sock_quiet,
		.tcp = tcp,
		.mss_cache = 1460,
	};
	tcp->room = TCP_OCTETS;
	kshim_tcps[kshim_tcp_count++] = tcp;
	return tcp;
}

static int tcp_graft(struct kshim_tcp *tcp, struct socket **sock)
{
	*sock = kzalloc(sizeof(**sock), GFP_KERNEL);
	if (!*sock)
		return -ENOMEM;
	(*sock)->sk = &tcp->sk;
	tcp->sock = tcp->sk.sk_socket = *sock;
	return 0;
}

void lock_sock(struct sock *sk)
{
	kshim_yield(false);
	while (sk->owned)
		kshim_yield(true);
	sk->owned = true;
}

void release_sock(struct sock *sk)
{
	KSHIM_CHECK(sk->owned);
	sk->owned = false;
	kshim_yield(false);
}

bool kshim_sock_has_room(const struct sock *sk)
{
	return sk->tcp->room > 0;
}

int __sock_create(struct net *net, int family, int type, int protocol, struct socket **sock,
		  int kern)
{
	struct kshim_tcp *tcp = tcp_create(family);

	KSHIM_CHECK(net == kshim_net && type == SOCK_STREAM && protocol == IPPROTO_TCP && !kern);
	if (!tcp)
		return -ENOBUFS;
	tcp->closed = true;
	if (tcp_graft(tcp, sock))
		return -ENOMEM;
	tcp->closed = false;
	return 0;
}

static void tcp_over(struct kshim_tcp *tcp)
{
	tcp->sk.sk_state = TCP_CLOSE;
	tcp->sk.sk_shutdown = RCV_SHUTDOWN | SEND_SHUTDOWN;
}

void sock_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct kshim_tcp *tcp = sk->tcp;

	lock_sock(sk);
	KSHIM_CHECK(sk->sk_data_ready == sock_quiet && sk->sk_state_change == sock_quiet &&
		    sk->sk_write_space == sock_quiet && sk->sk_error_report == sock_quiet &&
		    !sk->sk_user_data && tcp->sock == sock);
	tcp_over(tcp);
	tcp->closed = true;
	tcp->sock = sk->sk_socket = NULL;
	for (unsigned int i = 0; i < tcp->queued; i++) {
		tcp_over(tcp->queue[i]);
		tcp->queue[i]->closed = true;
	}
	tcp->queued = 0;
	release_sock(sk);
	kfree(sock);
}

int kernel_bind(struct socket *sock, struct sockaddr *addr, int len)
{
	struct kshim_tcp *tcp = sock->sk->tcp;

	KSHIM_CHECK(len == sizeof(tcp->near));
	memcpy(&tcp->near, addr, sizeof(tcp->near));
	return 0;
}

int kernel_listen(struct socket *sock, int backlog)
{
	struct kshim_tcp *tcp = sock->sk->tcp;

	(void)backlog;
	tcp->stage = TCP_LISTENS;
	tcp->sk.sk_state = TCP_LISTEN;
	return 0;
}

int kernel_accept(struct socket *sock, struct socket **child, int flags)
{
	struct kshim_tcp *l = sock->sk->tcp;
	int err = -EAGAIN;

	(void)flags;
	lock_sock(sock->sk);
	if (l->queued > 0) {
		err = tcp_graft(l->queue[0], child);
		if (!err)
			memmove(&l->queue[0], &l->queue[1], --l->queued * sizeof(l->queue[0]));
	}
	release_sock(sock->sk);
	return err;
}

static int tcp_error(struct kshim_tcp *tcp, int otherwise)
{
	int err = tcp->sk.sk_err;

	tcp->sk.sk_err = 0;
	return err ? -err : otherwise;
}

static int tcp_connect(struct kshim_tcp *tcp)
{
	switch (tcp->stage) {
	case TCP_FRESH:
		tcp->stage = TCP_CONNECTING;
		tcp->sk.sk_state = TCP_SYN_SENT;
		tcp->sk.sk_shutdown = 0;
		return -EINPROGRESS;
	case TCP_CONNECTING:
		if (tcp->sk.sk_state == TCP_SYN_SENT)
			return -EALREADY;
		if (tcp->sk.sk_state == TCP_CLOSE) {
			tcp->stage = TCP_FRESH;
			return tcp_error(tcp, -ECONNABORTED);
		}
		tcp->stage = TCP_CONNECTED;
		return 0;
	case TCP_CONNECTED:
		return -EISCONN;
	case TCP_LISTENS:
		return -EINVAL;
	}
	return -EINVAL;
}

int kernel_connect(struct socket *sock, struct sockaddr *addr, int len, int flags)
{
	int err;

	(void)addr;
	(void)len;
	(void)flags;
	lock_sock(sock->sk);
	err = tcp_connect(sock->sk->tcp);
	release_sock(sock->sk);
	return err;
}

int kernel_getsockname(struct socket *sock, struct sockaddr *addr)
{
	memcpy(addr, &sock->sk->tcp->near, sizeof(struct sockaddr_in));
	return sizeof(struct sockaddr_in);
}

int kernel_getpeername(struct socket *sock, struct sockaddr *addr)
{
	memcpy(addr, &sock->sk->tcp->far, sizeof(struct sockaddr_in));
	return sizeof(struct sockaddr_in);
}

int kernel_sock_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	int err = sk->sk_state == TCP_CLOSE ? -ENOTCONN : 0;

	KSHIM_CHECK(how == SHUT_WR);
	lock_sock(sk);
	sk->sk_shutdown |= SEND_SHUTDOWN;
	release_sock(sk);
	return err;
}

static int tcp_take(struct kshim_tcp *tcp, const u8 *octets, size_t len)
{
	size_t n = min(len, tcp->room), kept = min(n, sizeof(tcp->out) - tcp->out_len);

	if (tcp->sk.sk_err)
		return tcp_error(tcp, 0);
	if (tcp->sk.sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (n == 0)
		return -EAGAIN;
	memcpy(tcp->out + tcp->out_len, octets, kept);
	tcp->out_len += kept;
	return n;
}

int kernel_sendmsg(struct socket *sock, struct msghdr *msg, struct kvec *iov, size_t count,
		   size_t len)
{
	int n;

	KSHIM_CHECK(count == 1 && iov->iov_len == len && (msg->msg_flags & MSG_DONTWAIT));
	lock_sock(sock->sk);
	n = tcp_take(sock->sk->tcp, iov->iov_base, len);
	release_sock(sock->sk);
	return n;
}

static int tcp_give(struct kshim_tcp *tcp, u8 *at, size_t len)
{
	size_t n = min(len, tcp->in_len - tcp->in_at);

	if (n > 0) {
		memcpy(at, tcp->in + tcp->in_at, n);
		tcp->in_at += n;
		return n;
	}
	if (tcp->sk.sk_err)
		return tcp_error(tcp, 0);
	return tcp->sk.sk_shutdown & RCV_SHUTDOWN ? 0 : -EAGAIN;
}

int kernel_recvmsg(struct socket *sock, struct msghdr *msg, struct kvec *iov, size_t count,
		   size_t len, int flags)
{
	int n;

	(void)msg;
	KSHIM_CHECK(count == 1 && iov->iov_len == len && len > 0 && (flags & MSG_DONTWAIT));
	lock_sock(sock->sk);
	n = tcp_give(sock->sk->tcp, iov->iov_base, len);
	release_sock(sock->sk);
	return n;
}

/* With the socket's lock: all of it as one piece, which the actor does not look at. */
int tcp_read_sock(struct sock *sk, read_descriptor_t *desc,
		  int (*actor)(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset,
			       size_t len))
{
	struct kshim_tcp *tcp = sk->tcp;
	int used = 0;

	KSHIM_CHECK(sk->owned);
	if (tcp->in_at < tcp->in_len)
		used = actor(desc, NULL, 0, tcp->in_len - tcp->in_at);
	tcp->in_at += used;
	return used;
}

bool kshim_tcp_arrive(struct kshim_tcp *l)
{
	struct kshim_tcp *tcp = NULL;

	lock_sock(&l->sk);
	if (l->stage == TCP_LISTENS && !l->closed && l->queued < TCP_BACKLOG)
		tcp = tcp_create(l->sk.sk_family);
	if (tcp) {
		/* As TCP does: a child has its listener's callbacks, without its user. */
		tcp->sk.sk_data_ready = l->sk.sk_data_ready;
		tcp->sk.sk_state_change = l->sk.sk_state_change;
		tcp->sk.sk_write_space = l->sk.sk_write_space;
		tcp->sk.sk_error_report = l->sk.sk_error_report;
		tcp->sk.sk_state = TCP_ESTABLISHED;
		tcp->stage = TCP_CONNECTED;
		tcp->near = l->near;
		tcp->far = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(9) };
		l->queue[l->queued++] = tcp;
		l->sk.sk_data_ready(&l->sk);
	}
	release_sock(&l->sk);
	return tcp;
}

/* What comes in a softirq finds the socket free, as TCP's backlog does. */
static void tcp_change(struct kshim_tcp *tcp, void (*change)(struct kshim_tcp *tcp, int arg),
		       int arg)
{
	lock_sock(&tcp->sk);
	if (!tcp->closed && tcp->stage != TCP_LISTENS)
		change(tcp, arg);
	release_sock(&tcp->sk);
}

static void change_established(struct kshim_tcp *tcp, int arg)
{
	(void)arg;
	if (tcp->sk.sk_state != TCP_SYN_SENT)
		return;
	tcp->sk.sk_state = TCP_ESTABLISHED;
	tcp->near = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(7) };
	tcp->far = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(8) };
	tcp->sk.sk_state_change(&tcp->sk);
}

void kshim_tcp_established(struct kshim_tcp *tcp)
{
	tcp_change(tcp, change_established, 0);
}

static void change_over(struct kshim_tcp *tcp, int err)
{
	if (tcp->stage == TCP_FRESH || tcp->sk.sk_state == TCP_CLOSE)
		return;
	tcp->sk.sk_err = err;
	tcp_over(tcp);
	tcp->sk.sk_error_report(&tcp->sk);
	tcp->sk.sk_state_change(&tcp->sk);
}

void kshim_tcp_refused(struct kshim_tcp *tcp, int err)
{
	if (tcp->sk.sk_state == TCP_SYN_SENT)
		tcp_change(tcp, change_over, err);
}

void kshim_tcp_reset(struct kshim_tcp *tcp)
{
	tcp_change(tcp, change_over, ECONNRESET);
}

static void change_fin(struct kshim_tcp *tcp, int arg)
{
	(void)arg;
	if (tcp->sk.sk_state != TCP_ESTABLISHED || (tcp->sk.sk_shutdown & RCV_SHUTDOWN))
		return;
	tcp->sk.sk_shutdown |= RCV_SHUTDOWN;
	if (tcp->sk.sk_shutdown & SEND_SHUTDOWN)
		tcp->sk.sk_state = TCP_CLOSE;
	tcp->sk.sk_state_change(&tcp->sk);
	tcp->sk.sk_data_ready(&tcp->sk);
}

void kshim_tcp_fin(struct kshim_tcp *tcp)
{
	tcp_change(tcp, change_fin, 0);
}

static void change_data(struct kshim_tcp *tcp, int arg)
{
	(void)arg;
	tcp->sk.sk_data_ready(&tcp->sk);
}

void kshim_tcp_send(struct kshim_tcp *tcp, const void *octets, size_t len)
{
	size_t n = min(len, sizeof(tcp->in) - tcp->in_len);

	if (tcp->sk.sk_state != TCP_ESTABLISHED || (tcp->sk.sk_shutdown & RCV_SHUTDOWN) || n == 0)
		return;
	memcpy(tcp->in + tcp->in_len, octets, n);
	tcp->in_len += n;
	tcp_change(tcp, change_data, 0);
}

static void change_room(struct kshim_tcp *tcp, int room)
{
	tcp->room = room;
	if (room > 0)
		tcp->sk.sk_write_space(&tcp->sk);
}

void kshim_tcp_room(struct kshim_tcp *tcp, size_t room)
{
	tcp_change(tcp, change_room, room);
}

void kshim_tcp_end(void)
{
	for (unsigned int i = 0; i < kshim_tcp_count; i++) {
		KSHIM_CHECK(kshim_tcps[i]->closed);
		free(kshim_tcps[i]);
	}
	kshim_tcp_count = 0;
}
