// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TLS under a socket: a daemon of the host, tlshd, makes the handshake, and after that the kernel's own TLS gives and takes
// records. tls.c has it where Linux does, tls_none.c where it does not (Kbuild chooses); a socket is never used without the
// protection that was asked for.
#ifndef KMOD_TCP_TLS_H
#define KMOD_TCP_TLS_H

#include <linux/net.h>
#include <linux/types.h>
#include <net/sock.h>

/* A host's name, or an address, and the end of the string. */
#define AWK_TLS_NAME_BYTES 256

/* A handshake that is asked for. It stays as it is until it is done or stopped. */
struct awk_tls_ask {
	bool client;
	const char *name; /* of the peer: a client wants it in the server's certificate */
	unsigned int timeout_ms;
	/*
	 * Called at most once, in a thread of the daemon's, perhaps before begin returns. 0: the peer has proven to have a
	 * certificate, and the socket is under TLS. -ENOKEY: it has shown none. -EOPNOTSUPP: TLS is not the kernel's.
	 * Otherwise the daemon's negative error.
	 */
	void (*done)(struct awk_tls_ask *ask, int err);
	const struct sock *sk; /* begin sets it */
};

/* True when this kernel has what a handshake takes. */
bool awk_tls_is_here(void);

/*
 * Gives a connected socket without callbacks to the daemon. 0: done will be called. -EAGAIN: too many wait for the daemon; the same
 * may be tried again. -ESRCH: no daemon runs in the socket's network namespace. -EOPNOTSUPP: the kernel has no such
 * interface. -ENOMEM, or -ENFILE: the socket may be closed, and is NULL then. Process context.
 */
int awk_tls_begin(struct socket **sock, struct awk_tls_ask *ask);
/* True: done is not called any more, and the daemon finds the socket shut down. False: done was called, or is at this moment. */
bool awk_tls_stop(struct socket *sock);

/* True when the socket sends and receives records of TLS alone. */
bool awk_tls_is_on(const struct sock *sk);

/*
 * Reads data, without waiting for any; may sleep. The number of bytes; 0: the peer's close_notify; -EAGAIN: there is no whole record.
 * -ECONNRESET: the end of TCP without a close_notify. -EPROTO: a record that is no data. Otherwise the socket's error; after each
 * but -EAGAIN nothing more can be read.
 */
int awk_tls_recv(struct socket *sock, u8 *dst, size_t len);

/* True when TCP has all that was sent, and room for more. Nobody sends meanwhile. */
bool awk_tls_has_sent(const struct sock *sk);
/* The last record that is sent. Only by a thread of the kernel. */
void awk_tls_send_end(struct socket *sock);

/* Closes a socket, whether the daemon has had it or not. */
void awk_sock_close(struct socket *sock);

#endif
