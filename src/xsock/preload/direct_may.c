// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a socket may be direct: what the program's user wants, the limits, and what has become of others.
#include "xsock/preload/direct.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "xsock/preload/env.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/sandbox.h"
#include "xsock/will.h"

#define PATIENCE_MAX 8
#define DIRECT_FDS 8 /* of one connection */

bool aw_direct_wanted;

/*
 * How often connections may still be handed on, each time to another process. One that has ended here gives another
 * time: a program that polls for all that it has soon leaves them to the keeper from the start.
 */
static _Atomic(int) patience = PATIENCE_MAX;

/* Another library's constructor may come before; its connections are the keeper's. */
__attribute__((constructor)) static void read_environment(void)
{
	aw_direct_wanted = aw_env_switch("ANYWARP_SOCKETS_DIRECT", true);
}

/*
 * The fds of all direct connections are an eighth of what the process may have, at the most, and the program's own no
 * more than half of it; and the page's file may be written, which would be a SIGXFSZ otherwise.
 */
static bool is_within_limits(int fd)
{
	struct rlimit files, octets;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 && (rlim_t)fd < files.rlim_cur / 2 &&
	       atomic_load(&aw_fdtab_directs) < files.rlim_cur / 8 / DIRECT_FDS &&
	       getrlimit(RLIMIT_FSIZE, &octets) == 0 && octets.rlim_cur >= AW_XS_WILL_OCTETS;
}

static bool is_plain_file(int fd)
{
	struct f_owner_ex owner;

	return !(aw_libc()->fcntl(fd, F_GETFL) & (O_NONBLOCK | O_ASYNC)) &&
	       (aw_libc()->fcntl(fd, F_GETOWN_EX, &owner) != 0 || owner.pid == 0);
}

bool aw_direct_may(struct aw_sock *sock, int fd)
{
	bool may;

	if (!aw_direct_is_on() || aw_sandbox_is_on() || atomic_load(&patience) <= 0)
		return false;
	aw_fdtab_lock();
	may = !sock->watches && aw_fdtab_next(sock, -1) >= AW_DIRECT_LOWEST_FD &&
	      atomic_load(&aw_fdtab_directs) < AW_DIRECT_MAX;
	aw_fdtab_unlock();
	return may && is_within_limits(fd) && is_plain_file(fd) && aw_direct_load();
}

void aw_direct_lose_patience(void)
{
	atomic_fetch_sub(&patience, 1);
}

void aw_direct_gain_patience(void)
{
	if (atomic_load(&patience) < PATIENCE_MAX)
		atomic_fetch_add(&patience, 1);
}
