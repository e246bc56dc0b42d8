// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An id's deadline: a watch of its own, which finds the id by its handle.
#include "rdmacm/timer.h"

#include "ring/lock.h"

#include <stdlib.h>

struct aw_cm_timer {
	struct aw_watch watch; /* must be first */
	void *arg; /* the id's (aw_cm_id_arg) */
	aw_cm_timer_fn *fn;
};

static void on_deadline(struct aw_watch *watch, uint32_t events)
{
	struct aw_cm_timer *timer = (struct aw_cm_timer *)watch;
	struct aw_cm_id *cm = events & AW_WATCH_TIMEOUT ? aw_cm_id_get(timer->arg) : NULL;

	if (!cm)
		return;
	aw_cm_timer_fn *fn = NULL;

	aw_lock(&cm->lock);
	if (cm->timer == timer) {
		fn = timer->fn;
		aw_cm_timer_stop(cm);
	}
	aw_unlock(&cm->lock);
	if (fn)
		fn(cm);
	aw_cm_id_put(cm);
}

static void release(struct aw_watch *watch)
{
	free(watch);
}

bool aw_cm_timer_start(struct aw_cm_id *cm, uint32_t ms, aw_cm_timer_fn *fn)
{
	struct aw_cm_timer *timer = calloc(1, sizeof(*timer));

	aw_cm_timer_stop(cm);
	if (!timer)
		return false;
	timer->arg = aw_cm_id_arg(cm);
	timer->fn = fn;
	if (aw_watch_add(&timer->watch, -1, 0, on_deadline, release) != 0) {
		free(timer);
		return false;
	}
	cm->timer = timer;
	aw_watch_deadline(&timer->watch, ms);
	return true;
}

void aw_cm_timer_stop(struct aw_cm_id *cm)
{
	if (cm->timer)
		aw_watch_remove(&cm->timer->watch);
	cm->timer = NULL;
}
