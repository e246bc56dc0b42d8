// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The statistics of this process for 'anywarp stat': a sealed memfd with a row for each device, QP,
// CQ and listener (net/stat/stat_layout.h). The first row that is taken makes the memfd, and the
// last one that is given back closes it. Without the memfd every row is NULL, and nothing else
// changes. A write is a relaxed store by the thread that owns the object, no system call and no
// lock.
//
// The core adds a QP's FPDUs, messages and bytes to its row (core/count.h); the thread that
// releases a QP's lock writes the lengths of its queues. 'anywarp stat' finds the memfd in
// /proc/PID/fd, so the kernel's rule for that directory decides who may read it; it copies the
// table by pread and finds a stream's addresses and round trip time by sock_diag(7). After a fork
// the child maps memory of its own over the parent's rows, so that inherited objects can still
// write theirs, and makes a table when it opens a device.
#ifndef NET_STAT_H
#define NET_STAT_H

#include "net/stat/stat_layout.h"

#include <stdbool.h>

struct sockaddr_storage;

/* A row for an object; NULL: there is none. Any thread; the caller may hold any lock. */
union aw_stat_row *aw_stat_take(enum aw_stat_kind kind, uint32_t number);
/*
 * Gives the row back; NULL and a row that the child of a fork has inherited are fine. Such a row stays memory that can
 * be written.
 */
void aw_stat_give(union aw_stat_row *row);

/* Counts the end of a stream for the process: a wrong CRC was found, a Terminate was sent, or received. */
void aw_stat_count_end(bool crc, bool sent, bool received);

/* Writes the family, port and address of a socket's end. */
void aw_stat_address(const struct sockaddr_storage *from, uint16_t *family, uint16_t *port,
		     uint64_t address[2]);

/* The request of 'anywarp capture' in the table; one that asks for nothing where there is no table. */
extern struct aw_capture_request *aw_stat_capture;

/*
 * Maps the ring of a capture, for which the memory is taken here: no write to it fails. NULL with errno: there is no
 * table, or no memory. The caller holds the lock of a QP that has a row.
 */
struct aw_capture_ring *aw_stat_map_ring(void);
/* Gives the memory back, too. */
void aw_stat_unmap_ring(struct aw_capture_ring *ring);

/* Readers in other processes see each word whole, in any order. */
static inline void aw_stat_set16(uint16_t *word, uint16_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline void aw_stat_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static inline void aw_stat_set64(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* For words that several threads change; change may be negative. */
static inline void aw_stat_add(uint32_t *word, uint32_t change)
{
	__atomic_fetch_add(word, change, __ATOMIC_RELAXED);
}

static inline void aw_stat_add64(uint64_t *word, uint64_t change)
{
	__atomic_fetch_add(word, change, __ATOMIC_RELAXED);
}

#endif
