// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A kernel without a handshake by a daemon: no socket is ever under TLS.
#include "kmod/tcp/tls.h"

bool awk_tls_is_here(void)
{
	return false;
}

int awk_tls_begin(struct socket **sock, struct awk_tls_ask *ask)
{
	return -EOPNOTSUPP;
}

bool awk_tls_stop(struct socket *sock)
{
	return true;
}

bool awk_tls_is_on(const struct sock *sk)
{
	return false;
}

int awk_tls_recv(struct socket *sock, u8 *dst, size_t len)
{
	return -EPROTO;
}

bool awk_tls_has_sent(const struct sock *sk)
{
	return true;
}

void awk_tls_send_end(struct socket *sock)
{
}

void awk_sock_close(struct socket *sock)
{
	sock_release(sock);
}
