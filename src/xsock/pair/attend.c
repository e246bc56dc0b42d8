// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Registers each listener once.
#include "xsock/pair/attend.h"

#include <errno.h>
#include <fcntl.h>

#include "xsock/base/libc.h"
#include "xsock/pair/offer.h"

void aw_attend_now(int fd)
{
	struct aw_sock *sock = NULL;
	int saved = errno, beside;
	bool is_mine = false; /* this thread is the one that registers the listener */

	if (aw_fdtab_state(fd) == AW_FD_LISTENER && !aw_fdtab_is_vfork_child()) {
		aw_fdtab_lock();
		sock = aw_fdtab_get(fd);
		is_mine = sock && sock->unannounced;
		if (is_mine) {
			aw_fdtab_note_announced(sock);
			aw_fdtab_hold(sock);
		}
		aw_fdtab_unlock();
	}
	if (is_mine) {
		beside = aw_offer_announce(fd);
		aw_fdtab_lock();
		aw_fdtab_set_beside(
			sock, beside); /* it goes with the listener, if that is closed meanwhile */
		aw_fdtab_release(sock);
		aw_fdtab_unlock();
	}
	errno = saved;
}

void aw_attend_poll_now(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		aw_attend_now(fds[i].fd);
}

void aw_attend_select_now(const struct aw_select_sets *sets, int limit)
{
	for (int fd = 0; limit <= FD_SETSIZE && fd < limit; fd++)
		if (aw_fdtab_state(fd) == AW_FD_LISTENER && aw_sets_have(sets, fd))
			aw_attend_now(fd);
}

static bool is_unannounced(const struct aw_sock *sock, int fd, const void *surviving)
{
	return sock->unannounced &&
	       (!*(const bool *)surviving || !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC));
}

void aw_attend_all(bool surviving)
{
	if (!aw_fdtab_any_unannounced())
		return;
	for (int fd = aw_fdtab_find(0, is_unannounced, &surviving); fd >= 0;
	     fd = aw_fdtab_find(fd + 1, is_unannounced, &surviving))
		aw_attend_now(fd);
}
