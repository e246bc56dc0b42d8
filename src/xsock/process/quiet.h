// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread is quiet while signals are blocked and cancellation is off in it: a signal handler that used the fd that the
// thread works on would wait for its own thread, and a cancelled thread would leave all others waiting.
#ifndef XSOCK_PROCESS_QUIET_H
#define XSOCK_PROCESS_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* The thread's state before it became quiet. */
struct aw_quiet {
	bool was_quiet;
	int cancel;
	uint64_t signals; /* the kernel's set, a sixteenth of sigset_t, because pairs nest */
};

/* Pairs of begin and end may nest; an inner pair makes no system call. */
void aw_quiet_begin(struct aw_quiet *before);
void aw_quiet_end(const struct aw_quiet *before);
/* Sets the thread's signal mask; bits: the kernel's set. */
void aw_quiet_set_mask(uint64_t bits);

#endif
