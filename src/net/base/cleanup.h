// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Declares the C library's clean-up handlers, which run when a thread is cancelled in its sleep. Of
// the two kinds that the C library has, only this one also runs when a signal handler leaves by
// longjmp.
#ifndef NET_CLEANUP_H
#define NET_CLEANUP_H

#include <pthread.h>

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *),
				  void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

#endif
