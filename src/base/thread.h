// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads of a library's own in a program's process. The program's signals are for its own threads:
// these block all but the signals of a fault. A thread that blocked those would end the process
// without a call of the program's handler.
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* Starts a thread, which the caller joins. Returns 0, or an errno. */
int aw_thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* Starts a detached thread. Returns 0, or an errno. */
int aw_thread_start(void *(*run)(void *arg), void *arg);

/*
 * From Linux 6.12 a thread may ask for a shorter time slice, as this does for the calling one. It then runs sooner when it wakes
 * on a CPU where another thread is busy, and takes less time from it. Older kernels ignore it. Under a filter of seccomp(2)
 * nothing is asked for.
 */
void aw_thread_shorten_slice(void);

#endif
