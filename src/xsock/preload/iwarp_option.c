// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IWARP_MODE and IWARP_ROLE are fields of struct aw_sock.
#include "xsock/preload/iwarp_option.h"

#include <anywarp/sockets.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/option.h"
#include "xsock/process/deadline.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"

static bool is_stream(int fd)
{
	int domain = aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, 0);

	return (domain == AF_INET || domain == AF_INET6) &&
	       aw_sockopt_int(fd, SOL_SOCKET, SO_TYPE, 0) == SOCK_STREAM;
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

/* Sets sock's mode. False: MPA has started. */
static bool apply_mode(struct aw_sock *sock, enum aw_xs_mode mode, bool start)
	AW_REQUIRES(aw_fdtab_mutex)
{
	if (sock->state == AW_FD_BRIDGED || sock->state == AW_FD_FRAMED)
		return false;
	sock->mode = mode;
	sock->mode_is_set = true;
	aw_mode_note_program();
	if (start) {
		sock->due_ns = sock->role == AW_ROLE_PASSIVE ? aw_deadline_begin() : 0;
		aw_fdtab_set_state(sock, AW_FD_PENDING);
	} else if (mode != AW_XS_ON &&
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
	union aw_address remote;
	socklen_t len = sizeof(remote);
	bool connected = aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len) == 0;
	bool start = connected && mode == AW_XS_ON, taken;
	struct aw_sock *sock;

	if (mode != AW_XS_ON && aw_protect_is_on()) {
		aw_log(AW_LOG_ERROR,
		       "IWARP_MODE of fd %d refused: ANYWARP_TLS is require, and only mode on has TLS: leave the "
		       "socket to TCP by a rule 'off', or run the program without --tls require",
		       fd);
		return aw_fail_with(EPERM);
	}
	if (!add_to_table(fd))
		return aw_fail_with(ENOMEM);
	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	taken = !sock || apply_mode(sock, mode, start);
	aw_fdtab_unlock();
	if (!taken)
		return aw_fail_with(EISCONN);
	return start ? aw_first_io_make(fd, AW_FIRST_POLL, true) : 0;
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

int aw_iwarp_option_set(int fd, int name, const void *value, socklen_t len)
{
	int number;

	if (!is_stream(fd))
		return aw_fail_with(aw_fdtab_state(fd) == AW_FD_BRIDGED ? EISCONN : EOPNOTSUPP);
	if (aw_option_is_negative(len) || len < sizeof(number))
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

int aw_iwarp_option_get(int fd, int name, void *value, socklen_t *len)
{
	struct aw_sock sock = { .mode = AW_XS_OFF };
	int number;

	if (len && aw_option_is_negative(*len))
		return aw_fail_with(EINVAL);
	if (!len || aw_option_is_bad(value, *len))
		return aw_fail_with(EFAULT);
	if (name != IWARP_MODE && name != IWARP_ROLE)
		return aw_fail_with(ENOPROTOOPT);
	if (!aw_fdtab_look(fd, &sock) && !is_stream(fd))
		return aw_fail_with(EOPNOTSUPP);
	number = name == IWARP_MODE ? (int)sock.mode : (int)sock.role;
	if ((sock.state == AW_FD_BRIDGED || sock.slot) && name == IWARP_MODE)
		number = sock.is_pair ? IWARP_AUTO : IWARP_ON;
	return aw_option_copy_out(&number, sizeof(number), value, len);
}
