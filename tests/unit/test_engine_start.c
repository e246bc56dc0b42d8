// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fork, and a hold, wait for a progress thread that is still on its way: who made it may hold locks.
#include "net/progress/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t go; /* somebody waits */
static _Atomic bool on_its_way;
static void *(*thread_fn)(void *arg);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

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

static int setup(void **state)
{
	(void)state;
	sem_init(&go, 0, 0);
	return aw_engine_get();
}

static int teardown(void **state)
{
	(void)state;
	aw_engine_put();
	return 0;
}

static void engine_fork__waits_for_the_start(void **state)
{
	int status;

	(void)state;
	assert_true(on_its_way);
	pid_t child = fork();

	if (child == 0)
		_exit(on_its_way);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(engine_fork__waits_for_the_start, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
