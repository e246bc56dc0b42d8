// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A watch that counts what comes, and the engine under it.
#ifndef TESTS_LIB_WATCH_PROBE_H
#define TESTS_LIB_WATCH_PROBE_H

#include "net/progress/engine.h"
#include "net/progress/watch.h"
#include "until.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct probe {
	struct aw_watch watch; /* first */
	_Atomic uint32_t calls, events, released;
	_Atomic bool remove_self;
	_Atomic bool hold, holding; /* the handler waits while hold is set */
	_Atomic uint32_t again_ms; /* 0: a deadline that has passed is the last one */
};

static inline void on_watch(struct aw_watch *w, uint32_t events)
{
	struct probe *p = (struct probe *)w;

	p->holding = true;
	while (p->hold)
		sched_yield();
	if (p->remove_self)
		aw_watch_remove(w);
	else if (!(events & AW_WATCH_TIMEOUT))
		aw_watch_events(w, 0);
	else if (p->again_ms)
		aw_watch_deadline(w, p->again_ms);
	p->events |= events;
	p->calls++;
}

static inline void on_release(struct aw_watch *w)
{
	((struct probe *)w)->released++;
}

static inline int setup(void **state)
{
	*state = calloc(1, sizeof(struct probe));
	return aw_engine_get();
}

static inline int teardown(void **state)
{
	aw_engine_put();
	free(*state);
	return 0;
}

static inline void await(const _Atomic uint32_t *value, uint32_t at_least)
{
	until(*value >= at_least);
}

#endif
