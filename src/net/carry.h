// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Going on in the child of a fork with what was the parent's. At the fork (aw_engine_hold) both processes
// have the same memory and the same open files, and nothing is half done. What is in memory stands:
// queues, stages, batches, deadlines, STags, generation. What two processes must not share, the child
// leaves in its handlers of pthread_atfork and makes anew: epoll sets, eventfds, the progress thread.
#ifndef NET_CARRY_H
#define NET_CARRY_H

/*
 * In the child, once it has forgotten what it does not go on with. 0; or EAGAIN, EMFILE, ENFILE, ENOMEM,
 * ENOSPC, and it can be called again.
 */
int aw_carry_take(void);

#endif
