// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One fd and one deadline that the progress thread watches for an owner. The handler runs only on
// the progress thread, with no lock held, and never again once aw_watch_remove has returned and a
// running handler has ended.
#ifndef NET_WATCH_H
#define NET_WATCH_H

#include <stdatomic.h>
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
	uint32_t serial; /* distinguishes it from an earlier owner of the handle */
	aw_watch_fn *fn;
	void (*release)(struct aw_watch *w);
	/* Relaxed: the owner orders the calls that change it. */
	_Atomic uint32_t events; /* for which fd is in the thread's epoll set; 0: it is not there */
	/* guarded by the timer lock */
	bool ended; /* removed: takes no deadline any more */
	bool timed; /* has had a deadline, or was told that it has none */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	struct timer_list *timers; /* the list it is in, while it has a deadline */
	TAILQ_ENTRY(aw_watch) timer;
};

/*
 * Starts to watch fd (-1: only a deadline) for these epoll events (level triggered). release (may
 * be NULL) is called once, when nothing can touch w any more; it may free w. 0, ENOMEM, EMFILE or
 * epoll_ctl's error. The caller holds an engine reference.
 */
int aw_watch_add(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		 void (*release)(struct aw_watch *w));

/*
 * Begins to watch fd, which the watch was added with, without events, and sets its deadline unless it has had one. The caller
 * holds no lock that the handler wants: that may run, give the fd away, and end the watch before this returns, so the caller
 * uses the watch no more.
 * On failure, which is epoll_ctl's, the watch is none any more, and was not released.
 */
int aw_watch_begin(struct aw_watch *w, int fd, uint32_t events, uint32_t ms);

/*
 * The same as aw_watch_add for an fd that its last watch has passed on (aw_watch_pass_fd): it stays in the epoll set, so that the two
 * owners make one system call and miss no event. On failure the fd is still passed on.
 */
int aw_watch_add_passed(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
			void (*release)(struct aw_watch *w));

/*
 * The same as aw_watch_add for a listener, whose handler runs after those of the other events that were fetched with
 * its own: what a peer sent before it connected anew is received first.
 */
int aw_watch_add_last(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		      void (*release)(struct aw_watch *w));

/*
 * Changes the events; 0: none (not even a hang-up is reported). Any thread may call it, but not
 * after aw_watch_remove: w's owner orders the two. 0, or ENOMEM, ENOSPC when there were none.
 */
int aw_watch_events(struct aw_watch *w, uint32_t events);

/*
 * Stops watching the fd, so that it can be closed or handed on; w lives on. Ordered as
 * aw_watch_events.
 */
void aw_watch_drop_fd(struct aw_watch *w);

/*
 * As aw_watch_drop_fd, but leaves the fd in the epoll set, if it is there, for its next watch. Returns whether it is
 * there; then aw_watch_add_passed, aw_watch_take_passed or aw_watch_drop_passed follows, because its events come to nobody
 * meanwhile.
 */
bool aw_watch_pass_fd(struct aw_watch *w);

/* Of a watch with no events, whose fd was passed on to it: the first events. Never fails: the fd has its place in the set. */
void aw_watch_take_passed(struct aw_watch *w, uint32_t events);
void aw_watch_drop_passed(int fd);

/*
 * Sets the deadline to ms from now; 0 cancels it. A watch has one deadline, which a new one
 * replaces. Any thread.
 */
void aw_watch_deadline(struct aw_watch *w, uint32_t ms);
/* The same in microseconds. A kernel or sandbox without epoll_pwait2(2) rounds them up to milliseconds. */
void aw_watch_deadline_us(struct aw_watch *w, uint64_t us);

/* Ends the watch; does not close fd. Called once, by any thread, also from the handler itself. */
void aw_watch_remove(struct aw_watch *w);

/* As aw_watch_remove, and waits for a handler that is running. Not called from a handler. */
void aw_watch_remove_wait(struct aw_watch *w);

/* Names the watch for as long as it lives, and no later one. */
uint64_t aw_watch_key(const struct aw_watch *w);
#define AW_WATCH_NONE UINT64_MAX

/*
 * Runs a watch's handler as if its fd were readable, unless the watch has ended: its fd was just opened, and likely is. Called
 * by another watch's handler, with no lock held.
 */
void aw_watch_look(uint64_t key);

/*
 * Work that a handler wants done once it has returned. To wake a thread of the program is such
 * work: that thread would take the CPU at once and find the locks taken that the handler holds.
 * Called only on the progress thread; fn runs there, once for each call, with no lock held and
 * while no watch's handler runs.
 */
struct aw_after {
	void (*fn)(struct aw_after *after);
	STAILQ_ENTRY(aw_after) entry;
};

void aw_watch_after(struct aw_after *after);
void aw_watch_run_after(void);

/* For net/progress/engine.c. key: of the epoll event. run_timers returns when to call it next, or 0. */
int aw_watch_init(void);
bool aw_watch_is_last(uint64_t key);
void aw_watch_dispatch(uint64_t key, uint32_t events);
uint64_t aw_watch_run_timers(void);
void aw_watch_fork_prepare(void);
void aw_watch_fork_parent(void);
void aw_watch_fork_child(void);

#endif
