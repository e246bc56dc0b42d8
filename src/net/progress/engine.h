// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The progress engine, one a process: a thread with an epoll set that serves watches (one-sided
// traffic, connection set-up, timers). It exists while a reference is held, sleeps when nothing
// happens, and is started afresh in the child of a fork.
#ifndef NET_ENGINE_H
#define NET_ENGINE_H

#include "net/progress/watch.h"

#include <stdbool.h>
#include <stdint.h>

/* Starts the engine or takes another reference. 0, or an errno (EAGAIN, EMFILE, ENOMEM). */
int aw_engine_get(void);

/*
 * Drops a reference. The last one stops the thread and closes its fds; on the progress thread
 * itself that happens once the running handler has returned.
 */
void aw_engine_put(void);

/* True when the caller is the progress thread. */
bool aw_engine_is_self(void);

/*
 * A tick is work for the progress thread: it runs after a kick, and again at the time that it
 * returned (CLOCK_MONOTONIC in nanoseconds; 0: only after a kick).
 */
enum aw_tick {
	AW_TICK_SERVE, /* net/qp/uqp_progress.c */
	AW_TICK_LATE, /* net/qp/flush.c */
	AW_TICK_LOST, /* net/qp/lost.c */
	AW_TICKS
};

typedef uint64_t aw_tick_fn(uint64_t now_ns);

void aw_engine_set_tick(enum aw_tick which, aw_tick_fn *fn);
void aw_engine_kick_tick(void);

/*
 * For net/progress/watch.c. start: the epoll fd, or minus an errno. epfd: the epoll fd, -1 while
 * the thread is stopped.
 */
int aw_engine_start(void);
int aw_engine_epfd(void);
void aw_engine_kick(void);

/*
 * Between the two no watch's handler runs, so that the child of a fork inherits no lock, reference or event of a
 * thread that it does not have.
 */
void aw_engine_fork_prepare(void);
void aw_engine_fork_done(void);

#endif
