// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changes of Linux's sockets since 6.1.
#ifndef KMOD_TCP_COMPAT_H
#define KMOD_TCP_COMPAT_H

#include <linux/bvec.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/tcp.h>

/* 6.5 has a flag of sendmsg where sendpage was. The socket keeps the pages as long as it needs them. */
static inline int awk_sock_splice(struct socket *sock, struct page *pages, size_t offset,
				  size_t len)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_SPLICE_PAGES };
	struct bio_vec piece;

	bvec_set_page(&piece, pages, len, offset);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &piece, 1, len);
	return sock_sendmsg(sock, &msg);
#else
	return kernel_sendpage(sock, pages, offset, len, MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

/* Acknowledges all that has come, now. With the socket's lock. */
static inline void awk_sock_send_ack(struct sock *sk)
{
#ifdef AWK_ACK_HAS_FLAGS
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt, 0);
#else
	__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
#endif
}

#endif
