// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The work requests of one SQ, RQ or SRQ that were posted and of which no completion was polled, and the memory that they use.
//
// The work on that memory: a sum over each source is taken at the post and again at the completion. A receive's sink is kept at
// the post, and compared at the completion where the message did not fill it. A Read's sink is filled with a pattern: a program that
// reads it early sees that. Both are marked undefined until the completion: check/base/marks.h. Memory that overlaps another WR's is
// not touched. Memory that this process cannot read, as a GPU's, is left alone.
#ifndef CHECK_MODEL_QUEUE_H
#define CHECK_MODEL_QUEUE_H

#include "check/model/object.h"
#include "check/model/span.h"
#include "check/report/rule.h"

#include <infiniband/verbs.h>

#define AW_SINK_PATTERN 0xd7
#define AW_SINK_FILL_MAX \
	(16 << 20) /* a larger sink is neither filled nor kept: that costs milliseconds */

/* One SGE of a work request under way. */
struct aw_piece {
	struct aw_memory_span span; /* addresses of this process; empty: nothing of this process */
	bool is_tracked; /* the span is in the tree of sinks or of sources; under the spans' lock, as memory is */
	bool is_sink;
	uint32_t lkey;
	unsigned char *memory; /* where this process reads it; NULL: it does not */
	unsigned char *saved; /* the bytes of a receive's sink before; NULL: nothing was saved */
};

/* The memory of the peer that a Write, Read or atomic names. */
struct aw_remote {
	bool is_set;
	uint32_t rkey;
	uint64_t addr, length;
};

/* True where it has these bytes. */
static inline bool aw_remote_has(const struct aw_remote *remote, uint32_t rkey, uint64_t addr,
				 uint64_t length)
{
	return remote->is_set && remote->rkey == rkey && addr >= remote->addr &&
	       addr - remote->addr <= remote->length &&
	       length <= remote->length - (addr - remote->addr);
}

struct aw_wr {
	uint64_t wr_id;
	const void *posted_as; /* the program's ibv_send_wr or ibv_recv_wr */
	const struct aw_object *owner; /* the QP or SRQ */
	enum ibv_wr_opcode opcode; /* of a send */
	struct aw_remote remote;
	bool is_recv, is_signaled;
	bool is_fenced; /* it begins behind the Reads and atomics that were posted before it */
	bool is_done; /* its completion was polled while an earlier one is still under way */
	bool is_shared; /* another WR uses bytes of it, one of both to write; under the spans' lock */
	bool is_written_twice; /* another WR writes bytes that it writes; likewise */
	bool is_answered; /* an unsignaled send, behind which a message of the peer was polled */
	uint64_t sum; /* over its sources */
	struct aw_stack posted;
	unsigned pieces;
	struct aw_piece piece[];
};

/* A ring of the WRs under way, the oldest first, which grows. The lock of its QP or SRQ guards it. */
struct aw_wr_queue {
	struct aw_wr **wrs;
	unsigned size, head, count; /* size is a power of two */
	unsigned signaled; /* of those, the ones that make a completion on success */
	atomic_uint *due; /* the CQ's count of these; NULL: it is not counted */
};

/* True where the device writes the WR's memory. */
bool aw_wr_writes(const struct aw_wr *wr);

/* A post's facts of one WR. */
struct aw_wr_posted {
	const struct aw_object *owner;
	const void *posted_as;
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	struct aw_remote remote;
	bool is_recv, is_signaled, is_inline, is_fenced;
	const struct ibv_sge *sges;
	int sge_count;
};

/* Appends the WR and takes over its memory. Where memory is out the WR is not followed. */
void aw_queue_push(struct aw_wr_queue *queue, const struct aw_wr_posted *posted);

/* Takes out the WRs from the one that was posted as bad on, which the device did not accept. */
void aw_queue_unpush(struct aw_wr_queue *queue, const void *bad);

/* Takes out, as the completion wc says, the WRs that are complete: in order, or in an SRQ the one alone. False: none fits. */
bool aw_queue_complete(struct aw_wr_queue *queue, const struct ibv_wc *wc, bool in_order);

/* The oldest WR with this wr_id that a completion can be of; NULL: none. errors: an unsignaled one as well. */
const struct aw_wr *aw_queue_find(const struct aw_wr_queue *queue, uint64_t wr_id, bool errors);

/* The WR at that place, counted from the oldest, which is below the queue's count. */
const struct aw_wr *aw_queue_at(const struct aw_wr_queue *queue, unsigned index);

/* The peer may have answered all sends of the queue; those from that place on were not known to be. */
void aw_queue_answered(struct aw_wr_queue *queue, unsigned from);

/* The oldest WR that names these bytes of the peer; NULL: none. */
const struct aw_wr *aw_queue_find_remote(const struct aw_wr_queue *queue, uint32_t rkey,
					 uint64_t addr, uint64_t length);

/* Forgets all of its WRs, and gives their memory back. */
void aw_queue_clear(struct aw_wr_queue *queue);

/* In the child of a fork: its WRs are the parent's, and their memory stays as it is. */
void aw_queue_forget(struct aw_wr_queue *queue);

/* Of an empty queue. */
void aw_queue_fini(struct aw_wr_queue *queue);

/* Memory of this process that is given up. */
struct aw_memory {
	uint64_t start, end;
	const uint32_t *lkey; /* only where a WR names this lkey; NULL: by whatever lkey */
};

/*
 * Tells rule where a WR under way uses the memory, and looks at that memory no more. object: as in a report, "" for that of the
 * WR. The argument `what` is "freed", "deregistered".
 */
void aw_memory_given_up(enum aw_rule rule, const char *object, const char *what,
			const struct aw_memory *memory);

/* In the child of a fork, where no WR is under way. */
void aw_memory_forget(void);

/* True where any WR under way uses memory of this process at all; without a lock. */
bool aw_memory_is_used(void);

#endif
