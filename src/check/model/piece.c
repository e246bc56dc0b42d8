// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/piece.h"

#include "check/base/marks.h"
#include "check/model/qp.h"
#include "check/model/sum.h"
#include "check/model/verbs.h"
#include "check/report/report.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the trees; the innermost */
static struct aw_span_tree sinks, sources;
static atomic_uint tracked; /* spans in the trees */

static struct aw_piece *piece_of(struct aw_memory_span *span)
{
	return (struct aw_piece *)((char *)span - offsetof(struct aw_piece, span));
}

static const char *use_of(const struct aw_wr *wr)
{
	if (wr->is_recv)
		return "a receive";
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return "a Write";
	case IBV_WR_RDMA_READ:
		return "a Read";
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return "an atomic";
	case IBV_WR_ATOMIC_WRITE:
		return "an atomic write";
	default:
		return "a Send";
	}
}

static void overlap_report(const struct aw_wr *wr, const struct aw_memory_span *span,
			   const struct aw_memory_span *other)
{
	const uint64_t start = span->start > other->start ? span->start : other->start;
	const uint64_t end = span->end < other->end ? span->end : other->end;
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(wr->owner, name);
	aw_report(&(struct aw_report){ .rule = AW_RULE_OVERLAP,
				       .object = name,
				       .at = &wr->posted,
				       .earlier = { { "the other work request was posted here",
						      &other->wr->posted } } },
		  "%" PRIu64 " bytes at 0x%" PRIx64 " are used by %s of wr_id 0x%" PRIx64
		  " and by %s of wr_id 0x%" PRIx64
		  ", both under way, at least one of which writes them",
		  end - start, start, use_of(wr), wr->wr_id, use_of(other->wr), other->wr->wr_id);
}

/* A fenced send begins when the Reads and atomics before it are complete: it may use what they write. */
static bool is_behind_fence(const struct aw_wr *wr, const struct aw_wr *earlier)
{
	return wr->is_fenced && wr->owner == earlier->owner && !earlier->is_recv &&
	       aw_wr_writes(earlier);
}

/* Puts the span into its tree; true: it shares bytes with another one, one of which is written. */
static bool span_track(struct aw_wr *wr, struct aw_piece *piece, bool is_sink)
{
	struct aw_memory_span *span = &piece->span, *other;

	pthread_mutex_lock(&lock);
	other = aw_span_overlapping(&sinks, span->start, span->end);
	if (!other && is_sink)
		other = aw_span_overlapping(&sources, span->start, span->end);
	if (other && other->wr != wr) {
		wr->is_shared = other->wr->is_shared = true;
		if (is_sink && piece_of(other)->is_sink)
			wr->is_written_twice = other->wr->is_written_twice = true;
		if (!is_behind_fence(wr, other->wr))
			overlap_report(wr, span, other);
	}
	aw_span_insert(is_sink ? &sinks : &sources, span);
	atomic_fetch_add_explicit(&tracked, 1, memory_order_relaxed);
	piece->is_tracked = true;
	piece->is_sink = is_sink;
	pthread_mutex_unlock(&lock);
	return other;
}

/*
 * A receive's sink is kept, to be compared with: to fill it would break a program whose SGE is longer than its buffer, as UCX's are, which
 * no message ever notices. The answer to a Read or an atomic covers all of its sink.
 */
static void sink_begin(struct aw_piece *piece, bool is_recv, size_t len)
{
	if (len > AW_SINK_FILL_MAX)
		return;
	if (!is_recv) {
		memset(piece->memory, AW_SINK_PATTERN, len);
		aw_mark_undefined(piece->memory, len);
		return;
	}
	piece->saved = malloc(len);
	if (!piece->saved)
		return;
	memcpy(piece->saved, piece->memory, len);
	aw_mark_undefined(piece->memory, len);
}

/* The marks of a sink are taken off, but not those of what failed; arrived: its first bytes, which the device has written. */
static void sink_unmark(const struct aw_wr *wr, const struct aw_piece *piece, size_t arrived,
			enum aw_wr_end end)
{
	const size_t len = piece->span.end - piece->span.start;

	if (end == AW_WR_FAILED)
		return;
	if (!wr->is_recv)
		arrived = len;
	aw_mark_defined(piece->memory, arrived);
	if (piece->saved)
		aw_mark_defined_like(piece->memory + arrived, piece->saved + arrived,
				     len - arrived);
}

void aw_piece_begin(struct aw_wr *wr, struct aw_piece *piece, const struct ibv_sge *sge,
		    bool is_sink)
{
	struct aw_object *object =
		aw_object_get_by_number(wr->owner->context, AW_KIND_MR, sge->lkey);
	const struct aw_mr_shadow *mr = (struct aw_mr_shadow *)object;

	/* An SGE that fits no MR fails by itself, and is told as such. */
	if (mr && mr->is_readable && sge->length && sge->addr >= mr->start && sge->addr < mr->end &&
	    sge->length <= mr->end - sge->addr) {
		const uint64_t at = mr->memory + (sge->addr - mr->start);

		piece->memory = (unsigned char *)(uintptr_t)at;
		piece->lkey = sge->lkey;
		piece->span =
			(struct aw_memory_span){ .start = at, .end = at + sge->length, .wr = wr };
		if (!span_track(wr, piece, is_sink) && is_sink &&
		    mr->access & IBV_ACCESS_LOCAL_WRITE)
			sink_begin(piece, wr->is_recv, sge->length);
	}
	aw_object_put(object);
}

uint64_t aw_pieces_sum(const struct aw_wr *wr)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < wr->pieces; i++) {
		const struct aw_piece *piece = &wr->piece[i];

		if (piece->memory)
			sum = aw_sum(sum, piece->memory, piece->span.end - piece->span.start);
	}
	aw_mark_defined(&sum, sizeof(sum)); /* a source may have bytes that are not */
	return sum;
}

static void changed_report(const struct aw_wr *wr, enum aw_rule rule, const char *what)
{
	struct aw_stack polled;
	char name[AW_OBJECT_NAME_MAX];

	aw_stack_take(&polled);
	aw_object_name(wr->owner, name);
	aw_report(&(struct aw_report){ .rule = rule,
				       .object = name,
				       .at = &wr->posted,
				       .earlier = { { "found when its completion was polled here",
						      &polled } } },
		  "the %s of %s, wr_id 0x%" PRIx64 ", was %s before its completion was polled",
		  rule == AW_RULE_SOURCE_CHANGED ? "source" : "sink", use_of(wr), wr->wr_id, what);
}

/* The first byte from there on that differs from what is kept; len: none does. */
static size_t written_find(const struct aw_piece *piece, size_t from, size_t len)
{
	aw_marks_hush();
	if (memcmp(piece->memory + from, piece->saved + from, len - from) == 0)
		from = len;
	while (from < len && piece->memory[from] == piece->saved[from])
		from++;
	aw_mark_defined(&from, sizeof(from));
	aw_marks_unhush();
	return from;
}

/* Tells a byte from there on that the program wrote; false: there is none. */
static bool written_tell(const struct aw_wr *wr, const struct aw_piece *piece, size_t from)
{
	const size_t len = piece->span.end - piece->span.start;
	char what[96];

	from = written_find(piece, from, len);
	if (from == len)
		return false;
	snprintf(what, sizeof(what), "written at 0x%" PRIxPTR ", byte %zu of an SGE of %zu,",
		 (uintptr_t)piece->memory + from, from, len);
	changed_report(wr, AW_RULE_SINK_WRITTEN, what);
	return true;
}

static void span_untrack(struct aw_span_tree *tree, struct aw_memory_span *span)
{
	aw_span_remove(tree, span);
	atomic_fetch_sub_explicit(&tracked, 1, memory_order_relaxed);
	piece_of(span)->is_tracked = false;
}

static void spans_untrack(struct aw_wr *wr)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < wr->pieces; i++) {
		struct aw_piece *piece = &wr->piece[i];

		if (piece->is_tracked)
			span_untrack(piece->is_sink ? &sinks : &sources, &piece->span);
	}
	pthread_mutex_unlock(&lock);
}

void aw_pieces_end(struct aw_wr *wr, uint64_t filled, enum aw_wr_end end)
{
	const bool is_checked = end == AW_WR_SUCCEEDED;
	bool is_told = !is_checked || wr->is_written_twice, is_whole = true;

	spans_untrack(wr);
	for (unsigned i = 0; i < wr->pieces; i++) {
		struct aw_piece *piece = &wr->piece[i];
		const uint64_t len = piece->span.end - piece->span.start,
			       here = filled < len ? filled : len;

		filled -= here;
		is_whole = is_whole && piece->memory && !piece->is_sink;
		/* Where nothing is judged, the memory may be gone. */
		if (!is_told && piece->saved && piece->memory)
			is_told = written_tell(wr, piece, here);
		if (piece->is_sink && piece->memory)
			sink_unmark(wr, piece, here, end);
		free(piece->saved);
		piece->saved = NULL;
	}
	if (is_checked && is_whole && wr->pieces && !wr->is_shared && !wr->is_answered &&
	    wr->sum != aw_pieces_sum(wr))
		changed_report(wr, AW_RULE_SOURCE_CHANGED, "changed");
}

/* A span of the tree that uses the memory, or NULL. */
static struct aw_memory_span *span_find(const struct aw_span_tree *tree,
					const struct aw_memory *memory)
{
	if (!memory->lkey)
		return aw_span_overlapping(tree, memory->start, memory->end);
	for (struct aw_memory_span *span = aw_span_first(tree); span; span = aw_span_next(span)) {
		if (piece_of(span)->lkey == *memory->lkey && span->start < memory->end &&
		    memory->start < span->end)
			return span;
	}
	return NULL;
}

/* A send that has arrived by all that the program can know; or a receive in an SRQ without QPs, to which no message can come. */
static bool is_idle(const struct aw_wr *wr)
{
	return wr->is_answered ||
	       (wr->owner->kind == AW_KIND_SRQ &&
		atomic_load(&((const struct aw_srq_shadow *)wr->owner)->qps) == 0);
}

/* The first WR of the tree that uses the memory; each that does loses it. */
static const struct aw_wr *tree_give_up(struct aw_span_tree *tree, const struct aw_memory *memory)
{
	const struct aw_wr *first = NULL;

	for (;;) {
		struct aw_memory_span *span = span_find(tree, memory);

		if (!span)
			return first;
		span_untrack(tree, span);
		if (piece_of(span)->is_sink)
			sink_unmark(span->wr, piece_of(span), 0, AW_WR_WITHDRAWN);
		piece_of(span)->memory = NULL;
		if (!first && !is_idle(span->wr))
			first = span->wr;
	}
}

void aw_memory_given_up(enum aw_rule rule, const char *object, const char *what,
			const struct aw_memory *memory)
{
	const struct aw_wr *sink, *source;
	char name[AW_OBJECT_NAME_MAX];

	pthread_mutex_lock(&lock);
	sink = tree_give_up(&sinks, memory);
	source = tree_give_up(&sources, memory);
	if (sink || source) {
		const struct aw_wr *wr = sink ? sink : source;

		aw_object_name(wr->owner, name);
		aw_report(&(struct aw_report){ .rule = rule,
					       .object = *object ? object : name,
					       .earlier = { { "posted here", &wr->posted } } },
			  "memory at 0x%" PRIx64 " to 0x%" PRIx64
			  " is %s while %s of wr_id 0x%" PRIx64 " on %s uses it",
			  memory->start, memory->end, what, use_of(wr), wr->wr_id, name);
	}
	pthread_mutex_unlock(&lock);
}

bool aw_memory_is_used(void)
{
	return atomic_load_explicit(&tracked, memory_order_relaxed) != 0;
}

void aw_memory_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	sinks.root = sources.root = NULL;
	atomic_store(&tracked, 0);
}
