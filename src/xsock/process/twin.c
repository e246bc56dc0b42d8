// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copies what a socket's file has, where it differs from a new socket's.
#include "xsock/process/twin.h"

#include <stddef.h>
#include <stdint.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"

static void copy_timeout(int from, int to, int name)
{
	struct timeval value = { 0 };
	socklen_t len = sizeof(value);

	if (aw_libc()->getsockopt(from, SOL_SOCKET, name, &value, &len) == 0 &&
	    (value.tv_sec || value.tv_usec))
		aw_libc()->setsockopt(to, SOL_SOCKET, name, &value, len);
}

/* usual: the value of a new socket. Returns whether from has another one. */
static bool copy_number(int from, int to, int name, int usual)
{
	int value = aw_sockopt_int(from, SOL_SOCKET, name, usual);

	if (value != usual)
		aw_libc()->setsockopt(to, SOL_SOCKET, name, &value, sizeof(value));
	return value != usual;
}

void aw_twin_copy_options(int from, int to)
{
	copy_timeout(from, to, SO_RCVTIMEO);
	copy_timeout(from, to, SO_SNDTIMEO);
	copy_number(from, to, SO_OOBINLINE, 0);
}

void aw_twin_copy(int from, int to, bool keeps)
{
	int flags = aw_libc()->fcntl(from, F_GETFL), none = -1;
	struct f_owner_ex owner, nobody = { .type = F_OWNER_PID };

	aw_twin_copy_options(from, to);
	if (copy_number(from, to, SO_PEEK_OFF, -1))
		(void)aw_libc()->setsockopt(from, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));

	if (aw_libc()->fcntl(from, F_GETOWN_EX, &owner) == 0 && owner.pid) {
		aw_libc()->fcntl(to, F_SETOWN_EX, &owner);
		aw_libc()->fcntl(to, F_SETSIG, aw_libc()->fcntl(from, F_GETSIG));
		if (!keeps)
			aw_libc()->fcntl(from, F_SETOWN_EX, &nobody);
	}
	aw_libc()->fcntl(to, F_SETFL, flags & (O_NONBLOCK | O_ASYNC));
	if (flags & O_ASYNC && !keeps)
		aw_libc()->fcntl(from, F_SETFL, flags & ~O_ASYNC);
}
