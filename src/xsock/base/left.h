// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cleanup of a thread that leaves a call for good: by siglongjmp() out of a signal handler, or by
// cancellation. The C library keeps a list of functions to call then; of its two lists this is the
// one that longjmp() serves, too. Between push and pop there must be no other way out.
#ifndef XSOCK_BASE_LEFT_H
#define XSOCK_BASE_LEFT_H

#include <pthread.h>

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *),
				  void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

#define aw_left_push _pthread_cleanup_push
#define aw_left_pop _pthread_cleanup_pop

#endif
