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
/* Of the kernel's set, the signals by which libc ends threads and changes their user: no program blocks them. */
#define AW_QUIET_LIBC_SIGNALS (UINT64_C(3) << 31)
/*
 * Sets the thread's signal mask; bits: the kernel's set. A signal handler may call it at any time: it calls no function that a
 * sanitizer has in place of libc's, at whose end the thread sanitizer runs handlers that it has put off, under the lock that this
 * signal may have met.
 */
void aw_quiet_set_mask(uint64_t bits);

#endif
