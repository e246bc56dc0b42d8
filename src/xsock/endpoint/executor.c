// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread sleeps in one poll(2) for all jobs.
#include "xsock/endpoint/executor.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/thread_safety.h"

#define NO_MEMORY_MS 5 /* until the next try */

static struct {
	/* Guards the fields below but wake_fd. The last lock; held across a fork. */
	aw_mutex lock;
	pthread_cond_t runs; /* signals that starting has become false */
	struct aw_xs_job *jobs;
	bool running, prepared;
	bool starting; /* the thread is created and does not run yet */
	_Atomic int wake_fd;
} executor = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.runs = PTHREAD_COND_INITIALIZER,
	.wake_fd = -1,
};

void aw_xs_wait_ms(struct aw_xs_wait *wait, int ms)
{
	if (wait->timeout_ms < 0 || ms < wait->timeout_ms)
		wait->timeout_ms = ms;
}

void aw_xs_wait_fd(struct aw_xs_wait *wait, struct pollfd fd)
{
	size_t room = wait->room ? 2 * wait->room : 16;
	struct pollfd *larger;

	if (wait->count == wait->room) {
		larger = realloc(wait->fds, room * sizeof(*larger));
		if (!larger) {
			aw_xs_wait_ms(wait, NO_MEMORY_MS);
			return;
		}
		wait->fds = larger;
		wait->room = room;
	}
	wait->fds[wait->count++] = fd;
}

static void *executor_run(void *arg)
{
	struct aw_xs_wait wait = { 0 };
	struct aw_xs_job *job;
	eventfd_t wakes;

	pthread_mutex_lock(&executor.lock);
	executor.starting = false;
	pthread_cond_broadcast(&executor.runs);
	pthread_mutex_unlock(&executor.lock);
	for (;;) {
		wait.count = 0;
		wait.timeout_ms = -1;
		aw_xs_wait_fd(&wait, (struct pollfd){ .fd = executor.wake_fd, .events = POLLIN });
		pthread_mutex_lock(&executor.lock);
		job = executor.jobs;
		pthread_mutex_unlock(&executor.lock);
		for (; job; job = job->next)
			job->serve(&wait);
		poll(wait.fds, wait.count, wait.timeout_ms);
		(void)eventfd_read(executor.wake_fd, &wakes);
	}
	return arg;
}

/*
 * Before a fork: waits until a thread that is being created runs. Until then it may hold locks of
 * its creator's, which would stay locked in the child (see net/progress/engine.c).
 */
static void lock_for_fork(void) AW_ACQUIRE(executor.lock)
{
	pthread_mutex_lock(&executor.lock);
	while (executor.starting)
		pthread_cond_wait(&executor.runs, &executor.lock);
}

static void unlock_after_fork(void) AW_RELEASE(executor.lock)
{
	pthread_mutex_unlock(&executor.lock);
}

static void reset_in_child(void)
{
	pthread_mutex_init(&executor.lock, NULL);
	pthread_cond_init(&executor.runs, NULL);
	for (struct aw_xs_job *job = executor.jobs; job; job = job->next)
		job->started = false;
	executor.jobs = NULL;
	executor.running = false;
	if (executor.wake_fd >= 0)
		close(executor.wake_fd);
	executor.wake_fd = -1;
}

int aw_xs_job_start(struct aw_xs_job *job)
{
	int err = 0;

	pthread_mutex_lock(&executor.lock);
	if (!executor.prepared)
		pthread_atfork(lock_for_fork, unlock_after_fork, reset_in_child);
	executor.prepared = true;
	if (!executor.running) {
		if (executor.wake_fd < 0)
			executor.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = executor.wake_fd < 0 ? errno : aw_thread_start(executor_run, NULL);
		executor.running = executor.starting = !err;
	}
	if (!err && !job->started) {
		job->started = true;
		job->next = executor.jobs;
		executor.jobs = job;
		aw_xs_executor_wake();
	}
	pthread_mutex_unlock(&executor.lock);
	return err;
}

void aw_xs_executor_wake(void)
{
	(void)eventfd_write(executor.wake_fd, 1);
}
