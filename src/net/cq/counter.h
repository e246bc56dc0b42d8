// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion counters: instead of, or beside, its CQEs a QP counts the WRs that complete, or their bytes (ibv_create_comp_cntr(3)).
// Several QPs may count in one; each of them adds under its own lock, and a program reads, sets and adds with none.
#ifndef NET_COUNTER_H
#define NET_COUNTER_H

#include "core/types.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct aw_counter {
	bool bytes; /* fixed after init: counts bytes of WRs that succeed, not WRs */
	/* Relaxed: they order no other memory, unlike a CQE. */
	_Atomic uint64_t good, bad;
};

/* A QP counts each of these in one counter, or not at all. */
enum aw_counted {
	AW_COUNTED_SEND,
	AW_COUNTED_RECV,
	AW_COUNTED_READ,
	AW_COUNTED_WRITE,
	AW_COUNTED,
};

/* Of a QP, and guarded by its lock; NULL: not counted. Where all are, the core tells of none (tells_each). */
struct aw_counters {
	struct aw_counter *of[AW_COUNTED];
};

static inline bool aw_counters_any(const struct aw_counters *counters)
{
	for (int i = 0; i < AW_COUNTED; i++)
		if (counters->of[i])
			return true;
	return false;
}

/* A WR has completed, signalled or not. len: of its message, in bytes. */
static inline void aw_counter_add(struct aw_counter *counter, enum aw_wc_status status,
				  uint64_t len)
{
	if (!counter)
		return;
	if (status != AW_WC_SUCCESS)
		atomic_fetch_add_explicit(&counter->bad, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&counter->good, counter->bytes ? len : 1,
					  memory_order_relaxed);
}

/* The counter of a WR of the send queue; NULL: none, as for atomics, flushes and what is done on this host alone. */
static inline struct aw_counter *aw_counters_sent(const struct aw_counters *counters, enum aw_op op)
{
	switch (op) {
	case AW_OP_WRITE:
	case AW_OP_WRITE_IMM:
		return counters->of[AW_COUNTED_WRITE];
	case AW_OP_SEND:
	case AW_OP_SEND_INV:
	case AW_OP_SEND_IMM:
		return counters->of[AW_COUNTED_SEND];
	case AW_OP_READ:
		return counters->of[AW_COUNTED_READ];
	case AW_OP_LOCAL_INV:
	case AW_OP_BIND_MW:
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
	case AW_OP_ATOMIC_WRITE:
	case AW_OP_FLUSH:
		break;
	}
	return NULL;
}

#endif
