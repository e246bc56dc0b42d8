// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The work of a QP in numbers, for statistics. The driver gives the memory, which another process may read at any
// time, and the core adds to it.
#ifndef CORE_COUNT_H
#define CORE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Messages are RDMAP's, of every kind. Bytes are the payload of Sends, Writes, Read Responses and
 * Immediates.
 */
struct aw_count {
	uint64_t fpdus, messages, bytes;
};

struct aw_qp_count {
	struct aw_count out; /* given out by aw_tx_next */
	struct aw_count in; /* received, without an error */
};

/* Counts a segment that carries so many bytes of payload. last: it is its message's last one. */
static inline void aw_count_segment(struct aw_count *count, bool last, uint32_t bytes)
{
	count->fpdus++;
	count->messages += last;
	count->bytes += bytes;
}

#endif
