// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads that are on their way until somebody waits on a condition. The test links with --wrap=pthread_create and
// --wrap=pthread_cond_wait; shared libraries call these functions, too.
#ifndef TESTS_LIB_LATE_THREAD_H
#define TESTS_LIB_LATE_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LINKED \
	__attribute__((visibility("default"))) /* the linker wants it for the shared libraries */

static sem_t go; /* somebody waits */
static _Atomic bool on_its_way;
static void *(*thread_fn)(void *arg);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
LINKED int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				 void *(*fn)(void *arg), void *arg);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
LINKED int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

/* No longer than until it is waited for. */
static void *run_late(void *arg)
{
	sem_wait(&go);
	on_its_way = false;
	return thread_fn(arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg)
{
	on_its_way = true;
	thread_fn = fn;
	return __real_pthread_create(thread, attr, run_late, arg);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	sem_post(&go);
	return __real_pthread_cond_wait(cond, mutex);
}

/* A thread has been made that is on its way, and a fork waits for it. */
static void expect_fork_to_wait(void)
{
	int status;
	pid_t child;

	assert_true(on_its_way);
	child = fork();
	if (child == 0)
		_exit(on_its_way);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#endif
