// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The system calls and the lock by which programs and the proxy process work on a slot's record.
#ifndef XSOCK_FRAMED_CALLS_H
#define XSOCK_FRAMED_CALLS_H

#include <time.h>

#include "xsock/framed/layout.h"

/*
 * Locks a half of the slot's record, whose TCP socket is fd. Returns 0; ECONNRESET: the connection is broken,
 * because a process was killed in a half; ENOMEM: the record is under TLS, and there is no cipher; ETIMEDOUT at the time `by` (CLOCK_MONOTONIC). After an error the
 * lock is not held.
 */
int aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd, const struct timespec *by);

#endif
