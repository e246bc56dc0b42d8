// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Moderation of a CQ's events. One deadline serves many waits: it is set when none runs, and a wait that begins while one runs
// is looked at when that one ends, so that the progress thread is woken once a period at most.
#include "net/cq/moderation.h"

#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/progress/watch.h"
#include "ring/lock.h"

#include <errno.h>
#include <stdlib.h>

#define US_NS 1000u

struct aw_moderation {
	struct aw_watch watch; /* first: the watch is the moderation, and its release frees it */
	struct aw_cq *cq; /* fixed; its lock guards what follows */
	uint16_t count; /* 0: events do not wait */
	uint16_t period_us;
	uint32_t held; /* CQEs since the CQ was armed whose event waits; 0: none waits */
	uint64_t due_ns; /* when the event that waits is raised in any case */
	bool timing; /* the watch has a deadline */
};

static void moderation_free(struct aw_watch *w)
{
	free(w);
}

/* A microsecond more, so that the event is due when the deadline has come. */
static void set_deadline(struct aw_moderation *m, uint64_t now_ns)
{
	aw_latch_held(&m->cq->lock);
	uint64_t left_ns = m->due_ns > now_ns ? m->due_ns - now_ns : 0;

	m->timing = true;
	aw_watch_deadline_us(&m->watch, left_ns / US_NS + 1);
}

bool aw_moderation_holds(struct aw_cq *cq)
{
	struct aw_moderation *m = cq->moderation;

	if (m->count == 0)
		return false;
	if (++m->held >= m->count) {
		m->held = 0;
		return false;
	}
	if (m->held > 1)
		return true;
	uint64_t now = (uint64_t)aw_now_ns();

	m->due_ns = now + (uint64_t)m->period_us * US_NS;
	if (!m->timing)
		set_deadline(m, now);
	return true;
}

void aw_moderation_drop(struct aw_cq *cq)
{
	cq->moderation->held = 0;
}

/* Ends the wait. True when there was one: the event is due, and the CQ not armed any more. */
static bool end_wait(struct aw_cq *cq, struct aw_moderation *m) AW_REQUIRES(cq->lock)
{
	bool due = m->held > 0;

	m->held = 0;
	if (due)
		cq->armed = AW_ARM_NONE;
	return due;
}

static void raise_event(struct aw_cq *cq) AW_EXCLUDES(cq->lock)
{
	if (cq->channel)
		aw_channel_raise(cq->channel, &cq->event);
}

static void on_deadline(struct aw_watch *w, uint32_t events)
{
	struct aw_moderation *m = (struct aw_moderation *)w;
	uint64_t now = (uint64_t)aw_now_ns();
	struct aw_cq *cq = m->cq;
	bool due = false;

	(void)events;
	aw_lock(&cq->lock);
	m->timing = false;
	if (m->held > 0 && now < m->due_ns)
		set_deadline(m, now);
	else
		due = end_wait(cq, m);
	aw_unlock(&cq->lock);
	if (due)
		raise_event(cq);
}

/* The CQ's moderation, which does not delay anything yet. NULL with *err written: there is none. */
static struct aw_moderation *moderation_create(struct aw_cq *cq, int *err)
{
	struct aw_moderation *m = calloc(1, sizeof(*m));

	*err = m ? 0 : ENOMEM;
	if (!m)
		return NULL;
	m->cq = cq;
	*err = aw_watch_add(&m->watch, -1, 0, on_deadline, moderation_free);
	if (!*err)
		return m;
	free(m);
	return NULL;
}

/* 0 also where another thread was first. */
static int ensure(struct aw_cq *cq) AW_EXCLUDES(cq->lock)
{
	struct aw_moderation *fresh;
	int err;

	aw_lock(&cq->lock);
	bool there = cq->moderation;

	aw_unlock(&cq->lock);
	if (there)
		return 0;
	fresh = moderation_create(cq, &err);
	if (!fresh)
		return err;
	aw_lock(&cq->lock);
	if (!cq->moderation) {
		cq->moderation = fresh;
		fresh = NULL;
	}
	aw_unlock(&cq->lock);
	if (fresh)
		aw_watch_remove(&fresh->watch);
	return 0;
}

/* An event that waits keeps its place among the CQEs, and gets its new time. */
int aw_moderation_set(struct aw_cq *cq, uint16_t count, uint16_t period_us)
{
	bool on = count > 1 && period_us > 0, due = false;
	int err = on ? ensure(cq) : 0;

	if (err)
		return err;
	aw_lock(&cq->lock);
	struct aw_moderation *m = cq->moderation;

	if (m) {
		uint64_t now = (uint64_t)aw_now_ns();

		m->count = on ? count : 0;
		m->period_us = period_us;
		if (m->held >= m->count)
			due = end_wait(cq, m);
		if (m->held > 0) {
			m->due_ns = now + (uint64_t)period_us * US_NS;
			set_deadline(m, now);
		}
	}
	aw_unlock(&cq->lock);
	if (due)
		raise_event(cq);
	return 0;
}

void aw_moderation_end(struct aw_cq *cq)
{
	struct aw_moderation *m = cq->moderation;

	/* Without the lock, which in the child of a fork may be held by a thread of the parent's. */
	cq->moderation = NULL;
	if (!m)
		return;
	if (aw_engine_is_self())
		aw_watch_remove(&m->watch);
	else
		aw_watch_remove_wait(&m->watch);
}
