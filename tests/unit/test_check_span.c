// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tree of spans against a list that is searched from end to end.
#include "check/model/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	SPANS = 200,
	STEPS = 20000,
	ADDRESSES = 1000, /* few, so that spans overlap, and many begin at the same one */
	LENGTHS = 40,
};

static struct aw_memory_span spans[SPANS];
static bool is_in[SPANS];

static bool overlaps(const struct aw_memory_span *span, uint64_t start, uint64_t end)
{
	return span->start < end && start < span->end;
}

static bool list_overlaps(uint64_t start, uint64_t end)
{
	for (int i = 0; i < SPANS; i++) {
		if (is_in[i] && overlaps(&spans[i], start, end))
			return true;
	}
	return false;
}

static void span_toggle(struct aw_span_tree *tree, int i)
{
	if (is_in[i]) {
		aw_span_remove(tree, &spans[i]);
	} else {
		spans[i].start = (uint64_t)(rand() % ADDRESSES);
		spans[i].end = spans[i].start + 1 + (uint64_t)(rand() % LENGTHS);
		aw_span_insert(tree, &spans[i]);
	}
	is_in[i] = !is_in[i];
}

static void overlapping__finds_what_a_list_finds(void **state)
{
	struct aw_span_tree tree = { 0 };

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		const uint64_t start = (uint64_t)(rand() % ADDRESSES),
			       end = start + 1 + (uint64_t)(rand() % LENGTHS);
		struct aw_memory_span *found;

		span_toggle(&tree, rand() % SPANS);
		found = aw_span_overlapping(&tree, start, end);
		assert_int_equal(found != NULL, list_overlaps(start, end));
		assert_true(!found || overlaps(found, start, end));
	}
}

static void next__walks_all_spans_by_their_starts(void **state)
{
	struct aw_span_tree tree = { 0 };
	uint64_t last = 0;
	int walked = 0, in = 0;

	(void)state;
	for (int i = 0; i < SPANS; i++)
		is_in[i] = false;
	for (int step = 0; step < SPANS * 3; step++)
		span_toggle(&tree, rand() % SPANS);
	for (int i = 0; i < SPANS; i++)
		in += is_in[i];
	for (struct aw_memory_span *span = aw_span_first(&tree); span;
	     span = aw_span_next(span), walked++) {
		assert_true(span->start >= last);
		last = span->start;
	}
	assert_int_equal(walked, in);
}

static void insert__many_in_order_make_a_shallow_tree(void **state)
{
	static struct aw_memory_span many[1 << 14];
	struct aw_span_tree tree = { 0 };
	int deepest = 0;

	(void)state;
	for (uint64_t i = 0; i < 1 << 14; i++) {
		many[i].start = i;
		many[i].end = i + 1;
		aw_span_insert(&tree, &many[i]);
	}
	for (int i = 0; i < 1 << 14; i++) {
		int depth = 0;

		for (struct aw_memory_span *up = many[i].up; up; up = up->up)
			depth++;
		deepest = depth > deepest ? depth : deepest;
	}
	assert_in_range(deepest, 13, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapping__finds_what_a_list_finds),
		cmocka_unit_test(next__walks_all_spans_by_their_starts),
		cmocka_unit_test(insert__many_in_order_make_a_shallow_tree),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
