// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/tls.h"

#include "worker/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACKLOG 1024

static int listener = -1;

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		fail("%s is not set: name the PEM files by ANYWARP_TLS_CERT, ANYWARP_TLS_KEY and ANYWARP_TLS_CA",
		     name);
	return value;
}

/* Ends with what OpenSSL says, or what the system does. */
static void fail_tls(const char *what) __attribute__((noreturn));

static void fail_tls(const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (!reason)
		fail_errno("%s", what);
	fail("%s: %s: the certificates have to be of one CA, and valid now", what, reason);
}

static SSL_CTX *make_context(void)
{
	SSL_CTX *made = SSL_CTX_new(TLS_method());

	if (!made || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1)
		fail_tls("no TLS 1.3");
	if (SSL_CTX_use_certificate_chain_file(made, setting("ANYWARP_TLS_CERT")) != 1 ||
	    SSL_CTX_use_PrivateKey_file(made, setting("ANYWARP_TLS_KEY"), SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_load_verify_file(made, setting("ANYWARP_TLS_CA")) != 1)
		fail_tls("cannot read the certificate, the key or the CA");
	SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(made, 0);
	return made;
}

static SSL_CTX *context(void)
{
	static SSL_CTX *made;

	if (!made)
		made = make_context();
	return made;
}

void tls_listen(struct session *session)
{
	listener = control_listen(&session->at, BACKLOG);
}

static bool is_driven(const struct session *session)
{
	return session->args.mode == MODE_EPOLL;
}

/* The handshake blocks in any mode: until it is over there is nothing else to do. */
static struct tls secure(const struct session *session, int fd, bool accepts)
{
	struct tls tls = { .ssl = SSL_new(context()), .fd = fd, .set = -1 };
	struct epoll_event event = { .events = EPOLLIN };
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail_errno("TCP_NODELAY");
	if (!tls.ssl || SSL_set_fd(tls.ssl, fd) != 1)
		fail_tls("no session");
	if ((accepts ? SSL_accept(tls.ssl) : SSL_connect(tls.ssl)) != 1)
		fail_tls("the handshake fails");
	if (!is_driven(session))
		return tls;
	tls.set = epoll_create1(EPOLL_CLOEXEC);
	if (tls.set < 0 || epoll_ctl(tls.set, EPOLL_CTL_ADD, fd, &event) != 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		fail_errno("epoll");
	return tls;
}

struct tls tls_connect_one(const struct session *session)
{
	return secure(session, control_connect_data(&session->at), false);
}

struct tls tls_accept_one(const struct session *session)
{
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN },
				{ .fd = session->control.fd, .events = POLLRDHUP } };
	int fd;

	while (poll(fds, 2, -1) < 0 || !(fds[0].revents & POLLIN))
		control_check(&session->control);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		fail_errno("accept");
	return secure(session, fd, true);
}

void tls_end(struct tls *tls, bool waits)
{
	uint8_t rest[64];

	SSL_shutdown(tls->ssl);
	if (waits && SSL_read(tls->ssl, rest, sizeof(rest)) > 0)
		fail("a connection has bytes behind its last message");
	SSL_free(tls->ssl);
	if (tls->set >= 0)
		close(tls->set);
	close(tls->fd);
}

/* Waits until a call that would have blocked may be made again; fails where it will never succeed. */
static void await(const struct tls *tls, int result)
{
	int error = SSL_get_error(tls->ssl, result);
	struct pollfd room = { .fd = tls->fd, .events = POLLOUT };
	struct epoll_event event;

	if (error == SSL_ERROR_ZERO_RETURN)
		fail("a connection ended before its test: the other end is gone");
	if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
		fail_tls("a connection failed");
	if (error == SSL_ERROR_WANT_WRITE)
		poll(&room, 1, -1);
	else if (tls->set >= 0)
		epoll_wait(tls->set, &event, 1, -1);
}

void tls_send(const struct tls *tls, const uint8_t *buf, size_t octets)
{
	int n;

	while ((n = SSL_write(tls->ssl, buf, (int)octets)) <= 0)
		await(tls, n);
}

size_t tls_receive_some(const struct tls *tls, uint8_t *buf, size_t octets)
{
	int n;

	while ((n = SSL_read(tls->ssl, buf, (int)octets)) <= 0)
		await(tls, n);
	return (size_t)n;
}

void tls_receive(const struct tls *tls, uint8_t *buf, size_t octets)
{
	for (size_t done = 0; done < octets;)
		done += tls_receive_some(tls, buf + done, octets - done);
}
