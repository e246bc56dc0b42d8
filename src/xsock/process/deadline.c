// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Deadlines are multiples of a step, so that many peers that come one after the other cost one look a step.
#include "xsock/process/deadline.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "xsock/base/startup_time.h"

#define MS_NS INT64_C(1000000)
#define STEP_NS (100 * MS_NS)

static _Atomic(int64_t) first_ns = AW_DEADLINE_NEVER;

void aw_deadline_note(int64_t due_ns)
{
	int64_t before = atomic_load_explicit(&first_ns, memory_order_relaxed);

	while (due_ns < before && !atomic_compare_exchange_weak(&first_ns, &before, due_ns))
		;
}

int64_t aw_deadline_begin(void)
{
	int64_t due_ns = aw_now_ns() + AW_PEER_STARTUP_MS * MS_NS;

	due_ns += STEP_NS - due_ns % STEP_NS;
	aw_deadline_note(due_ns);
	return due_ns;
}

int64_t aw_deadline_first_ns(void)
{
	return atomic_load_explicit(&first_ns, memory_order_relaxed);
}

int64_t aw_deadline_take_first_ns(void)
{
	return atomic_exchange(&first_ns, AW_DEADLINE_NEVER);
}
