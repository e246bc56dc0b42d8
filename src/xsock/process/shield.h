// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A shield around work on a record in this process. While it is up, no signal handler, which may
// use the same connection, interrupts the thread, and no cancellation leaves the work half done.
#ifndef XSOCK_PROCESS_SHIELD_H
#define XSOCK_PROCESS_SHIELD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The thread's state before the shield went up. Signals are blocked only if the program handles
 * any.
 */
struct aw_shield {
	bool up;
	int cancel; /* the cancel state of before */
	sigset_t before;
};

/* Notes that the program has a signal handler. */
void aw_shield_note_handler(void);

void aw_shield_raise(struct aw_shield *shield);
void aw_shield_lower(const struct aw_shield *shield);

/*
 * Returns whether a call that a signal handler has interrupted while it waited is restarted.
 * timeout_ns: the socket's time-out; -1: none.
 */
bool aw_shield_restarts(int64_t timeout_ns);

#endif
