// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starts a thread of the library's own in a process of a program's.
#ifndef XSOCK_BASE_THREAD_H
#define XSOCK_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * Starts a detached thread. Returns 0 or an errno. Signals are blocked in the thread, but for those
 * of a fault: they are for the program's threads.
 */
static inline int aw_thread_start(void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(thread);
	return err;
}

#endif
