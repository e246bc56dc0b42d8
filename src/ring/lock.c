// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many locks this thread holds.
#include "ring/lock.h"

_Thread_local volatile uint32_t aw_locks_held __attribute__((tls_model("initial-exec")));
