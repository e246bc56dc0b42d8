// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a listener is registered (aw_offer_announce): not before the program waits for its connections, since the client's connect(2)
// waits for accept(2). The server of a passive FTP transfer listens, and accepts when the client has asked for the file behind its
// connect: a client that found a registration would wait for nothing.
#ifndef XSOCK_PAIR_ATTEND_H
#define XSOCK_PAIR_ATTEND_H

#include <poll.h>
#include <stdbool.h>

#include "xsock/base/sets.h"
#include "xsock/process/fdtab.h"

/* The program is about to accept, or to wait until it can: by fd, by poll(2), by select(2). Keep errno. Call without a lock. */
void aw_attend_now(int fd);
void aw_attend_poll_now(const struct pollfd *fds, nfds_t count);
void aw_attend_select_now(const struct aw_select_sets *sets, int limit);

/*
 * A child or another program is about to get the program's listeners, and may wait in calls that this process does not see:
 * registers all; surviving: only those that an exec leaves open. Keeps errno. Call without a lock.
 */
void aw_attend_all(bool surviving);

static inline void aw_attend(int fd)
{
	if (__builtin_expect(aw_fdtab_any_unannounced(), 0))
		aw_attend_now(fd);
}

static inline void aw_attend_poll(const struct pollfd *fds, nfds_t count)
{
	if (__builtin_expect(aw_fdtab_any_unannounced(), 0))
		aw_attend_poll_now(fds, count);
}

static inline void aw_attend_select(const struct aw_select_sets *sets, int limit)
{
	if (__builtin_expect(aw_fdtab_any_unannounced(), 0))
		aw_attend_select_now(sets, limit);
}

#endif
