// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread's sleep on a completion channel. The thread that waits for an event also serves the QPs
// that the progress thread has lent to the channel (net/qp/lend.h), so an arrival wakes that thread
// alone.
#ifndef NET_CHANNEL_WAIT_H
#define NET_CHANNEL_WAIT_H

#include "net/cq/channel.h"

#include <signal.h>

/*
 * As aw_channel_read, for completion channels: takes the oldest event, and blocks unless the fd has
 * O_NONBLOCK. 0, or EAGAIN, EINTR, ETIMEDOUT. The sleep is a cancellation point; serving QPs is
 * not.
 */
int aw_channel_await(struct aw_channel *ch, void **object, int *kind);

/* True when a thread of this process sleeps so that a socket in the channel's set would wake it. */
bool aw_channel_has_waiter(const struct aw_channel *ch);

/*
 * True when there is such a thread, or when one woke a moment ago and is expected to sleep there
 * again.
 */
bool aw_channel_is_attended(const struct aw_channel *ch);

/*
 * Sets the events of fd that wake a waiter, which then serves the QP with that handle; 0 removes fd
 * from the set. Only for a channel that was attended in this process. 0, or ENOMEM, ENOSPC.
 */
int aw_channel_watch(struct aw_channel *ch, int fd, uint32_t handle, uint32_t events);

/*
 * Limits each sleep of the calling thread in aw_channel_await. A negative value, the initial one,
 * sets no limit.
 */
void aw_channel_limit(int64_t timeout_ns);

#endif
