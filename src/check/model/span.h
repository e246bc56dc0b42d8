// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory that work requests under way use: two trees of spans of addresses, of sources, which a device reads, and of
// sinks, which it writes. A tree answers which of its spans overlaps another one, by a treap that knows in each node the
// highest end below it.
#ifndef CHECK_MODEL_SPAN_H
#define CHECK_MODEL_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct aw_wr;

/* A span is a member of its owner's memory and stays where it is while it is in a tree. */
struct aw_memory_span {
	uint64_t start, end; /* end is behind the last byte */
	struct aw_wr *wr; /* the work request that uses it */
	/* The tree's own. */
	struct aw_memory_span *up, *left, *right;
	uint64_t highest_end; /* of this span and of those below it */
	uint32_t priority; /* no lower than those below it */
};

struct aw_span_tree {
	struct aw_memory_span *root;
	uint32_t random; /* the state of the generator of priorities */
};

/* The caller holds the lock of the tree. */
void aw_span_insert(struct aw_span_tree *tree, struct aw_memory_span *span);
void aw_span_remove(struct aw_span_tree *tree, struct aw_memory_span *span);
/* A span of the tree that shares a byte with [start, end), or NULL. */
struct aw_memory_span *aw_span_overlapping(const struct aw_span_tree *tree, uint64_t start,
					   uint64_t end);
/* The spans by their starts: the first, and the one behind span; NULL: there is none. */
struct aw_memory_span *aw_span_first(const struct aw_span_tree *tree);
struct aw_memory_span *aw_span_next(const struct aw_memory_span *span);

#endif
