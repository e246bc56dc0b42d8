// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// poll(2) where some fds may still be swapped: what tells of the start-up alone is kept from the program.
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

/* A point in time; none for NULL or a negative number of ms. */
struct aw_deadline {
	int64_t at_ns; /* -1: never */
};
struct aw_deadline aw_deadline_after(const struct timespec *timeout);
struct aw_deadline aw_deadline_after_ms(int timeout_ms);
/* Of ms, what is left until then. */
int aw_deadline_at_most_ms(const struct aw_deadline *deadline, int ms);
bool aw_deadline_is_over(const struct aw_deadline *deadline);
/* What is left, for the next call; NULL: no end. */
const struct timespec *aw_deadline_left(const struct aw_deadline *deadline, struct timespec *left);

#endif
