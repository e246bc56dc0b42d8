// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sets of select(2), for a select that is made by poll(2). Called by wrap/poll.c and rsockets/rs_select.c.
#ifndef XSOCK_BASE_SETS_H
#define XSOCK_BASE_SETS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/select.h>

/* Each set may be NULL. */
struct aw_select_sets {
	fd_set *in, *out, *except;
};

/* Returns whether fd is in any of the sets. */
bool aw_sets_have(const struct aw_select_sets *sets, int fd);
/* Fills fds, which has room for limit, with the fds below limit that are in a set. Returns their number. */
nfds_t aw_sets_to_poll(const struct aw_select_sets *sets, int limit, struct pollfd *fds);
/*
 * Leaves in the sets the fds that poll(2) has found ready. Returns the number of fds left; -EBADF: one of the fds is not
 * open, and the sets are as they were.
 */
int aw_sets_from_poll(const struct aw_select_sets *sets, const struct pollfd *fds, nfds_t count);

#endif
