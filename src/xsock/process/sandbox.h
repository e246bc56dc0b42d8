// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The seccomp sandbox that this process may be in (wrap/sandbox.c). Callers hold no lock.
#ifndef XSOCK_PROCESS_SANDBOX_H
#define XSOCK_PROCESS_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic(bool) aw_sandbox_on;

static inline void aw_sandbox_enter(void)
{
	atomic_store_explicit(&aw_sandbox_on, true, memory_order_relaxed);
}

static inline bool aw_sandbox_is_on(void)
{
	return atomic_load_explicit(&aw_sandbox_on, memory_order_relaxed);
}

#endif
