// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One fd and one deadline that the progress thread looks after for somebody. The handler runs on
// the progress thread only, with no lock held, and never again once remove has returned and a
// running one has ended.
#ifndef NET_WATCH_H
#define NET_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AW_WATCH_TIMEOUT 0x40000000u /* in events, beside EPOLLIN, EPOLLOUT, EPOLLHUP ... */

struct aw_watch;
typedef void aw_watch_fn(struct aw_watch *w, uint32_t events);

struct aw_watch {
	/* fixed after add */
	int fd;
	uint32_t handle;
	uint32_t serial; /* tells it from an earlier owner of the handle */
	uint32_t generation; /* of the engine: a child does not watch for its parent */
	aw_watch_fn *fn;
	void (*release)(struct aw_watch *w);
	_Atomic uint32_t events; /* what is waited for on fd: for a child that carries on */
	/* guarded by the timer lock */
	bool ended; /* removed: takes no deadline any more */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	struct timer_list *timers; /* the list it is in, while it has a deadline */
	TAILQ_ENTRY(aw_watch) timer;
};

/*
 * Starts the engine's care for fd (may be -1: deadline only) with these epoll events (level
 * triggered). release (may be NULL) is called once when nothing can touch w any more; it may
 * free w. Returns 0, ENOMEM, EMFILE or what epoll_ctl says. The caller holds an engine reference.
 */
int aw_watch_add(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		 void (*release)(struct aw_watch *w));

/*
 * Changes the events; 0 means none (a hang-up is not reported either). Any thread, but not once
 * aw_watch_remove was called: w's owner orders the two. 0, or ENOMEM, ENOSPC when it had none.
 */
int aw_watch_events(struct aw_watch *w, uint32_t events);

/* Ends the care for the fd, so that it can be closed or handed on; w lives on. Ordered likewise. */
void aw_watch_drop_fd(struct aw_watch *w);

/* The same where there are no events already: the kernel need not be asked. */
void aw_watch_forget_fd(struct aw_watch *w);

/* From now on in ms; 0 cancels. One deadline a watch: a new one replaces the old. Any thread. */
void aw_watch_deadline(struct aw_watch *w, uint32_t ms);

/* Ends the care; does not close fd. May be called from the handler itself. Any thread, once. */
void aw_watch_remove(struct aw_watch *w);

/* The same, and waits for a handler that is running. Not from a handler. */
void aw_watch_remove_wait(struct aw_watch *w);

/*
 * What a handler wants done once it has returned: to wake the program's thread, which would take the
 * CPU over at once and find held whatever the handler holds. Only on the progress thread; fn runs
 * there, once for each call, with no lock held and no watch's handler running.
 */
struct aw_after {
	void (*fn)(struct aw_after *after);
	STAILQ_ENTRY(aw_after) entry;
};

void aw_watch_after(struct aw_after *after);
void aw_watch_run_after(void);

/* For net/engine.c. key: of the epoll event. run_timers returns when to call it next, or 0. */
int aw_watch_init(void);
void aw_watch_fini(void);
void aw_watch_dispatch(uint64_t key, uint32_t events);
uint64_t aw_watch_run_timers(void);
void aw_watch_fork_prepare(void);
void aw_watch_fork_parent(void);
void aw_watch_fork_child(bool carries);

/* In a child that carries on: all that is watched, into its new epoll set. 0, or ENOMEM, ENOSPC. */
int aw_watch_rejoin(void);

#endif
