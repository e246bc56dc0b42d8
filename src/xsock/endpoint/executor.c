// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread sleeps in one poll(2) for all jobs, and serves those that are ready, due or woken.
#include "xsock/endpoint/executor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define NO_MEMORY_MS 5 /* until the next try */
#define MS INT64_C(1000000)

static struct {
	/* Guards the fields below but wake_fd. The last lock; held across a fork. */
	pthread_mutex_t lock;
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

static bool make_room(struct aw_xs_wait *wait, size_t need)
{
	struct pollfd *larger;

	if (need <= wait->room)
		return true;
	larger = realloc(wait->fds, 2 * need * sizeof(*larger));
	if (!larger)
		return false;
	wait->fds = larger;
	wait->room = 2 * need;
	return true;
}

void aw_xs_wait_ms(struct aw_xs_wait *wait, int ms)
{
	if (wait->timeout_ms < 0 || ms < wait->timeout_ms)
		wait->timeout_ms = ms;
}

void aw_xs_wait_fd(struct aw_xs_wait *wait, struct pollfd fd)
{
	if (make_room(wait, wait->count + 1))
		wait->fds[wait->count++] = fd;
	else
		aw_xs_wait_ms(wait, NO_MEMORY_MS);
}

static void serve_job(struct aw_xs_job *job)
{
	job->wait.count = 0;
	job->wait.timeout_ms = -1;
	job->serve(&job->wait);
	job->due_ns = job->wait.timeout_ms < 0 ? INT64_MAX
					       : aw_now_ns() + job->wait.timeout_ms * MS;
}

/* Adds what job waits for to the thread's own wait. Without memory the next turn serves job again. */
static void add_job(struct aw_xs_wait *all, struct aw_xs_job *job)
{
	int64_t left_ns = job->due_ns - aw_now_ns();

	if (job->due_ns != INT64_MAX)
		aw_xs_wait_ms(all, left_ns > 0 ? (int)((left_ns + MS - 1) / MS) : 0);
	if (!make_room(all, all->count + job->wait.count)) {
		aw_xs_wait_ms(all, NO_MEMORY_MS);
		atomic_store(&job->woken, true);
		job->wait.count = 0;
	}
	if (job->wait.count)
		memcpy(all->fds + all->count, job->wait.fds, job->wait.count * sizeof(*all->fds));
	all->count += job->wait.count;
}

static bool any_ready(const struct pollfd *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i].revents)
			return true;
	return false;
}

static struct aw_xs_job *first_job(void)
{
	struct aw_xs_job *first;

	pthread_mutex_lock(&executor.lock);
	first = executor.jobs;
	pthread_mutex_unlock(&executor.lock);
	return first;
}

/*
 * Serves the jobs that are ready by *all, in which their fds follow the wake fd in the order of the list, and fills *all anew.
 * A job that was started since has none there: it is due.
 */
static void take_turn(struct aw_xs_wait *all)
{
	struct aw_xs_job *first = first_job();
	size_t at = 1;

	for (struct aw_xs_job *job = first; job; job = job->next) {
		size_t count = job->wait.count;
		bool ready = any_ready(all->fds + at, count);

		at += count;
		if (atomic_exchange(&job->woken, false) || ready || job->due_ns <= aw_now_ns())
			serve_job(job);
	}
	all->count = 0;
	all->timeout_ms = -1;
	aw_xs_wait_fd(all, (struct pollfd){ .fd = executor.wake_fd, .events = POLLIN });
	for (struct aw_xs_job *job = first; job; job = job->next)
		add_job(all, job);
}

static void note_running(void)
{
	pthread_mutex_lock(&executor.lock);
	executor.starting = false;
	pthread_cond_broadcast(&executor.runs);
	pthread_mutex_unlock(&executor.lock);
}

static void *executor_run(void *arg)
{
	struct aw_xs_wait all = { 0 };
	eventfd_t wakes;

	note_running();
	for (;;) {
		take_turn(&all);
		poll(all.fds, all.count, all.timeout_ms);
		(void)eventfd_read(executor.wake_fd, &wakes);
	}
	return arg;
}

/*
 * Before a fork: waits until a thread that is being created runs. Until then it may hold locks of
 * its creator's, which would stay locked in the child (see net/progress/engine.c).
 */
static void lock_for_fork(void)
{
	pthread_mutex_lock(&executor.lock);
	while (executor.starting)
		pthread_cond_wait(&executor.runs, &executor.lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&executor.lock);
}

static void reset_in_child(void)
{
	pthread_mutex_init(&executor.lock, NULL);
	pthread_cond_init(&executor.runs, NULL);
	for (struct aw_xs_job *job = executor.jobs; job; job = job->next) {
		job->started = false;
		job->wait = (struct aw_xs_wait){
			0
		}; /* its fds: the thread may have been changing them */
	}
	executor.jobs = NULL;
	executor.running = false;
	if (executor.wake_fd >= 0)
		close(executor.wake_fd);
	executor.wake_fd = -1;
}

/* The caller holds the lock. */
static int start_thread(void)
{
	int err;

	if (executor.running)
		return 0;
	if (executor.wake_fd < 0)
		executor.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (executor.wake_fd < 0)
		return errno;
	err = aw_thread_start(executor_run, NULL);
	executor.running = executor.starting = !err;
	return err;
}

int aw_xs_job_start(struct aw_xs_job *job)
{
	int err;

	pthread_mutex_lock(&executor.lock);
	if (!executor.prepared)
		pthread_atfork(lock_for_fork, unlock_after_fork, reset_in_child);
	executor.prepared = true;
	err = start_thread();
	if (!err && !job->started) {
		job->started = true;
		job->due_ns = 0; /* it has not been served */
		job->next = executor.jobs;
		executor.jobs = job;
		aw_xs_job_wake(job);
	}
	pthread_mutex_unlock(&executor.lock);
	return err;
}

void aw_xs_job_wake(struct aw_xs_job *job)
{
	atomic_store(&job->woken, true);
	(void)eventfd_write(executor.wake_fd, 1);
}
