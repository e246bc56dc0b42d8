// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread's sleep on a completion channel. The thread that waits for an event also serves the QPs
// that the progress thread has left to the channel's waiters (net/qp/serve.h), so an arrival wakes that thread
// alone.
//
// A thread sleeps in an epoll set of the channel, which contains the channel's fd. A QP is left to
// the channel's waiters if all its CQs, or all its armed ones, belong to the channel, a thread sleeps there
// or woke less than 10 ms ago, and the last two arrivals were less than 10 ms apart. The QPs
// return to the progress thread when nobody sleeps there any more, or after 10 ms without an
// arrival, so that no tick runs while a process sleeps. Between two such sleeps the first two vain
// polls ask no socket, since the next sleep does.
//
// A program that waits for the channel's fd by poll(2) may take a failure to get an event for fatal, as Gloo does, so the fd is
// readable only while ibv_get_cq_event has one. At first the progress thread serves such a program's QPs and raises the fd, and
// each message wakes two threads. The fd is an epoll set, which the socket of a QP joins (through memory with its bells) once
//   - the fd has O_NONBLOCK, and a thread took an event less than 10 ms ago without a sleep in here,
//   - the QP's last 32 arrivals have all raised an event, but for messages that came before the program had taken the last one; and
//     the last two were less than 10 ms apart.
// Then an arrival wakes the program alone, and ibv_get_cq_event receives. Where bytes have come and raise no event, as a Write or a
// part of a message, or a bell comes behind another thread that has taken its bytes, it returns the event of an armed CQ all the
// same: the program polls that CQ and finds it empty, as it does where it has polled the completion of an event before the event. The
// progress thread, or a poster that fills room, leaves such an event where it comes first (net/qp/watched.h). Unless it was but a bell
// the QP returns to the progress thread within a tick, and has to raise twice as many events to come back. Only where no CQ of the QP
// is armed ibv_get_cq_event returns EAGAIN.
#ifndef NET_CHANNEL_WAIT_H
#define NET_CHANNEL_WAIT_H

#include "net/cq/channel_set.h"

#include <signal.h>

/*
 * As aw_channel_read, for completion channels: takes the oldest event, and blocks unless the fd has
 * O_NONBLOCK. 0, or EAGAIN, EINTR, ETIMEDOUT. The sleep is a cancellation point; serving QPs is
 * not.
 */
int aw_channel_await(struct aw_channel *ch, void **object, int *kind);

/*
 * Limits each sleep of the calling thread in aw_channel_await. A negative value, the initial one,
 * sets no limit.
 */
void aw_channel_limit(int64_t timeout_ns);

#endif
