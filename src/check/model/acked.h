// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A destroy of an object waits until every event of it that the program got was acknowledged. Another thread may be about to do so:
// that is no fault, and the destroy gives it a time, before the events count as forgotten.
#ifndef CHECK_MODEL_ACKED_H
#define CHECK_MODEL_ACKED_H

#include <stdbool.h>

/*
 * A thread that has got an event acknowledges it next, within microseconds, unless others have its processor: a second is some hundred
 * time slices of the scheduler. Only a program that would wait for ever waits that long.
 */
#define AW_ACKED_WAIT_NS 1000000000

/* The calling thread destroys something. True: all is acknowledged, at once or within the time. No cancellation point. */
bool aw_acked_wait(bool (*is_acked)(const void *arg), const void *arg);

/* An event was acknowledged. The caller holds no lock that is_acked takes. */
void aw_acked_tell(void);

/* In the child of a fork, where nobody waits. */
void aw_acked_forget(void);

#endif
