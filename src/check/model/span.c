// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/span.h"

#include <assert.h>
#include <stddef.h>

static void highest_end_renew(struct aw_memory_span *span)
{
	span->highest_end = span->end;
	if (span->left && span->left->highest_end > span->highest_end)
		span->highest_end = span->left->highest_end;
	if (span->right && span->right->highest_end > span->highest_end)
		span->highest_end = span->right->highest_end;
}

static void highest_ends_renew(struct aw_memory_span *from)
{
	for (struct aw_memory_span *span = from; span; span = span->up)
		highest_end_renew(span);
}

/* Where the tree points to the span. */
static struct aw_memory_span **place_of(struct aw_span_tree *tree, struct aw_memory_span *span)
{
	if (!span->up)
		return &tree->root;
	return span->up->left == span ? &span->up->left : &span->up->right;
}

/* The span takes the place of the one above it, which goes below it. */
static void span_raise(struct aw_span_tree *tree, struct aw_memory_span *span)
{
	struct aw_memory_span *above = span->up, **place = place_of(tree, above);
	struct aw_memory_span **from = above->left == span ? &above->left : &above->right;
	struct aw_memory_span **to = above->left == span ? &span->right : &span->left;

	*from = *to;
	if (*from)
		(*from)->up = above;
	*to = above;
	span->up = above->up;
	above->up = span;
	*place = span;
	highest_end_renew(above);
	highest_end_renew(span);
}

/* A linear congruential generator: the tree is shallow with any numbers that do not follow the order of the addresses. */
static uint32_t random_next(struct aw_span_tree *tree)
{
	tree->random = tree->random * 1664525 + 1013904223;
	return tree->random >> 8;
}

void aw_span_insert(struct aw_span_tree *tree, struct aw_memory_span *span)
{
	struct aw_memory_span **place = &tree->root, *above = NULL;

	assert(span->start < span->end);
	while (*place) {
		above = *place;
		place = span->start < above->start ? &above->left : &above->right;
	}
	span->up = above;
	span->left = span->right = NULL;
	span->priority = random_next(tree);
	*place = span;
	highest_ends_renew(span);
	while (span->up && span->up->priority < span->priority)
		span_raise(tree, span);
}

void aw_span_remove(struct aw_span_tree *tree, struct aw_memory_span *span)
{
	while (span->left && span->right)
		span_raise(tree,
			   span->left->priority > span->right->priority ? span->left : span->right);

	struct aw_memory_span *below = span->left ? span->left : span->right;

	*place_of(tree, span) = below;
	if (below)
		below->up = span->up;
	highest_ends_renew(span->up);
}

struct aw_memory_span *aw_span_overlapping(const struct aw_span_tree *tree, uint64_t start,
					   uint64_t end)
{
	struct aw_memory_span *span = tree->root;

	while (span) {
		/* If nothing left of here reaches past start, no overlap is there; if something does, either it
		 * overlaps, or it and all to the right begin at or behind end. */
		if (span->left && span->left->highest_end > start)
			span = span->left;
		else if (span->start < end && start < span->end)
			return span;
		else
			span = span->right;
	}
	return NULL;
}

struct aw_memory_span *aw_span_first(const struct aw_span_tree *tree)
{
	struct aw_memory_span *span = tree->root;

	while (span && span->left)
		span = span->left;
	return span;
}

struct aw_memory_span *aw_span_next(const struct aw_memory_span *span)
{
	if (span->right) {
		struct aw_memory_span *next = span->right;

		while (next->left)
			next = next->left;
		return next;
	}
	while (span->up && span->up->right == span)
		span = span->up;
	return span->up;
}
