// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The progress engine, one a process: a thread with an epoll set that serves watches (one-sided
// traffic, connection set-up, timers). It exists while somebody holds a reference, sleeps when
// nothing happens, and is started afresh in the child of a fork.
#ifndef NET_ENGINE_H
#define NET_ENGINE_H

#include "net/watch.h"

#include <stdbool.h>
#include <stdint.h>

/* Starts the engine or takes another reference. 0, or an errno (EAGAIN, EMFILE, ENOMEM). */
int aw_engine_get(void);

/*
 * The last one stops the thread and closes its fds; on the progress thread itself that happens
 * once the running handler returned.
 */
void aw_engine_put(void);

/* Is the caller the progress thread? */
bool aw_engine_is_self(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t aw_now_ns(void);

/*
 * Work for the progress thread: called after a kick, and again at the time that it returned
 * (CLOCK_MONOTONIC in nanoseconds; 0: only after a kick).
 */
enum aw_tick {
	AW_TICK_LEND, /* net/lend.c */
	AW_TICK_HOLD, /* net/hold.c */
	AW_TICK_LOST, /* net/lost.c */
	AW_TICKS
};

typedef uint64_t aw_tick_fn(uint64_t now_ns);

void aw_engine_set_tick(enum aw_tick which, aw_tick_fn *fn);
void aw_engine_kick_tick(void);

/*
 * A number that changes in the child of a fork: what was made under another one is dead here.
 * Its references still count, so that objects of the parent may be destroyed as ever; but no
 * thread runs until the child takes a reference or adds a watch.
 */
uint32_t aw_engine_generation(void);

/* For net/watch.c. start: the epoll fd, or minus an errno. epfd: the same, -1 while stopped. */
int aw_engine_start(void);
int aw_engine_epfd(void);
void aw_engine_kick(void);

/*
 * For handlers of pthread_atfork that take locks, first and last: no watch's handler runs between
 * the two, so that the child inherits no lock, reference or delivery of a thread it does not have.
 * Any of several handlers may be first.
 */
void aw_engine_fork_prepare(void);
void aw_engine_fork_done(void);

/*
 * Carrying on in a child (net/carry.h). From hold to resume no handler and no tick runs, and a fork of
 * this thread carries: the child has the same generation. hold: 0, or EINVAL (held already), ENOMEM.
 */
int aw_engine_hold(void);
/* Is this thread in between? In a handler of pthread_atfork: does this fork carry? */
bool aw_engine_is_held(void);
/* Is it, and in a child that carries on? */
bool aw_engine_is_carried(void);
void aw_engine_resume(void);
/* In the child: the thread, which is held still, and its epoll set. 0, or an errno; then again. */
int aw_engine_restart(void);

#endif
