// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll(2) for undecided fds: events that are due to the start-up alone are kept from the program.
// Deadlines. Callers hold no lock.
#ifndef XSOCK_PRELOAD_WAIT_H
#define XSOCK_PRELOAD_WAIT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* As ppoll(2). */
int aw_wait_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask);

/* A point in time. NULL or a negative number of ms makes a deadline that never comes. */
struct aw_deadline {
	int64_t at_ns; /* -1: never */
};
struct aw_deadline aw_deadline_after(const struct timespec *timeout);
struct aw_deadline aw_deadline_after_ms(int timeout_ms);
bool aw_deadline_is_over(const struct aw_deadline *deadline);
/* Returns the time until the deadline, written to left, or NULL if it never comes. */
const struct timespec *aw_deadline_left(const struct aw_deadline *deadline, struct timespec *left);

#endif
