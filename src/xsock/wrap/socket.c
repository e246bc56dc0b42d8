// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: socket, listen, accept, getsockname and getpeername. The fd is a plain TCP socket
// in all of them; they decide whether it may become iWARP at its first I/O.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/refusal.h"
#include "xsock/pair/attend.h"
#include "xsock/pair/offer.h"
#include "xsock/pair/plain_note.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/inherit.h"
#include "xsock/process/deadline.h"
#include "xsock/process/mode.h"
#include "xsock/process/name.h"
#include "xsock/process/protect.h"
#include "xsock/wrap/wrap.h"

/* Returns whether caller is in a verbs library, whose own sockets stay plain TCP. */
static bool is_verbs(const void *caller)
{
	const char *name;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	return strncmp(name, "librdmacm.so", 12) == 0 || strncmp(name, "libibverbs.so", 13) == 0;
}

AW_WRAPPER int socket(int domain, int type, int protocol)
{
	int fd = aw_libc()->socket(domain, type, protocol);

	if (fd < 0)
		return fd;
	aw_fdtab_forget(fd);
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP) &&
	    !is_verbs(__builtin_return_address(0)))
		aw_fdtab_mark(fd);
	return fd;
}

/* The numbers may be those of connections that were closed unseen. */
AW_WRAPPER int socketpair(int domain, int type, int protocol, int fds[2])
{
	int result = aw_libc()->socketpair(domain, type, protocol, fds);

	for (int i = 0; result == 0 && i < 2; i++)
		aw_fdtab_forget(fds[i]);
	return result;
}

AW_WRAPPER int listen(int fd, int backlog)
{
	struct aw_sock like = { .state = AW_FD_LISTENER, .role = AW_ROLE_PASSIVE };
	int result = aw_libc()->listen(fd, backlog);
	union aw_address local = { 0 };
	socklen_t len = sizeof(local);
	bool may_iwarp;

	if (result != 0 || aw_fdtab_state(fd) != AW_FD_CANDIDATE ||
	    aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		return result;
	like.mode = aw_mode_of_program(fd, &like.mode_is_set);
	if (like.mode_is_set) {
		like.unannounced = like.mode == AW_XS_AUTO;
		may_iwarp = like.mode != AW_XS_OFF;
	} else {
		like.unannounced = aw_mode_may_pair((const struct sockaddr *)&local);
		may_iwarp = aw_mode_may_accept((const struct sockaddr *)&local);
	}
	if (!may_iwarp)
		return result;
	(void)aw_fdtab_add(fd, &like);
	return result;
}

/*
 * A listener's state before the call of accept: another thread may close the listener meanwhile,
 * and the kernel's accept goes on.
 */
struct listener_state {
	bool listens, mode_is_set;
	enum aw_xs_mode mode;
};

static struct listener_state read_listener(int listener)
{
	struct listener_state state = { 0 };

	aw_fdtab_await_left(listener);
	aw_attend(listener);
	state.listens = aw_fdtab_state(listener) == AW_FD_LISTENER;
	if (state.listens)
		state.mode = aw_mode_of_program(listener, &state.mode_is_set);
	return state;
}

/* Where TLS is required no connection goes on as plain TCP. */
static int refuse_accepted(int fd)
{
	aw_libc()->close(fd);
	return aw_fail_with(ECONNABORTED);
}

static int add_accepted(const struct listener_state *state, int fd, int flags)
{
	struct aw_sock like = { .state = AW_FD_PENDING, .role = AW_ROLE_PASSIVE };
	int saved = errno;

	if (fd < 0)
		return fd;
	aw_fdtab_forget(fd);
	if (!state->listens && !aw_protect_covers(fd))
		return fd;
	like.mode = state->mode_is_set ? state->mode : aw_mode_of(fd, true, NULL);
	if (like.mode == AW_XS_AUTO) {
		aw_offer_take(fd, flags);
	} else if (aw_xs_mode_is_carried(like.mode)) {
		like.due_ns = aw_deadline_begin();
		if (aw_refusal_is_due_to_mptcp(fd)) {
			like.error = EPROTONOSUPPORT;
			(void)aw_libc()->shutdown(fd, SHUT_RDWR);
			aw_protect_discard(fd);
		}
		if (!aw_fdtab_add(fd, &like)) {
			aw_fdtab_log_left_out(fd, aw_protect_is_on());
			if (aw_protect_is_on())
				return refuse_accepted(fd);
		}
	} else {
		aw_plain_note(fd, AW_PLAIN_OFF);
	}
	aw_first_io_for_stdio(fd);
	errno = saved;
	return fd;
}

AW_WRAPPER int accept(int listener, struct sockaddr *addr, socklen_t *len)
{
	const struct listener_state state = read_listener(listener);

	return add_accepted(&state, aw_libc()->accept(listener, addr, len), 0);
}

AW_WRAPPER int accept4(int listener, struct sockaddr *addr, socklen_t *len, int flags)
{
	const struct listener_state state = read_listener(listener);

	return add_accepted(&state, aw_libc()->accept4(listener, addr, len, flags), flags);
}

static int libc_name(int fd, bool remote, struct sockaddr *addr, socklen_t *len)
{
	return remote ? aw_libc()->getpeername(fd, addr, len)
		      : aw_libc()->getsockname(fd, addr, len);
}

static int copy_bridged_name(int fd, bool remote, struct sockaddr *addr, socklen_t *len)
{
	const union aw_address *name;
	struct aw_sock sock;
	socklen_t full;

	if (!aw_fdtab_look(fd, &sock))
		return libc_name(fd, remote, addr, len);
	if ((int)*len < 0)
		return aw_fail_with(EINVAL);
	name = remote ? &sock.remote : &sock.local;
	full = name->any.sa_family == AF_INET ? sizeof(struct sockaddr_in)
					      : sizeof(struct sockaddr_in6);
	memcpy(addr, name, *len < full ? *len : full);
	*len = full;
	return 0;
}

/*
 * Writes fd's own name, or its peer's. An fd that looks like AF_UNIX may be a bridged one from
 * another process.
 */
static int copy_name(int fd, bool remote, struct sockaddr *addr, socklen_t *len)
{
	socklen_t room;
	int result;

	if (!addr || !len) /* libc returns the error */
		return libc_name(fd, remote, addr, len);
	room = *len;
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return copy_bridged_name(fd, remote, addr, len);
	result = libc_name(fd, remote, addr, len);
	if (result != 0 || room < sizeof(addr->sa_family) || addr->sa_family != AF_UNIX ||
	    !(aw_fdtab_is_paired(fd) || aw_name_import(fd)))
		return result;
	*len = room;
	return copy_bridged_name(fd, remote, addr, len);
}

AW_WRAPPER int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return copy_name(fd, false, addr, len);
}

AW_WRAPPER int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return copy_name(fd, true, addr, len);
}

/*
 * The mode of a listener from another process is the one that the rules give a listener of this
 * process.
 */
void aw_socket_received(int fd)
{
	struct aw_sock like = { .state = AW_FD_LISTENER, .role = AW_ROLE_PASSIVE };
	union aw_address local = { 0 };
	socklen_t len = sizeof(local);

	aw_fdtab_forget(fd);
	if (aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		return;
	if (local.any.sa_family == AF_UNIX) {
		(void)aw_name_import(fd);
		return;
	}
	if (local.any.sa_family != AF_INET && local.any.sa_family != AF_INET6)
		return;
	if (!aw_sockopt_int(fd, SOL_SOCKET, SO_ACCEPTCONN, 0)) {
		aw_inherit_connection(fd);
		return;
	}
	if (!aw_mode_may_accept((struct sockaddr *)&local))
		return;
	(void)aw_fdtab_add(fd, &like);
}
