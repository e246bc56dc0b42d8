// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether an fd has been swapped.
#include "xsock/process/fdtab.h"

bool aw_fdtab_is_paired(int fd)
{
	const struct aw_sock *sock;
	bool paired;

	if (aw_fdtab_state(fd) != AW_FD_STARTING)
		return aw_fdtab_state(fd) == AW_FD_BRIDGED;
	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	paired = sock && sock->state == AW_FD_BRIDGED;
	aw_fdtab_unlock();
	return paired;
}
