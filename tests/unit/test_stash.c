// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stash alone: what passes it, its order, its bound, its memory.
#include "../lib/core_pair.h"

#include "wire/fpdu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define LEN(table) (sizeof(table) / sizeof((table)[0]))

static void aw_stash_passes__answers_alone(void **state)
{
	static const struct {
		enum rdmap_opcode op;
		uint32_t qn;
		bool tagged, passes;
	} cases[] = {
		{ .op = RDMAP_READ_RESP, .tagged = true, .passes = true },
		{ .op = RDMAP_ATOMIC_RESP, .qn = DDP_QN_ATOMIC, .passes = true },
		{ .op = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE, .passes = true },
		{ .op = RDMAP_WRITE, .tagged = true },
		{ .op = RDMAP_SEND },
		{ .op = RDMAP_SEND_SE_INV },
		{ .op = RDMAP_IMM },
		{ .op = RDMAP_READ_REQ, .qn = DDP_QN_READ },
		{ .op = RDMAP_ATOMIC_REQ, .qn = DDP_QN_READ },
		/* errors that are found at once, */
		{ .op = RDMAP_SEND, .tagged = true, .passes = true },
		{ .op = RDMAP_SEND, .qn = DDP_QN_ATOMIC + 1, .passes = true },
		/* and in their turn */
		{ .op = RDMAP_READ_RESP },
		{ .op = RDMAP_TERMINATE, .qn = DDP_QN_SEND },
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		struct ddp_hdr hdr = cases[i].tagged
					     ? core_tagged(cases[i].op, 1, 0)
					     : core_untagged(cases[i].op, cases[i].qn, 1, 0);
		uint8_t p[DDP_UNTAGGED_LEN];
		size_t len = ddp_put(&hdr, p);

		assert_int_equal(aw_stash_passes(p, len), cases[i].passes);
		assert_true(aw_stash_passes(p, len - 1)); /* no header */
	}
	assert_true(aw_stash_passes(core_data, 0));
}

static void push(struct core_end *end, size_t len)
{
	assert_true(aw_stash_push(&end->qp, core_data, len));
}

static void expect_front(struct core_end *end, size_t due)
{
	size_t len = SIZE_MAX;
	const uint8_t *front = aw_stash_front(&end->qp, &len);

	assert_non_null(front);
	assert_int_equal(len, due);
	assert_memory_equal(front, core_data, len);
}

static void aw_stash_push__comes_back_in_order(void **state)
{
	static const size_t lens[] = { 0, 1, 2, 3, 4, 5, 18, 4000, 5000, FPDU_ULPDU_MAX, 7, 65000 };
	struct core_end *end = core_responder();
	size_t len;

	(void)state;
	assert_null(aw_stash_front(&end->qp, &len));
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < LEN(lens); i++)
			push(end, lens[i]);
		for (size_t i = 0; i < LEN(lens); i++) {
			expect_front(end, lens[i]);
			aw_stash_pop(&end->qp);
			/* Some come while others go. */
			if (i % 3 == 0)
				push(end, i);
		}
		for (size_t i = 0; i < LEN(lens); i += 3) {
			expect_front(end, i);
			aw_stash_pop(&end->qp);
		}
		assert_true(aw_stash_is_empty(&end->qp.stash));
		assert_int_equal(end->qp.stash.octets, 0);
		assert_int_equal(end->stashed, 0);
	}
	core_end_destroy(end);
}

static void aw_stash_push__stops_at_its_bound(void **state)
{
	struct core_end *end = core_responder();
	size_t kept = 0, taken = 0;

	(void)state;
	while (aw_stash_push(&end->qp, core_data, FPDU_ULPDU_MAX))
		kept++;
	assert_true(end->qp.stash.octets <= AW_STASH_MAX);
	assert_true(end->qp.stash.octets > AW_STASH_MAX - AW_STASH_CHUNK_MAX);
	/* A fourth of a chunk may stay empty behind the longest ones. */
	assert_true(kept * FPDU_ULPDU_MAX > AW_STASH_MAX / 4 * 3 - AW_STASH_CHUNK_MAX);
	while (!aw_stash_push(&end->qp, core_data, FPDU_ULPDU_MAX)) {
		aw_stash_pop(&end->qp);
		assert_true(++taken < 16);
	}
	for (; taken <= kept; taken++) {
		expect_front(end, FPDU_ULPDU_MAX);
		aw_stash_pop(&end->qp);
	}
	assert_true(aw_stash_is_empty(&end->qp.stash));
	core_end_destroy(end);
}

/* One message that waits a moment costs little. */
static void aw_stash_push__begins_small(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	push(end, 100);
	assert_int_equal(end->qp.stash.octets, AW_STASH_CHUNK_MIN);
	assert_int_equal(end->stashed, AW_STASH_CHUNK_MIN);
	core_end_destroy(end);
}

static void aw_stash_push__without_memory(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	end->stash_none = true;
	assert_false(aw_stash_push(&end->qp, core_data, 10));
	assert_true(aw_stash_is_empty(&end->qp.stash));
	end->stash_none = false;
	push(end, 11);
	end->stash_none = true;
	push(end, 12); /* behind it */
	assert_false(aw_stash_push(&end->qp, core_data, AW_STASH_CHUNK_MIN));
	expect_front(end, 11);
	aw_stash_pop(&end->qp);
	expect_front(end, 12);
	core_end_destroy(end);
}

/* The peer is told at AW_STASH_TELL, and again when nothing waits. */
static void aw_stash_push__has_the_peer_told(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	while (end->qp.stash.octets < AW_STASH_TELL) {
		assert_false(end->qp.not_ready);
		push(end, 1000);
	}
	assert_true(end->qp.not_ready);
	do {
		assert_true(end->qp.not_ready);
		aw_stash_pop(&end->qp);
	} while (!aw_stash_is_empty(&end->qp.stash));
	assert_false(end->qp.not_ready);
	core_end_destroy(end);
}

static void aw_stash_drop__of_many_chunks(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	for (int i = 0; i < 100; i++)
		push(end, 9000);
	aw_stash_pop(&end->qp);
	assert_true(end->stashed > 2 * AW_STASH_CHUNK_MAX);
	aw_stash_drop(&end->qp);
	assert_int_equal(end->stashed, 0);
	assert_int_equal(end->qp.stash.octets, 0);
	assert_false(end->qp.not_ready);
	push(end, 5);
	expect_front(end, 5);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_stash_passes__answers_alone),
		cmocka_unit_test(aw_stash_push__comes_back_in_order),
		cmocka_unit_test(aw_stash_push__stops_at_its_bound),
		cmocka_unit_test(aw_stash_push__begins_small),
		cmocka_unit_test(aw_stash_push__without_memory),
		cmocka_unit_test(aw_stash_push__has_the_peer_told),
		cmocka_unit_test(aw_stash_drop__of_many_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
