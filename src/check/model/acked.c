// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/acked.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define NS 1000000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before those that is_acked takes */
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

bool aw_acked_wait(bool (*is_acked)(const void *arg), const void *arg)
{
	struct timespec until;
	int cancel, err = 0;
	bool acked;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += AW_ACKED_WAIT_NS % NS;
	until.tv_sec += AW_ACKED_WAIT_NS / NS + until.tv_nsec / NS;
	until.tv_nsec %= NS;
	pthread_mutex_lock(&lock);
	while (!(acked = is_acked(arg)) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&told, &lock, &until);
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(cancel, NULL);
	return acked;
}

void aw_acked_tell(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&told);
	pthread_mutex_unlock(&lock);
}

void aw_acked_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&told, NULL);
}
