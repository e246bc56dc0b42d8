// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Takes live connections over in the child of a fork. At the fork (aw_engine_hold) both processes
// have the same memory and the same open files, and no handler is half done. All that is in memory
// stays valid: queues, stages, batches, deadlines, STags, generation. Epoll sets, eventfds and the
// progress thread cannot be shared: the child's handlers of pthread_atfork drop them, and they and
// aw_carry_take make new ones.
#ifndef NET_CARRY_H
#define NET_CARRY_H

/*
 * Called in the child, after it has detached the objects that it does not keep. 0; or EAGAIN,
 * EMFILE, ENFILE, ENOMEM, ENOSPC, after which it can be called again.
 */
int aw_carry_take(void);

#endif
