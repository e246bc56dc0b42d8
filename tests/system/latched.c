// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two threads that count under a latch, for tools that judge the order of threads. With an argument the latch is a word even under one.
#include "ring/lock.h"

#include <stdio.h>

#define TURNS 1000

static struct aw_latch latch;
static unsigned long count; /* guarded by latch */

static void *take_turns(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		aw_lock(&latch);
		count++;
		aw_unlock(&latch);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	(void)argv;
	aw_latch_init(&latch);
	if (argc > 1)
		latch.word = AW_LATCH_FREE;
	printf("the latch is %s\n", latch.word == AW_LATCH_MUTEX ? "a mutex" : "a word");
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, take_turns, NULL) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	aw_latch_fini(&latch);
	return count == 2 * TURNS ? 0 : 1;
}
