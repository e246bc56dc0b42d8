// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Handles SIGSEGV and SIGBUS of this process: a fault within a thread's frame ends what runs in
// that frame; any other fault is the program's, and its handler is called as the kernel would have
// called it.
//
// The first registration of memory installs the handler; every later one puts it in front again if
// the program has installed another. A copy whose fault the handler would not see, because the
// program's own handler is in front or the thread blocks the signals, is made by the kernel
// (process_vm_readv), which is slower. Without CRCs TCP reads what has gone; the stream then ends
// without a Terminate, since the peer may have half an FPDU.
#ifndef NET_FAULT_H
#define NET_FAULT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aw_fault_frame {
	sigjmp_buf env; /* filled in by the code that enters the frame; its mask is not saved */
	const uint8_t *at; /* the memory whose faults are caught, in whole pages */
	size_t len; /* not 0 */
};

/* The thread's frame, or NULL. The handler sets it to NULL before it jumps. */
extern _Thread_local struct aw_fault_frame *aw_fault_frame
	__attribute__((tls_model("initial-exec")));

/*
 * Installs our handlers. Handlers that the program has installed since the last call are kept, and
 * ours call them for faults outside a frame. After a number of such changes the program's handlers
 * stay in place.
 */
void aw_fault_watch(void);

/*
 * True when our handlers are called for a fault of this thread. False when the thread blocks the
 * signals, since the kernel then ends the process, or when the program's handlers have replaced
 * ours, which is noticed within some milliseconds.
 */
bool aw_fault_is_caught(void);

#endif
