// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A shield around work on a record in this process. While it is up, no signal handler, which may
// use the same connection, interrupts the thread, and no cancellation leaves the work half done.
#ifndef XSOCK_PROCESS_SHIELD_H
#define XSOCK_PROCESS_SHIELD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void aw_handler_fn(int sig);

struct aw_shield {
	int cancel; /* the cancel state of before */
	bool is_inner; /* the thread has raised another one before: signals wait for that */
};

/* As sigaction(2), for the program. */
int aw_shield_sigaction(int sig, const struct sigaction *action, struct sigaction *before);

/*
 * Called after another function of libc's has set a handler for sig. Returns before, what that function has returned, as the
 * program knows it.
 */
aw_handler_fn *aw_shield_adopt(int sig, aw_handler_fn *before);

void aw_shield_raise(struct aw_shield *shield);
void aw_shield_lower(const struct aw_shield *shield);

/* The handlers that wait for the thread's shield. */
enum aw_strike {
	AW_STRIKE_NONE,
	AW_STRIKE_RESTARTS, /* all have SA_RESTART: a call that waits without a time-out goes on */
	AW_STRIKE_ENDS,
};

/* Called while the shield is up, by a thread that is about to wait: a handler that runs before its wait cannot interrupt it. */
enum aw_strike aw_shield_strike(void);

/*
 * Returns whether a call that a signal handler has interrupted while it waited is restarted.
 * timeout_ns: the socket's time-out; -1: none. The thread calls aw_shield_begin_wait before it waits.
 */
void aw_shield_begin_wait(void);
bool aw_shield_restarts(int64_t timeout_ns);

#endif
