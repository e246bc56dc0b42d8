// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "thread.h"

#include <semaphore.h>
#include <stdlib.h>

struct beginning {
	void *(*run)(void *arg);
	void *arg;
	sem_t begun;
};

static void *run_begun(void *arg)
{
	struct beginning own = *(struct beginning *)arg;

	sem_post(
		&((struct beginning *)arg)->begun); /* whoever started it goes on, and forgets it */
	return own.run(own.arg);
}

pthread_t thread_start(void *(*run)(void *arg), void *arg)
{
	struct beginning beginning = { .run = run, .arg = arg };
	pthread_t thread;

	if (sem_init(&beginning.begun, 0, 0) ||
	    pthread_create(&thread, NULL, run_begun, &beginning))
		abort();
	while (sem_wait(&beginning.begun))
		; /* a signal */
	return thread;
}

void thread_join(pthread_t thread)
{
	if (pthread_join(thread, NULL))
		abort();
}
