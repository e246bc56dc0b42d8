// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peers' ends of the sockets in net/sock.h, and what TCP itself does with those.
#ifndef KMOD_TEST_TCP_H
#define KMOD_TEST_TCP_H

#include <net/sock.h>

#define TCP_OCTETS 4096 /* each way; what is beyond is dropped */
#define TCP_MAX 64
#define TCP_BACKLOG 8

struct awk_tls_ask;

struct kshim_tcp {
	struct sock sk;
	struct socket *sock; /* NULL: nobody has it, or not yet */
	enum {
		TCP_FRESH,
		TCP_CONNECTING,
		TCP_CONNECTED,
		TCP_LISTENS,
	} stage;
	bool closed; /* by sock_release */
	struct awk_tls_ask *ask; /* tlshd.c's: a handshake that the daemon is asked for */
	bool secured; /* and one that went well */
	struct sockaddr_in near, far;
	struct kshim_tcp *queue[TCP_BACKLOG]; /* LISTENS: to be accepted */
	unsigned int queued;
	size_t room; /* octets that are taken without -EAGAIN */
	size_t in_len, in_at;
	u8 in[TCP_OCTETS];
	size_t out_len;
	u8 out[TCP_OCTETS];
};

/* Every connection and listener that was made since kshim_tcp_end. */
extern struct kshim_tcp *kshim_tcps[TCP_MAX];
extern unsigned int kshim_tcp_count;

/* A peer comes; false: it is refused. The other things it does; those that make no sense do nothing. */
bool kshim_tcp_arrive(struct kshim_tcp *listener);
void kshim_tcp_established(struct kshim_tcp *tcp);
void kshim_tcp_refused(struct kshim_tcp *tcp, int err);
void kshim_tcp_send(struct kshim_tcp *tcp, const void *octets, size_t len);
void kshim_tcp_fin(struct kshim_tcp *tcp);
void kshim_tcp_reset(struct kshim_tcp *tcp);
void kshim_tcp_room(struct kshim_tcp *tcp, size_t room);

/* All must have been closed by who made them. */
void kshim_tcp_end(void);

#endif
