// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The bound on the lines that peers cause. Atomics are relaxed: a line more or less does no harm.
#include "base/log.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

#define LINES_A_SECOND 10
#define NS INT64_C(1000000000)

bool aw_log_has_room(void)
{
	static _Atomic(int64_t) second;
	static _Atomic(int) lines;
	int64_t now = aw_now_ns() / NS;

	if (atomic_exchange_explicit(&second, now, memory_order_relaxed) != now)
		atomic_store_explicit(&lines, 0, memory_order_relaxed);
	return atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed) < LINES_A_SECOND;
}
