// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TLS by tlshd and the kernel: net/handshake and net/tls. The daemon gets the socket as a file, and so from there on the socket
// ends as one.
#include "kmod/tcp/tls.h"

#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/key.h>
#include <linux/slab.h>
#include <net/handshake.h>
#include <net/tls.h>
#include <net/tls_prot.h>

#define ALERT_BYTES 2 /* RFC 8446 6: level, description */

bool awk_tls_is_here(void)
{
	return true;
}

bool awk_tls_is_on(const struct sock *sk)
{
	return tls_sw_has_ctx_tx(sk) && tls_sw_has_ctx_rx(sk);
}

/* tlshd's server lets clients without a certificate through; its client has verified the server's. */
static void ask_done(void *user, int status, key_serial_t peer)
{
	struct awk_tls_ask *ask = user;
	int err = -abs(status); /* the kernel's own failures are positive */

	if (!err && !ask->client && peer == TLS_NO_PEERID)
		err = -ENOKEY;
	if (!err && !awk_tls_is_on(ask->sk))
		err = -EOPNOTSUPP;
	ask->done(ask, err);
}

int awk_tls_begin(struct socket **sock, struct awk_tls_ask *ask)
{
	struct tls_handshake_args args = {
		.ta_sock = *sock,
		.ta_done = ask_done,
		.ta_data = ask,
		.ta_peername = ask->name,
		.ta_timeout_ms = ask->timeout_ms,
		.ta_keyring = TLS_NO_KEYRING,
		.ta_my_cert = TLS_NO_CERT,
		.ta_my_privkey = TLS_NO_PRIVKEY,
	};
	struct sock *sk = (*sock)->sk;
	void (*destruct)(struct sock * sk) = sk->sk_destruct;
	struct file *file;
	int err;

	ask->sk = sk;
	if (!(*sock)->file) {
		file = sock_alloc_file(*sock, O_CLOEXEC, NULL);
		if (IS_ERR(file)) {
			*sock = NULL; /* that call has closed it */
			return PTR_ERR(file);
		}
	}
	err = ask->client ? tls_client_hello_x509(&args, GFP_KERNEL)
			  : tls_server_hello_x509(&args, GFP_KERNEL);
	/* Some kernels leave their own there, and would call it for ever at a second try. */
	if (err)
		sk->sk_destruct = destruct;
	return err;
}

bool awk_tls_stop(struct socket *sock)
{
	if (!tls_handshake_cancel(sock->sk))
		return false;
	kernel_sock_shutdown(sock, SHUT_RDWR);
	return true;
}

static bool is_close_notify(u8 type, const u8 *record, size_t len)
{
	return type == TLS_RECORD_TYPE_ALERT && len >= ALERT_BYTES &&
	       record[1] == TLS_ALERT_DESC_CLOSE_NOTIFY;
}

int awk_tls_recv(struct socket *sock, u8 *dst, size_t len)
{
	union {
		struct cmsghdr head;
		u8 octets[CMSG_SPACE(sizeof(u8))];
	} control = { 0 };
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
	struct kvec iov = { dst, len };
	int n = kernel_recvmsg(sock, &msg, &iov, 1, len, MSG_DONTWAIT);
	u8 type;

	if (n <= 0)
		return n ? n : -ECONNRESET;
	type = tls_get_record_type(sock->sk, &control.head);
	if (type == TLS_RECORD_TYPE_DATA)
		return n;
	return is_close_notify(type, dst, n) ? 0 : -EPROTO;
}

/* Records that TCP had no room for wait in a list, the first of them perhaps in part. */
bool awk_tls_has_sent(const struct sock *sk)
{
	const struct tls_context *ctx = tls_get_ctx(sk);

	if (READ_ONCE(ctx->partially_sent_record))
		return false;
	if (ctx->tx_conf == TLS_SW && !list_empty(&tls_sw_ctx_tx(ctx)->tx_list))
		return false;
	return sk_stream_memory_free(sk);
}

void awk_tls_send_end(struct socket *sock)
{
	tls_handshake_close(sock);
}

void awk_sock_close(struct socket *sock)
{
	if (sock->file)
		fput(sock->file);
	else
		sock_release(sock);
}
