// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The executor serves its jobs when one is started, woken, due or ready.
#include "xsock/endpoint/executor.h"

#include "../lib/emulated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Linked in by the thread sanitizer, which cannot follow threads that a forked child starts. */
extern void __tsan_init(void) __attribute__((weak));

#define SECONDS_MAX 20
#define TICKS 5

static int ends[2]; /* the job `reader` waits for bytes here */
static sem_t serves, reads, ticked;

static void serve_reader(struct aw_xs_wait *wait)
{
	struct pollfd end = { .fd = ends[0], .events = POLLIN };
	char byte;

	if (poll(&end, 1, 0) > 0 && read(ends[0], &byte, 1) == 1)
		sem_post(&reads);
	aw_xs_wait_fd(wait, end);
	sem_post(&serves);
}

static void serve_ticker(struct aw_xs_wait *wait)
{
	aw_xs_wait_ms(wait, 1);
	sem_post(&ticked);
}

static struct aw_xs_job reader = { .serve = serve_reader };
static struct aw_xs_job ticker = { .serve = serve_ticker };

static bool comes(sem_t *semaphore)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += SECONDS_MAX;
	return sem_timedwait(semaphore, &end) == 0;
}

static void executor__serves_when_woken_ready_or_due(void **state)
{
	(void)state;
	assert_int_equal(aw_xs_job_start(&reader), 0);
	assert_true(comes(&serves));
	while (sem_trywait(&serves) == 0)
		;
	aw_xs_executor_wake();
	assert_true(comes(&serves));
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_true(comes(&reads));
	assert_int_equal(aw_xs_job_start(&ticker), 0);
	for (int i = 0; i < TICKS; i++)
		assert_true(comes(&ticked));
	assert_int_equal(aw_xs_job_start(&reader), 0); /* it is started already */
}

static void executor__a_child_begins_anew(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	if (__tsan_init || is_emulated())
		skip();
	pid = fork();
	if (pid == 0) {
		sem_init(&ticked, 0, 0);
		sem_init(&serves, 0, 0);
		aw_xs_executor_wake();
		_exit(aw_xs_job_start(&ticker) == 0 && comes(&ticked) && comes(&ticked) &&
				      sem_trywait(&serves) != 0
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(comes(&ticked));
}

static int set_up(void **state)
{
	(void)state;
	sem_init(&serves, 0, 0);
	sem_init(&reads, 0, 0);
	sem_init(&ticked, 0, 0);
	return pipe(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executor__serves_when_woken_ready_or_due),
		cmocka_unit_test(executor__a_child_begins_anew),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
