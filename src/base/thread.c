// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/thread.h"

#include "base/array.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u /* the shortest that the kernel gives */

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

int aw_thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t blocked, before;
	int err;

	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int aw_thread_start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	int err = aw_thread_create(&thread, run, arg);

	if (!err)
		pthread_detach(thread);
	return err;
}

void aw_thread_shorten_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr) };

	/* A filter of seccomp(2) may end the process for the call: that of a service without systemd's @resources does. */
	if (prctl(PR_GET_SECCOMP) != 0)
		return;
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 ||
	    attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}
