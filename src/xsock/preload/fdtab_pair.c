// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether an fd has been swapped.
#include "xsock/preload/fdtab.h"

bool aw_fdtab_is_paired(int fd, bool begins)
{
	enum aw_fd_state state = aw_fdtab_state(fd);
	const struct aw_sock *sock;

	if (state == AW_FD_STARTING) {
		aw_fdtab_lock();
		sock = aw_fdtab_get(fd);
		while (sock && sock->state == AW_FD_STARTING && (begins || sock->direct)) {
			aw_fdtab_wait();
			sock = aw_fdtab_get(fd);
		}
		state = sock ? sock->state : AW_FD_NONE;
		aw_fdtab_unlock();
	}
	return state == AW_FD_BRIDGED || state == AW_FD_DIRECT;
}
