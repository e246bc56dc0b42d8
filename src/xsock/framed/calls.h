// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The system calls, CRC and lock by which programs and the proxy process work on a slot's record.
#ifndef XSOCK_FRAMED_CALLS_H
#define XSOCK_FRAMED_CALLS_H

#include <time.h>

#include "xsock/framed/layout.h"

/* Returns the CRC32c, by ISA-L where that is installed. */
uint32_t aw_slot_crc(uint32_t crc, const void *data, size_t len);
/* Loads ISA-L unless it is loaded; otherwise the first aw_slot_crc() loads it. */
void aw_slot_find_crc(void);

/*
 * Locks a half of the slot's record, whose TCP socket is fd. Returns 0; ECONNRESET: the connection is broken,
 * because a process was killed in a half; ETIMEDOUT at the time `by` (CLOCK_MONOTONIC). After an error the
 * lock is not held.
 */
int aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, int fd, const struct timespec *by);

#endif
