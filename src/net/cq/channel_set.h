// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The epoll sets of a channel. A thread sleeps on one of them: the channel's fd, and the sockets of QPs that its waiters serve. The
// other is the channel's fd itself, which the program polls: the sockets of QPs that its watchers serve.
#ifndef NET_CHANNEL_SET_H
#define NET_CHANNEL_SET_H

#include "net/cq/channel.h"

/* True when there is a set to sleep on. The first caller opens it; a set that the parent opened is not used. */
bool aw_channel_open_set(struct aw_channel *ch) AW_EXCLUDES(ch->lock);

/* True when the set is open, and of this process. */
bool aw_channel_has_set(const struct aw_channel *ch);

/* True when a thread of this process sleeps so that a socket in the set would wake it. */
bool aw_channel_has_waiter(const struct aw_channel *ch);

/* True when sockets may join the channel's fd: it is a set of this process, and the program has set O_NONBLOCK. */
bool aw_channel_takes_sockets(const struct aw_channel *ch);

/*
 * Sets the events of fd that wake a thread by one of these sets, which then serves the QP with that handle; 0 removes fd
 * from the set. 0, or ENOMEM, ENOSPC.
 */
int aw_channel_watch(int set, int fd, uint32_t handle, uint32_t events);

#endif
