// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The time limit of a thread's sleeps in the library: include/anywarp/cm.h.
#include "anywarp/cm.h"
#include "net/qp/channel_wait.h"

void anywarp_sleep_limit(int64_t timeout_ns)
{
	aw_channel_limit(timeout_ns);
}
