// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/fresh.h"

#include <time.h>

#define PAUSES_MAX 20
#define PAUSES_ALL 100 /* strangers' files do not keep a command for long */
#define PAUSE_NS 10000000

bool aw_fresh_pause(int *pauses, int wasted)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (*pauses == PAUSES_MAX || *pauses + wasted >= PAUSES_ALL)
		return false;
	(*pauses)++;
	nanosleep(&pause, NULL);
	return true;
}
