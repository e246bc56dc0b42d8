// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads of the programs of this directory, which also fork.
#ifndef TESTS_SOCKETS_THREAD_H
#define TESTS_SOCKETS_THREAD_H

#include <pthread.h>

/*
 * Runs already when it returns. A thread that is only being made may hold a lock of the sanitizer's allocator, which
 * the child of a fork then never gets: the run-time library of gcc 12 does not keep forks out. Aborts on failure.
 */
pthread_t thread_start(void *(*run)(void *arg), void *arg);
/* Aborts on failure. */
void thread_join(pthread_t thread);

#endif
