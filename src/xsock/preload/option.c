// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: getsockopt and setsockopt. IWARP_MODE says whether a socket is in iWARP mode; on a bridged
// socket the pair has what is about reading and writing, the proxy process's TCP socket the rest.
#include "xsock/preload/option.h"

#include <anywarp/sockets.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/option_kept.h"
#include "xsock/preload/preamble.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/watch.h"

enum place {
	PLACE_NEAR, /* our end of the pair */
	PLACE_TCP, /* the proxy process's TCP socket */
	PLACE_BOTH,
	PLACE_FIXED, /* what a TCP socket always says */
	PLACE_ERROR,
	PLACE_LINGER, /* TCP's, and we wait by it */
	PLACE_NOWHERE,
};

struct rule {
	int name;
	enum place place;
};

static enum place place_of(int level, int name)
{
	static const struct rule rules[] = {
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

	if (level != SOL_SOCKET)
		return level == IPPROTO_TCP && name == TCP_INQ ? PLACE_NOWHERE : PLACE_TCP;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (rules[i].name == name)
			return rules[i].place;
	}
	return PLACE_TCP;
}

/* A bridged fd's socket as it is now; false where fd is something else by now. */
static bool look_up(int fd, struct aw_sock *like)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock)
		*like = *sock;
	aw_fdtab_unlock();
	return sock != NULL;
}

static int failed(int err)
{
	errno = err;
	return err ? -1 : 0;
}

/* The kernel would find out; we would die of it. */
static bool is_nowhere(const void *value, socklen_t len)
{
	return !value && len;
}

/* The kernel takes a length for an int. */
static bool is_negative(socklen_t len)
{
	return (int)len < 0;
}

static int give(const void *from, size_t have, void *value, socklen_t *len)
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

/* Whether the proxy process has died; told once. */
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

/* Why the proxy process has ended the connection, as long as nobody was told. */
static int ask_error(int fd)
{
	struct aw_reply answer;
	struct aw_request request;
	int err;

	aw_request_init(&request, AW_REQUEST_ERROR);
	err = aw_proxy_call(&request, fd, &answer);
	if (is_orphaned(fd))
		return ECONNRESET;
	return err ? 0 : answer.error;
}

/* Why the connection has ended, else what the pair says. */
static int get_error(int fd, const struct aw_sock *sock, void *value, socklen_t *len)
{
	int near = 0;
	socklen_t near_len = sizeof(near);
	int err;

	if (sock->extended)
		return aw_extended_get_option(sock, SOL_SOCKET, SO_ERROR, value, len);
	if (aw_libc()->getsockopt(fd, SOL_SOCKET, SO_ERROR, &near, &near_len) != 0)
		return -1;
	err = ask_error(fd);
	if (err)
		near = err;
	return give(&near, sizeof(near), value, len);
}

static int why_ended(int fd, const struct aw_sock *sock)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (!sock->extended)
		return ask_error(fd);
	(void)aw_extended_get_option(sock, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

int aw_option_end(int fd)
{
	struct aw_sock sock;
	int saved = errno, err = 0;

	if (!aw_sandbox_is_on() && look_up(fd, &sock))
		err = why_ended(fd, &sock);
	errno = err ? err : saved;
	return err ? -1 : 0;
}

static int get_bridged(int fd, int level, int name, void *value, socklen_t *len)
{
	struct aw_sock sock;
	int fixed;

	if (len && is_negative(*len))
		return failed(EINVAL);
	if (!len || is_nowhere(value, *len))
		return failed(EFAULT);
	if (!look_up(fd, &sock))
		return aw_libc()->getsockopt(fd, level, name, value, len);
	switch (place_of(level, name)) {
	case PLACE_NEAR:
		return aw_libc()->getsockopt(fd, level, name, value, len);
	case PLACE_TCP:
	case PLACE_BOTH:
		return get_from_proxy(fd, &sock, level, name, value, len);
	case PLACE_LINGER:
		return give(&sock.linger, sizeof(sock.linger), value, len);
	case PLACE_FIXED:
		fixed = name == SO_DOMAIN ? sock.local.ss_family : IPPROTO_TCP;
		return give(&fixed, sizeof(fixed), value, len);
	case PLACE_ERROR:
		return get_error(fd, &sock, value, len);
	case PLACE_NOWHERE:
		break;
	}
	return failed(ENOPROTOOPT);
}

static int set_linger(int fd, const struct aw_sock *like, const void *value, socklen_t len)
{
	struct aw_sock *sock;
	int result;

	if (len < sizeof(struct linger))
		return failed(EINVAL);
	result = set_at_proxy(fd, like, SOL_SOCKET, SO_LINGER, value, len);
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
		return failed(EINVAL);
	if (is_nowhere(value, len))
		return failed(EFAULT);
	if (!look_up(fd, &sock))
		return aw_libc()->setsockopt(fd, level, name, value, len);
	switch (place_of(level, name)) {
	case PLACE_BOTH:
		if (set_at_proxy(fd, &sock, level, name, value, len) != 0)
			return -1;
		return aw_libc()->setsockopt(fd, level, name, value, len);
	case PLACE_NEAR:
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
	return failed(ENOPROTOOPT);
}

/* The last fd of this process that is closed waits, as TCP's does. */
void aw_option_linger(int fd)
{
	struct aw_sock *sock;
	struct aw_reply answer;
	struct aw_request request;
	int ms = 0;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->fds == 1 && sock->linger.l_onoff && sock->linger.l_linger > 0) {
		ms = sock->linger.l_linger < INT_MAX / 1000 ? sock->linger.l_linger * 1000
							    : INT_MAX;
		aw_request_init(&request, AW_REQUEST_DRAIN);
	}
	aw_fdtab_unlock();
	if (!ms)
		return;
	request.len = sizeof(ms);
	memcpy(request.value, &ms, sizeof(ms));
	(void)aw_proxy_call(&request, fd, &answer);
}

static bool is_stream(int fd)
{
	int type = 0, domain = 0;
	socklen_t type_len = sizeof(type), domain_len = sizeof(domain);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
	       aw_libc()->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
	       type == SOCK_STREAM && (domain == AF_INET || domain == AF_INET6);
}

static bool is_connected(int fd)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(remote);

	return aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len) == 0;
}

static bool is_listening(int fd)
{
	int listening = 0;
	socklen_t len = sizeof(listening);

	aw_libc()->getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len);
	return listening;
}

/* A record for fd in the state that it is in. Who was accepted waits, who made the socket begins. */
static bool make_record(int fd)
{
	struct aw_sock like = { .state = AW_FD_CANDIDATE };
	struct aw_sock *sock;
	bool made = aw_fdtab_state(fd) == AW_FD_CANDIDATE;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	aw_fdtab_unlock();
	if (sock)
		return true;
	if (is_listening(fd))
		like.state = AW_FD_LISTENER;
	like.role = made ? AW_ROLE_ACTIVE : AW_ROLE_PASSIVE;
	return aw_fdtab_add(fd, &like);
}

static void go_plain(struct aw_sock *sock)
{
	aw_watch_narrow(sock);
	aw_preamble_end(sock);
	aw_fdtab_drop(sock);
}

/* False: it has begun. With the lock. */
static bool take_mode(struct aw_sock *sock, enum aw_xs_mode mode, bool start)
{
	if (sock->state == AW_FD_BRIDGED || sock->state == AW_FD_FRAMED)
		return false;
	sock->mode = mode;
	sock->mode_asked = true;
	if (start)
		aw_fdtab_set_state(sock, AW_FD_PENDING);
	else if (mode == AW_XS_OFF &&
		 (sock->state == AW_FD_PENDING || sock->state == AW_FD_CONNECTING))
		go_plain(sock);
	return true;
}

/* Another thread may begin to use it meanwhile; what has started stays as it is. */
static int set_mode(int fd, enum aw_xs_mode mode)
{
	bool start = is_connected(fd) && mode != AW_XS_OFF, taken;
	struct aw_sock *sock;

	if (!make_record(fd))
		return failed(ENOMEM);
	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	taken = !sock || take_mode(sock, mode, start);
	aw_fdtab_unlock();
	if (!taken)
		return failed(EISCONN);
	return start ? aw_first_io_slow(fd, mode == AW_XS_ON ? AW_FIRST_WRITE : AW_FIRST_POLL, true)
		     : 0;
}

static int set_role(int fd, int role)
{
	struct aw_sock *sock;

	if (!make_record(fd))
		return failed(ENOMEM);
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
		return failed(aw_fdtab_state(fd) == AW_FD_BRIDGED ? EISCONN : EOPNOTSUPP);
	if (is_negative(len) || len < sizeof(number))
		return failed(EINVAL);
	if (!value)
		return failed(EFAULT);
	memcpy(&number, value, sizeof(number));
	if (name == IWARP_MODE && number >= IWARP_OFF && number <= IWARP_AUTO)
		return set_mode(fd, (enum aw_xs_mode)number);
	if (name == IWARP_ROLE && (number == IWARP_ACTIVE || number == IWARP_PASSIVE))
		return set_role(fd, number);
	return failed(name == IWARP_MODE || name == IWARP_ROLE ? EINVAL : ENOPROTOOPT);
}

static int get_iwarp(int fd, int name, void *value, socklen_t *len)
{
	struct aw_sock sock = { .mode = AW_XS_OFF };
	int number;

	if (len && is_negative(*len))
		return failed(EINVAL);
	if (!len || is_nowhere(value, *len))
		return failed(EFAULT);
	if (name != IWARP_MODE && name != IWARP_ROLE)
		return failed(ENOPROTOOPT);
	if (!look_up(fd, &sock) && !is_stream(fd))
		return failed(EOPNOTSUPP);
	number = name == IWARP_MODE ? (int)sock.mode : (int)sock.role;
	if ((sock.state == AW_FD_BRIDGED || sock.slot) && name == IWARP_MODE)
		number = IWARP_ON;
	return give(&number, sizeof(number), value, len);
}

/* Another thread has made a pair of fd while the kernel was asked. */
static bool was_replaced(int fd)
{
	return (errno == EOPNOTSUPP || errno == ENOPROTOOPT) && aw_fdtab_is_paired(fd);
}

/* Whether a pair and the TCP socket answer alike. An error that was told must not be asked for again. */
static bool is_common(int level, int name)
{
	enum place place = place_of(level, name);

	return place == PLACE_NEAR || place == PLACE_ERROR;
}

/* An AF_UNIX socket that is asked for TCP's options may be a bridged fd from another process. */
static bool is_foreign(int fd, int level, int name)
{
	return aw_fdtab_state(fd) == AW_FD_NONE &&
	       (level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
		(level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL)));
}

static bool is_unix(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       domain == AF_UNIX;
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
	if (aw_framed_get_option(fd, level, name, value, len))
		return 0;
	result = aw_libc()->getsockopt(fd, level, name, value, len);
	if (result == 0 ? undecided && !is_common(level, name) && aw_fdtab_is_paired(fd)
			: was_replaced(fd)) {
		if (len)
			*len = room;
		errno = saved;
		return get_bridged(fd, level, name, value, len);
	}
	if (!len || !is_foreign(fd, level, name) || (result == 0 && level != SOL_SOCKET) ||
	    !is_unix(fd) || !aw_name_adopt(fd))
		return result;
	*len = room;
	errno = saved;
	return get_bridged(fd, level, name, value, len);
}

/* What is set while another thread makes a pair of fd goes to the TCP socket, when that may have been read already. */
AW_WRAPPER int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	bool undecided = aw_fdtab_is_undecided(fd);
	int result;

	if (__builtin_expect(level == SOL_IWARP, 0))
		return set_iwarp(fd, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return set_bridged(fd, level, name, value, len);
	if (aw_fdtab_state(fd) == AW_FD_FRAMED && place_of(level, name) == PLACE_NOWHERE)
		return failed(ENOPROTOOPT);
	if (aw_framed_set_option(fd, level, name, value, len, &result))
		return result;
	result = aw_libc()->setsockopt(fd, level, name, value, len);
	if (result == 0 && !(undecided && aw_fdtab_is_paired(fd))) {
		if (undecided)
			(void)aw_framed_set_option(fd, level, name, value, len, &result);
		return result;
	}
	if (result != 0 && !was_replaced(fd) &&
	    (!is_foreign(fd, level, name) || !aw_name_adopt(fd)))
		return result;
	return set_bridged(fd, level, name, value, len);
}
