// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A call of the program's that works on a connection in this process: no handler of a signal, which may come to the same
// connection, finds the thread at work, and nobody who is cancelled leaves it half done.
#ifndef XSOCK_PROCESS_SHIELD_H
#define XSOCK_PROCESS_SHIELD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Where there are no handlers nothing need be blocked. */
struct aw_shield {
	bool up;
	int cancel; /* who is cancelled is so before it has begun, or while it sleeps */
	sigset_t before;
};

/* The program handles some signal from here on. */
void aw_shield_note_handler(void);

void aw_shield_raise(struct aw_shield *shield);
void aw_shield_lower(const struct aw_shield *shield);

/* Whether a call that a signal has interrupted while it waited goes on; timeout_ns: the socket's own, -1: none. */
bool aw_shield_restarts(int64_t timeout_ns);

#endif
