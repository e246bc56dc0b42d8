// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bounce buffers wait for the next call at the place of the processor whose call has mapped them, and whose cache has them. A thread
// that finds none there, because others were interrupted with them, maps one more; one for which no place is left is unmapped.
#include "record/bounce.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PROCESSORS 256u /* with places of their own */
#define PLACES 2

/* Each processor's are in a cache line of their own. */
static struct {
	_Alignas(64) struct aw_bounce *_Atomic places[PLACES];
} waiting[PROCESSORS];

/* Acquires what is waiting at the place, and releases bounce to the next call. */
static struct aw_bounce *place_exchange(unsigned home, int place, struct aw_bounce *bounce)
{
	return atomic_exchange_explicit(&waiting[home].places[place], bounce, memory_order_acq_rel);
}

struct aw_bounce *aw_bounce_take(void)
{
	unsigned home =
		(unsigned)sched_getcpu() % PROCESSORS; /* of -1, too: the kernel does not tell */
	struct aw_bounce *bounce = NULL;

	for (int place = 0; !bounce && place < PLACES; place++)
		bounce = place_exchange(home, place, NULL);
	if (bounce)
		return bounce;
	bounce = mmap(NULL, sizeof(*bounce), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (bounce == MAP_FAILED)
		return NULL;
	bounce->home = home;
	return bounce;
}

void aw_bounce_put(struct aw_bounce *bounce)
{
	for (int place = 0; bounce && place < PLACES; place++)
		bounce = place_exchange(bounce->home, place, bounce);
	if (bounce)
		munmap(bounce, sizeof(*bounce));
}
