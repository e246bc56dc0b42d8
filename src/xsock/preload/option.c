// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: getsockopt and setsockopt. At level SOL_IWARP the library itself
// has IWARP_MODE and IWARP_ROLE. On a bridged socket the
// pair has the options of reading and writing, and the proxy process's TCP socket has the others.
#include "xsock/preload/option.h"

#include <anywarp/sockets.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/option_kept.h"
#include "xsock/process/mode.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"

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

/* Returns whether getsockopt takes bytes out of the TCP socket: those would be FPDUs. */
static bool is_zero_copy(int level, int name)
{
	return level == IPPROTO_TCP && name == TCP_ZEROCOPY_RECEIVE;
}

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
	if (level == SOL_TLS || is_zero_copy(level, name) ||
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

/* The kernel returns EFAULT for such a buffer; this library would crash. */
static bool is_bad_buffer(const void *value, socklen_t len)
{
	return !value && len;
}

/* The kernel reads a length as an int. */
static bool is_negative(socklen_t len)
{
	return (int)len < 0;
}

/* Copies have bytes to the program's buffer, or as many as fit. Returns 0. */
static int copy_out(const void *from, size_t have, void *value, socklen_t *len)
{
	if (*len > have)
		*len = (socklen_t)have;
	memcpy(value, from, *len);
	return 0;
}

static int get_from_proxy(int fd, const struct aw_sock *sock, int level, int name, void *value,
			  socklen_t *len)
{
	if (sock->extended)
		return aw_extended_get_option(sock, level, name, value, len);
	return aw_option_get_kept(fd, level, name, value, len);
}

static int set_at_proxy(int fd, const struct aw_sock *sock, int level, int name, const void *value,
			socklen_t len)
{
	if (sock->extended)
		return aw_extended_set_option(sock, level, name, value, len);
	return aw_option_set_kept(fd, level, name, value, len);
}

/* Returns whether fd's proxy process has died, once. */
static bool is_orphaned(int fd)
{
	struct aw_sock *sock;
	bool orphaned;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	orphaned = sock && sock->orphaned;
	if (orphaned)
		sock->orphaned = false;
	aw_fdtab_unlock();
	return orphaned;
}

/*
 * Returns the errno with which the connection has ended, once, or 0. The proxy process keeps it
 * until a process has read it.
 */
static int take_errno(int fd)
{
	struct aw_reply reply;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_ERROR);
	err = aw_proxy_call(&request, fd, &reply);
	if (is_orphaned(fd))
		return ECONNRESET;
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
	err = take_errno(fd);
	if (err)
		near = err;
	return copy_out(&near, sizeof(near), value, len);
}

static int end_errno(int fd, const struct aw_sock *sock)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (!sock->extended)
		return take_errno(fd);
	(void)aw_extended_get_option(sock, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

int aw_option_end(int fd)
{
	struct aw_sock sock;
	int saved = errno, err = 0;

	if (!aw_sandbox_is_on() && aw_fdtab_look(fd, &sock))
		err = end_errno(fd, &sock);
	errno = err ? err : saved;
	return err ? -1 : 0;
}

static int get_bridged(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_sock sock;
	int fixed;

	if (len && is_negative(*len))
		return aw_fail_with(EINVAL);
	if (!len || is_bad_buffer(value, *len))
		return aw_fail_with(EFAULT);
	if (!aw_fdtab_look(fd, &sock))
		return aw_libc()->getsockopt(fd, level, name, value, len);
	switch (place_of(level, name)) {
	case PLACE_NEAR:
		return aw_libc()->getsockopt(fd, level, name, value, len);
	case PLACE_TCP:
	case PLACE_BOTH:
		return get_from_proxy(fd, &sock, level, name, value, len);
	case PLACE_LINGER:
		return copy_out(&sock.linger, sizeof(sock.linger), value, len);
	case PLACE_FIXED:
		fixed = name == SO_DOMAIN ? sock.local.ss_family : IPPROTO_TCP;
		return copy_out(&fixed, sizeof(fixed), value, len);
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

static int set_bridged(int fd, int level, int name, const void *value, socklen_t len)
{
	struct aw_sock sock;

	if (is_negative(len))
		return aw_fail_with(EINVAL);
	if (is_bad_buffer(value, len))
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

/* As with TCP, the close of the socket's last fd waits. */
void aw_option_linger(int fd)
{
	struct aw_sock sock;
	struct aw_reply reply;
	struct aw_request request;
	int ms;

	if (!aw_fdtab_look(fd, &sock) || sock.extended || sock.fds != 1 || !sock.linger.l_onoff ||
	    sock.linger.l_linger <= 0)
		return;
	ms = sock.linger.l_linger < INT_MAX / 1000 ? sock.linger.l_linger * 1000 : INT_MAX;
	aw_request_init(&request, AW_REQUEST_DRAIN);
	request.len = sizeof(ms);
	memcpy(request.value, &ms, sizeof(ms));
	(void)aw_proxy_call(&request, fd, &reply);
}

static bool is_stream(int fd)
{
	int domain = aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, 0);

	return (domain == AF_INET || domain == AF_INET6) &&
	       aw_sockopt_int(fd, SOL_SOCKET, SO_TYPE, 0) == SOCK_STREAM;
}

static bool is_connected(int fd)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(remote);

	return aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len) == 0;
}

/*
 * Adds fd's socket to the table, in the state that it is in. False: no memory. A socket that the
 * program has made itself takes the active role; one that the table does not know may have been
 * accepted, and takes the passive role.
 */
static bool add_to_table(int fd)
{
	struct aw_sock like = { .state = AW_FD_CANDIDATE }, known;
	bool made = aw_fdtab_state(fd) == AW_FD_CANDIDATE;

	if (aw_fdtab_look(fd, &known))
		return true;
	if (aw_sockopt_int(fd, SOL_SOCKET, SO_ACCEPTCONN, 0))
		like.state = AW_FD_LISTENER;
	like.role = made ? AW_ROLE_ACTIVE : AW_ROLE_PASSIVE;
	return aw_fdtab_add(fd, &like);
}

/* Sets sock's mode. False: MPA has started. The caller holds the table's lock. */
static bool apply_mode(struct aw_sock *sock, enum aw_xs_mode mode, bool start)
{
	if (sock->state == AW_FD_BRIDGED || sock->state == AW_FD_FRAMED)
		return false;
	sock->mode = mode;
	sock->mode_is_set = true;
	aw_mode_note_program();
	if (start)
		aw_fdtab_set_state(sock, AW_FD_PENDING);
	else if (mode == AW_XS_OFF &&
		 (sock->state == AW_FD_PENDING || sock->state == AW_FD_CONNECTING))
		aw_first_io_make_plain(sock);
	return true;
}

/*
 * Sets fd's mode. Another thread may make the first I/O meanwhile; a connection that has started
 * stays as it is.
 */
static int set_mode(int fd, enum aw_xs_mode mode)
{
	bool start = is_connected(fd) && mode != AW_XS_OFF, taken;
	struct aw_sock *sock;

	if (!add_to_table(fd))
		return aw_fail_with(ENOMEM);
	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	taken = !sock || apply_mode(sock, mode, start);
	aw_fdtab_unlock();
	if (!taken)
		return aw_fail_with(EISCONN);
	return start ? aw_first_io_make(fd, mode == AW_XS_ON ? AW_FIRST_WRITE : AW_FIRST_POLL, true)
		     : 0;
}

static int set_role(int fd, int role)
{
	struct aw_sock *sock;

	if (!add_to_table(fd))
		return aw_fail_with(ENOMEM);
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock)
		sock->role = (enum aw_role)role;
	aw_fdtab_unlock();
	return 0;
}

static int set_iwarp(int fd, int name, const void *value, socklen_t len)
{
	int number;

	if (!is_stream(fd))
		return aw_fail_with(aw_fdtab_state(fd) == AW_FD_BRIDGED ? EISCONN : EOPNOTSUPP);
	if (is_negative(len) || len < sizeof(number))
		return aw_fail_with(EINVAL);
	if (!value)
		return aw_fail_with(EFAULT);
	memcpy(&number, value, sizeof(number));
	if (name == IWARP_MODE && number >= IWARP_OFF && number <= IWARP_AUTO)
		return set_mode(fd, (enum aw_xs_mode)number);
	if (name == IWARP_ROLE && (number == IWARP_ACTIVE || number == IWARP_PASSIVE))
		return set_role(fd, number);
	return aw_fail_with(name == IWARP_MODE || name == IWARP_ROLE ? EINVAL : ENOPROTOOPT);
}

static int get_iwarp(int fd, int name, void *value, socklen_t *len)
{
	struct aw_sock sock = { .mode = AW_XS_OFF };
	int number;

	if (len && is_negative(*len))
		return aw_fail_with(EINVAL);
	if (!len || is_bad_buffer(value, *len))
		return aw_fail_with(EFAULT);
	if (name != IWARP_MODE && name != IWARP_ROLE)
		return aw_fail_with(ENOPROTOOPT);
	if (!aw_fdtab_look(fd, &sock) && !is_stream(fd))
		return aw_fail_with(EOPNOTSUPP);
	number = name == IWARP_MODE ? (int)sock.mode : (int)sock.role;
	if ((sock.state == AW_FD_BRIDGED || sock.slot) && name == IWARP_MODE)
		number = IWARP_ON;
	return copy_out(&number, sizeof(number), value, len);
}

/*
 * Returns whether the kernel's call has failed because another thread has made a pair of fd
 * meanwhile.
 */
static bool was_replaced(int fd)
{
	return (errno == EOPNOTSUPP || errno == ENOPROTOOPT) && aw_fdtab_is_paired(fd);
}

/*
 * Returns whether a pair and the TCP socket return the same value. SO_ERROR is one of these,
 * because reading it clears it.
 */
static bool is_common(int level, int name)
{
	enum place place = place_of(level, name);

	return place == PLACE_NEAR || place == PLACE_ERROR;
}

/*
 * Returns whether fd may be a bridged fd from another process: the program uses an option of TCP's
 * on an fd that the table does not know.
 */
static bool is_foreign(int fd, int level, int name)
{
	return aw_fdtab_state(fd) == AW_FD_NONE &&
	       (level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
		(level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL)));
}

/* Writes the errno that TCP has reported to the library in place of the program, if there is one. */
static void take_undecided(int fd, void *value, socklen_t len)
{
	int err = aw_first_io_take_error(fd);

	if (err)
		memcpy(value, &err, len < sizeof(err) ? len : sizeof(err));
}

AW_WRAPPER int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	socklen_t room = len ? *len : 0;
	bool undecided = aw_fdtab_is_undecided(fd);
	int result, saved = errno;

	if (aw_first_io(fd, AW_FIRST_POLL, true))
		return -1;
	if (__builtin_expect(level == SOL_IWARP, 0))
		return get_iwarp(fd, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return get_bridged(fd, level, name, value, len);
	if (aw_fdtab_is_special(fd) && is_zero_copy(level, name))
		return aw_fail_with(ENOPROTOOPT);
	if (aw_framed_get_option(fd, level, name, value, len))
		return 0;
	result = aw_libc()->getsockopt(fd, level, name, value, len);
	if (result == 0 && undecided && level == SOL_SOCKET && name == SO_ERROR)
		take_undecided(fd, value, *len);
	if (result == 0 ? undecided && !is_common(level, name) && aw_fdtab_is_paired(fd)
			: was_replaced(fd)) {
		if (len)
			*len = room;
		errno = saved;
		return get_bridged(fd, level, name, value, len);
	}
	if (!len || !is_foreign(fd, level, name) || (result == 0 && level != SOL_SOCKET) ||
	    aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, 0) != AF_UNIX || !aw_name_import(fd))
		return result;
	*len = room;
	errno = saved;
	return get_bridged(fd, level, name, value, len);
}

/*
 * SO_PEEK_OFF would move the looks of a record, too: the proxy process has the connection then, and the pair the option. Returns 0, or -1
 * with errno.
 */
static int prepare_peek_offset(int fd)
{
	if (aw_fdtab_state(fd) == AW_FD_PENDING)
		(void)aw_first_io_make(fd, AW_FIRST_WRITE, true);
	return aw_framed_bridge(fd);
}

/*
 * If another thread makes a pair of fd during the call, the kernel's call may meet the TCP socket
 * when its options were read already: then the option is set once more.
 */
AW_WRAPPER int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	bool undecided = aw_fdtab_is_undecided(fd);
	int result;

	if (__builtin_expect(level == SOL_IWARP, 0))
		return set_iwarp(fd, name, value, len);
	if (level == SOL_SOCKET && name == SO_PEEK_OFF && prepare_peek_offset(fd))
		return -1;
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return set_bridged(fd, level, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_FRAMED && place_of(level, name) == PLACE_NOWHERE)
		return aw_fail_with(ENOPROTOOPT);
	if (aw_framed_set_option(fd, level, name, value, len, &result))
		return result;
	result = aw_libc()->setsockopt(fd, level, name, value, len);
	if (result == 0 && aw_fdtab_state(fd) == AW_FD_LISTENER && level == SOL_SOCKET &&
	    name == SO_REUSEPORT && !aw_sandbox_is_on())
		/* other programs may listen at its port now */
		(void)aw_proxy_announce(fd, aw_mode_records());
	if (result == 0 && !(undecided && aw_fdtab_is_paired(fd))) {
		if (undecided)
			(void)aw_framed_set_option(fd, level, name, value, len, &result);
		return result;
	}
	if (result != 0 && !was_replaced(fd) &&
	    (!is_foreign(fd, level, name) || !aw_name_import(fd)))
		return result;
	return set_bridged(fd, level, name, value, len);
}
