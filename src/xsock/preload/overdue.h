// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ends the start-ups of peers whose time is over (process/deadline.h), by the threads that wait in poll(2) and the like. Callers
// hold no lock.
#ifndef XSOCK_PRELOAD_OVERDUE_H
#define XSOCK_PRELOAD_OVERDUE_H

#include "xsock/preload/wait.h"
#include "xsock/process/deadline.h"

/* Returns whether a peer's Request or Reply may be due. */
static inline bool aw_overdue_may_be(void)
{
	return __builtin_expect(aw_deadline_first_ns() != AW_DEADLINE_NEVER, 0);
}

/* Returns the time until the deadline as aw_deadline_left does, or until the first peer's time is over if that is sooner. */
const struct timespec *aw_overdue_left(const struct aw_deadline *deadline, struct timespec *left);
void aw_overdue_settle(void);

#endif
