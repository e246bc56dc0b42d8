// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What programs and the proxy process work on a slot's record with.
#ifndef XSOCK_FRAMED_CALLS_H
#define XSOCK_FRAMED_CALLS_H

#include <time.h>

#include "xsock/framed/layout.h"

extern const struct aw_record_calls aw_slot_calls;
/* CRC32c by ISA-L where it is installed. */
uint32_t aw_slot_crc(uint32_t crc, const void *data, size_t len);
/* Loads ISA-L, unless that was done: otherwise the first aw_slot_crc does it. */
void aw_slot_find_crc(void);

/* A half's lock. ECONNRESET: somebody has died within a half, and the lock is not held. by (CLOCK_MONOTONIC): ETIMEDOUT then. */
int aw_slot_lock(struct aw_slot *slot, pthread_mutex_t *lock, const struct timespec *by);

#endif
