// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/thread.h"

#include "base/array.h"
#include "base/tsan.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * mlockall(2) with MCL_FUTURE locks all of a stack when it is made: glibc's 8 MiB are all that RLIMIT_MEMLOCK allows by default.
 * The deepest of these threads uses 15 KiB, 20 under AddressSanitizer; the rest is for the program's handler of a fault.
 */
#define STACK_BYTES (256u << 10)
#define SLICE_NS 100000u /* the shortest that the kernel gives */

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

static int add_thread_local(struct dl_phdr_info *object, size_t size, void *sum)
{
	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)sum +=
				object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
	return 0;
}

struct start {
	void *(*run)(void *arg);
	void *arg;
};

static void *run_ignored(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	aw_tsan_ignore_begin();
	result = start.run(start.arg);
	aw_tsan_ignore_end();
	return result;
}

/* ThreadSanitizer ignores the accesses of these threads, which find objects by atomics that it does not see. */
static int create_thread(pthread_t *thread, const pthread_attr_t *attr, const struct start *start)
{
	struct start *kept = aw_tsan_is_here() ? malloc(sizeof(*kept)) : NULL;
	int err;

	if (!kept)
		return pthread_create(thread, attr, start->run, start->arg);
	*kept = *start;
	err = pthread_create(thread, attr, run_ignored, kept);
	if (err)
		free(kept);
	return err;
}

int aw_thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	size_t stack_bytes = STACK_BYTES;
	sigset_t blocked, before;
	pthread_attr_t attr;
	int err;

	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	err = pthread_attr_init(&attr);
	if (!err) {
		/* glibc puts the thread-local variables of the program and its libraries into the stack. */
		dl_iterate_phdr(add_thread_local, &stack_bytes);
		err = pthread_attr_setstacksize(&attr, stack_bytes);
		if (!err)
			err = create_thread(thread, &attr, &(struct start){ run, arg });
		pthread_attr_destroy(&attr);
	}
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
