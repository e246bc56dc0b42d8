// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The epoll set of a channel that a thread sleeps on: the channel's fd, and the sockets of QPs that its waiters serve.
#ifndef NET_CHANNEL_SET_H
#define NET_CHANNEL_SET_H

#include "net/cq/channel.h"

/* True when there is a set to sleep on. The first caller opens it; a set that the parent opened is not used. */
bool aw_channel_open_set(struct aw_channel *ch) AW_EXCLUDES(ch->lock);

/* True when the set is open, and of this process. */
bool aw_channel_has_set(const struct aw_channel *ch);

/* True when a thread of this process sleeps so that a socket in the set would wake it. */
bool aw_channel_has_waiter(const struct aw_channel *ch);

/*
 * Sets the events of fd that wake a waiter, which then serves the QP with that handle; 0 removes fd from the set. Only
 * for a channel that had a set in this process. 0, or ENOMEM, ENOSPC.
 */
int aw_channel_watch(struct aw_channel *ch, int fd, uint32_t handle, uint32_t events);

#endif
