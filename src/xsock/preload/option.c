// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pair has the options of reading and writing, and the TCP socket has the others. The proxy
// process keeps some of those itself (base/kept.h); for the rest it lends this process the TCP
// socket, so that the kernel checks the rights of this process, not those of the proxy process.
#include "xsock/preload/option.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/clock.h"
#include "xsock/base/kept.h"
#include "xsock/base/libc.h"
#include "xsock/framed/refusal.h"
#include "xsock/pair/end.h"
#include "xsock/pair/place.h"
#include "xsock/preload/extended.h"
#include "xsock/process/protect.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"

/* No event tells that the peer has the bytes: a close returns so much later at the most. */
#define LINGER_PAUSE_MS_MAX 64

enum place {
	PLACE_NEAR, /* the program's end of the pair */
	PLACE_TCP, /* the proxy process's TCP socket */
	PLACE_BOTH,
	PLACE_FIXED, /* the same value for every TCP socket */
	PLACE_ERROR,
	PLACE_LINGER, /* TCP's, and close waits by it (aw_option_linger) */
	PLACE_NOWHERE,
};

struct option_place {
	int name;
	enum place place;
};

static enum place place_of(int level, int name)
{
	static const struct option_place rules[] = {
		{ SO_TYPE, PLACE_NEAR },	  { SO_RCVTIMEO, PLACE_NEAR },
		{ SO_SNDTIMEO, PLACE_NEAR },	  { SO_RCVLOWAT, PLACE_NEAR },
		{ SO_SNDLOWAT, PLACE_NEAR },	  { SO_OOBINLINE, PLACE_NEAR },
		{ SO_PEEK_OFF, PLACE_NEAR },	  { SO_ACCEPTCONN, PLACE_NEAR },
		{ SO_SNDBUF, PLACE_BOTH },	  { SO_RCVBUF, PLACE_BOTH },
		{ SO_DOMAIN, PLACE_FIXED },	  { SO_PROTOCOL, PLACE_FIXED },
		{ SO_ERROR, PLACE_ERROR },	  { SO_LINGER, PLACE_LINGER },
		{ SO_ZEROCOPY, PLACE_NOWHERE },	  { SO_ATTACH_FILTER, PLACE_NOWHERE },
		{ SO_ATTACH_BPF, PLACE_NOWHERE }, { SO_TIMESTAMPING, PLACE_NOWHERE },
		{ SO_TIMESTAMP, PLACE_NOWHERE },  { SO_TIMESTAMPNS, PLACE_NOWHERE },
	};

	/* The kernel's TLS would encrypt FPDUs. */
	if (level == SOL_TLS || aw_option_is_zero_copy(level, name) ||
	    (level == IPPROTO_TCP && (name == TCP_INQ || name == TCP_ULP)))
		return PLACE_NOWHERE;
	if (level != SOL_SOCKET)
		return PLACE_TCP;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].name == name)
			return rules[i].place;
	}
	return PLACE_TCP;
}

bool aw_option_is_refused(int level, int name)
{
	return place_of(level, name) == PLACE_NOWHERE;
}

bool aw_option_is_zero_copy(int level, int name)
{
	return level == IPPROTO_TCP && name == TCP_ZEROCOPY_RECEIVE;
}

/* One getsockopt or setsockopt on the TCP socket. */
struct option_call {
	int level, name;
	void *value; /* for getsockopt */
	socklen_t *len;
	const void *from; /* for setsockopt, when len is NULL */
	socklen_t from_len;
	int result, err;
};

static void make_option_call(int tcp, void *arg)
{
	struct option_call *call = arg;

	call->result = !call->len ? aw_libc()->setsockopt(tcp, call->level, call->name, call->from,
							  call->from_len)
				  : aw_libc()->getsockopt(tcp, call->level, call->name, call->value,
							  call->len);
	call->err = errno;
}

/* Makes the call on the TCP socket beside a pair. */
static int call_beside(int fd, const struct aw_sock *sock, struct option_call *call)
{
	int tcp;

	if (!aw_place_use_tcp(fd, make_option_call, call)) {
		/* A pair of another process's has none: a new socket answers, so that an option has its usual value. */
		tcp = aw_libc()->socket(sock->local.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (tcp < 0)
			return -1;
		make_option_call(tcp, call);
		aw_libc()->close(tcp);
	}
	errno = call->err;
	return call->result;
}

__attribute__((noinline)) static int get_kept(int fd, int level, int name, void *value,
					      socklen_t *len)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_GET_OPTION);
	request.level = level;
	request.name = name;
	request.len = sizeof(int);
	err = aw_proxy_call(&request, fd, &reply);
	if (err || reply.error)
		return aw_fail_with(err ? err : reply.error);
	if (*len > sizeof(int))
		*len = sizeof(int);
	memcpy(value, reply.value, *len);
	return 0;
}

static int get_at_proxy(int fd, const struct aw_sock *sock, int level, int name, void *value,
			socklen_t *len)
{
	struct option_call call = { .level = level, .name = name, .value = value, .len = len };
	int err;

	if (sock->is_pair)
		return call_beside(fd, sock, &call);
	if (sock->extended)
		return aw_extended_get_option(sock, level, name, value, len);
	if (aw_kept_is(level, name))
		return get_kept(fd, level, name, value, len);
	err = aw_proxy_borrow_socket(fd, make_option_call, &call);
	if (err)
		return aw_fail_with(err);
	errno = call.err;
	return call.result;
}

/*
 * A socket whose proxy process is gone, or no longer has it, is like one whose connection has
 * ended: setsockopt succeeds.
 */
static int end_set(int err)
{
	return aw_fail_with(err == ENOTCONN ? 0 : err);
}

__attribute__((noinline)) static int set_kept(int fd, int level, int name, const void *value,
					      socklen_t len)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_SET_OPTION);
	request.level = level;
	request.name = name;
	request.len = len < AW_REQUEST_VALUE_MAX ? (int32_t)len : AW_REQUEST_VALUE_MAX;
	memcpy(request.value, value, (size_t)request.len);
	err = aw_proxy_call(&request, fd, &reply);
	return err ? end_set(err) : aw_fail_with(reply.error);
}

static int set_at_proxy(int fd, const struct aw_sock *sock, int level, int name, const void *value,
			socklen_t len)
{
	struct option_call call = { .level = level, .name = name, .from = value, .from_len = len };
	int err;

	if (sock->is_pair)
		return call_beside(fd, sock, &call);
	if (sock->extended)
		return aw_extended_set_option(sock, level, name, value, len);
	if (aw_kept_is(level, name) || (level == SOL_SOCKET && name == SO_LINGER))
		return set_kept(fd, level, name, value, len);
	err = aw_proxy_borrow_socket(fd, make_option_call, &call);
	if (err)
		return end_set(err);
	errno = call.err;
	return call.result;
}

/*
 * Returns the errno with which the connection has ended, once, or 0. The proxy process keeps it
 * until a process has read it.
 */
__attribute__((noinline)) static int take_errno(int fd)
{
	struct aw_reply reply;
	struct aw_request request;
	struct aw_sock *sock, like;
	bool orphaned;
	int err;

	aw_request_init(&request, AW_REQUEST_ERROR);
	err = aw_proxy_call(&request, fd, &reply);

	/* That fd's proxy process has died is told once. */
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	orphaned = sock && sock->orphaned;
	if (orphaned)
		sock->orphaned = false;
	aw_fdtab_unlock();

	if (orphaned)
		return ECONNRESET;
	if (!err && reply.error == EPROTO && aw_fdtab_look(fd, &like)) {
		if (aw_protect_is_on())
			aw_refusal_log_insecure(fd, &like.remote);
		else
			aw_refusal_log(fd, &like.remote, AW_REFUSAL_CLIENT);
	}
	return err ? 0 : reply.error;
}

/* Writes the errno with which the connection has ended, else the pair's SO_ERROR. */
static int get_error(int fd, const struct aw_sock *sock, void *value, socklen_t *len)
{
	int near = 0;
	socklen_t near_len = sizeof(near);
	int err;

	if (sock->extended)
		return aw_extended_get_option(sock, SOL_SOCKET, SO_ERROR, value, len);
	if (aw_libc()->getsockopt(fd, SOL_SOCKET, SO_ERROR, &near, &near_len) != 0)
		return -1;
	if (sock->is_pair)
		near = aw_pair_take_error(fd, near);
	else if ((err = take_errno(fd)) != 0)
		near = err;
	return aw_option_copy_out(&near, sizeof(near), value, len);
}

/* The errno with which the connection of fd, which is bridged and no pair, has ended, once, or 0. */
static int take_failure(int fd)
{
	struct aw_sock sock;
	int err = 0;
	socklen_t len = sizeof(err);

	if (!aw_fdtab_look(fd, &sock))
		return 0;
	if (!sock.extended)
		return take_errno(fd);
	(void)aw_extended_get_option(&sock, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

int aw_option_end(int fd)
{
	int saved = errno, err = aw_sandbox_is_on() ? 0 : aw_pair_end_of_read(fd);

	if (err < 0)
		err = take_failure(fd);
	errno = err ? err : saved;
	return err ? -1 : 0;
}

int aw_option_reset(int fd)
{
	return aw_fail_with(aw_sandbox_is_on() ? ECONNRESET : aw_pair_reset(fd));
}

ssize_t aw_option_broken(int fd, size_t len)
{
	int err = aw_sandbox_is_on() ? EPIPE : aw_pair_broken(fd);

	if (err < 0) {
		err = take_failure(fd);
		err = err ? err : EPIPE;
	}
	return err ? aw_fail_with(err) : (ssize_t)len;
}

int aw_option_get_bridged(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_sock sock;
	int fixed;

	if (len && aw_option_is_negative(*len))
		return aw_fail_with(EINVAL);
	if (!len || aw_option_is_bad(value, *len))
		return aw_fail_with(EFAULT);
	if (!aw_fdtab_look(fd, &sock))
		return aw_libc()->getsockopt(fd, level, name, value, len);
	switch (place_of(level, name)) {
	case PLACE_NEAR:
		return aw_libc()->getsockopt(fd, level, name, value, len);
	case PLACE_TCP:
	case PLACE_BOTH:
		return get_at_proxy(fd, &sock, level, name, value, len);
	case PLACE_LINGER:
		return aw_option_copy_out(&sock.linger, sizeof(sock.linger), value, len);
	case PLACE_FIXED:
		fixed = name == SO_DOMAIN ? sock.local.any.sa_family : IPPROTO_TCP;
		return aw_option_copy_out(&fixed, sizeof(fixed), value, len);
	case PLACE_ERROR:
		return get_error(fd, &sock, value, len);
	case PLACE_NOWHERE:
		break;
	}
	return aw_fail_with(ENOPROTOOPT);
}

static int set_linger(int fd, const struct aw_sock *like, const void *value, socklen_t len)
{
	struct aw_sock *sock;
	int result;

	if (len < sizeof(struct linger))
		return aw_fail_with(EINVAL);
	/* The engine is told at the close: its TCP socket must not linger by itself. */
	result = like->extended ? 0 : set_at_proxy(fd, like, SOL_SOCKET, SO_LINGER, value, len);
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (result == 0 && sock)
		memcpy(&sock->linger, value, sizeof(sock->linger));
	aw_fdtab_unlock();
	return result;
}

int aw_option_set_bridged(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_sock sock;

	if (aw_option_is_negative(len))
		return aw_fail_with(EINVAL);
	if (aw_option_is_bad(value, len))
		return aw_fail_with(EFAULT);
	if (!aw_fdtab_look(fd, &sock))
		return aw_libc()->setsockopt(fd, level, name, value, len);
	switch (place_of(level, name)) {
	case PLACE_BOTH:
		if (set_at_proxy(fd, &sock, level, name, value, len) != 0)
			return -1;
		return aw_libc()->setsockopt(fd, level, name, value, len);
	case PLACE_NEAR:
		if (level == SOL_SOCKET && name == SO_RCVLOWAT)
			aw_extended_watch(fd);
		return aw_libc()->setsockopt(fd, level, name, value, len);
	case PLACE_TCP:
		return set_at_proxy(fd, &sock, level, name, value, len);
	case PLACE_LINGER:
		return set_linger(fd, &sock, value, len);
	case PLACE_FIXED:
	case PLACE_ERROR:
	case PLACE_NOWHERE:
		break;
	}
	return aw_fail_with(ENOPROTOOPT);
}

/* Returns whether the peer has yet to receive bytes of the connection. */
__attribute__((noinline)) static bool has_unsent(int fd)
{
	struct aw_request request;
	struct aw_reply reply;

	aw_request_init(&request, AW_REQUEST_DRAINED);
	return aw_proxy_call(&request, fd, &reply) == 0 && reply.error == EAGAIN;
}

/*
 * As with TCP, the close of the socket's last fd waits. The thread asks the proxy process again and
 * again, after longer and longer pauses.
 */
void aw_option_linger(int fd)
{
	struct aw_sock sock;
	int pause_ms = 1;
	int64_t until_ns;

	if (!aw_fdtab_look(fd, &sock) || sock.extended || sock.is_pair || sock.fds != 1 ||
	    !sock.linger.l_onoff || sock.linger.l_linger <= 0)
		return;
	until_ns = aw_now_ns() + sock.linger.l_linger * INT64_C(1000000000);
	while (has_unsent(fd) && aw_now_ns() < until_ns) {
		(void)aw_libc()->poll(NULL, 0, pause_ms);
		pause_ms = pause_ms < LINGER_PAUSE_MS_MAX ? 2 * pause_ms : pause_ms;
	}
}
