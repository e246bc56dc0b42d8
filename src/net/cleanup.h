// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is put right when a thread is cancelled in its sleep, or jumps out of it from a signal handler. Of the C
// library's two kinds of clean-up this is the one that longjmp looks at, too.
#ifndef NET_CLEANUP_H
#define NET_CLEANUP_H

#include <pthread.h>

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *),
				  void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

#endif
