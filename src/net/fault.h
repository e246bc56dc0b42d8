// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SIGSEGV and SIGBUS of this process: a fault in a thread's frame ends what runs there; any other is the
// program's, and its handler is called as the kernel would have.
#ifndef NET_FAULT_H
#define NET_FAULT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aw_fault_frame {
	sigjmp_buf env; /* filled in by whoever enters it; its mask is not saved */
	const uint8_t *at; /* the memory whose faults are caught, in whole pages */
	size_t len; /* not 0 */
};

/* The thread's frame, or NULL. The handler sets it to NULL before it jumps. */
extern _Thread_local struct aw_fault_frame *aw_fault_frame
	__attribute__((tls_model("initial-exec")));

/*
 * Makes our handlers the first that are asked. Where the program has installed its own since the last call they
 * are called for what is not ours, up to a number of times; then they stay.
 */
void aw_fault_watch(void);

/*
 * Whether a fault of this thread comes to our handlers. Not where the thread blocks the signals, for the kernel ends
 * the process then, or where the program's handlers have replaced ours, which takes some milliseconds to be seen.
 */
bool aw_fault_is_caught(void);

#endif
