// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fork waits for the thread of what lingers while that is still on its way: who makes it may hold locks.
#include "ends.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void ep_fork__waits_for_the_start(void **state)
{
	struct ends ends;
	int status;

	(void)state;
	sem_init(&go, 0, 0);
	ends_open(&ends, NULL);
	assert_false(on_its_way);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	assert_true(on_its_way);
	pid_t child = fork();

	if (child == 0)
		_exit(on_its_way);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	ends_wait(ends.server, POLLIN);
	ends_expect(ends.server, 0);
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_fork__waits_for_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
