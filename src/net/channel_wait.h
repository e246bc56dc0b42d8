// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sleeping on a completion channel. The thread that waits for an event also serves the QPs that the
// progress thread lent to the channel (net/lend.h): an arrival wakes it alone.
#ifndef NET_CHANNEL_WAIT_H
#define NET_CHANNEL_WAIT_H

#include "net/channel.h"

#include <signal.h>

/*
 * As aw_channel_read, for completion channels: the oldest event; blocks as the fd's O_NONBLOCK says.
 * 0, or EAGAIN, EINTR, ETIMEDOUT. A cancellation point, but not while it serves.
 */
int aw_channel_await(struct aw_channel *ch, void **object, int *kind);

/* Does a thread of this process sleep so that a socket in the channel's set would wake it? */
bool aw_channel_has_waiter(const struct aw_channel *ch);

/* Does one, or did one a moment ago, so that it works on what woke it and will sleep there again? */
bool aw_channel_is_attended(const struct aw_channel *ch);

/*
 * The events of fd that wake a waiter, which then serves the QP with that handle; 0: none. Only while
 * the channel has had a waiter in this process. 0, or ENOMEM, ENOSPC.
 */
int aw_channel_watch(struct aw_channel *ch, int fd, uint32_t handle, uint32_t events);

/*
 * The calling thread's mask of signals while it sleeps in aw_channel_await, and nowhere else, as of ppoll(2); NULL: as
 * it is. It is borrowed until the next call.
 */
void aw_channel_let(const sigset_t *mask);
/* How long it sleeps there at the most, each time; below 0, as at first: without a limit. */
void aw_channel_limit(int64_t timeout_ns);

#endif
