// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The executor: the one thread of a library that goes on with work while the program does something else. A job is one kind
// of that work. The thread serves all jobs, sleeps until a fd or the time that one of them waits for, and serves them all
// again. It starts with the first job, and is not in the child of a fork, which starts its jobs anew.
//
// The progress thread of libibverbs cannot do this work: its own takes microseconds, while a job
// may call rdma_cm, which waits for the progress thread. Threads of their own do what copies
// payload (ext/ext_pump.c) or waits in a system call (proxy/closer.h).
#ifndef XSOCK_ENDPOINT_EXECUTOR_H
#define XSOCK_ENDPOINT_EXECUTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* The fds and the time that the jobs wait for. */
struct aw_xs_wait {
	struct pollfd *fds;
	size_t room, count;
	int timeout_ms; /* -1: none */
};

/* serve makes what progress it can without waiting, and adds what the job waits for to `wait`. */
struct aw_xs_job {
	void (*serve)(struct aw_xs_wait *wait);
	/* the executor's */
	struct aw_xs_job *next;
	bool started; /* in this process, not in the parent that forked it */
};

/*
 * Has the thread serve job from now on. Returns 0 or an errno. A caller may hold any lock that serve does not take within
 * another one.
 */
int aw_xs_job_start(struct aw_xs_job *job) __attribute__((warn_unused_result));
/* Has the thread serve the jobs now. */
void aw_xs_executor_wake(void);

/* Without memory the jobs are served again soon. */
void aw_xs_wait_fd(struct aw_xs_wait *wait, struct pollfd fd);
void aw_xs_wait_ms(struct aw_xs_wait *wait, int ms);

#endif
