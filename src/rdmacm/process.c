// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts forks. The progress engine counts them too, but only once it was started.
#include "rdmacm/process.h"

#include <pthread.h>

static uint32_t forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
	forks++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

uint32_t aw_cm_process(void)
{
	pthread_once(&once, watch_forks);
	return forks;
}
