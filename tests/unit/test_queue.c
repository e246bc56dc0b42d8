// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Send and receive queues: empty, full, one more, and across the wrap of their indices.
#include "core/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void aw_sq_stride__limits(void **state)
{
	const size_t tail = offsetof(struct aw_swqe, sge);

	(void)state;
	assert_int_equal(aw_sq_stride(0, 0), sizeof(struct aw_swqe));
	assert_int_equal(aw_sq_stride(1, 0), sizeof(struct aw_swqe));
	assert_int_equal(aw_sq_stride(2, 0), tail + 2 * sizeof(struct aw_sge));
	assert_int_equal(aw_sq_stride(AW_SGE_MAX, 0), tail + AW_SGE_MAX * sizeof(struct aw_sge));
	assert_true(aw_sq_stride(1, AW_INLINE_MAX) >= tail + AW_INLINE_MAX);
	assert_int_equal(aw_sq_stride(1, 17) % 16, 0);
}

static void aw_sq_mem_size__none(void **state)
{
	(void)state;
	assert_int_equal(aw_sq_mem_size(0, 1, 0), 0);
	assert_int_equal(aw_rq_mem_size(0, 1), 0);
}

/* A capacity that is no power of two, with indices about to wrap at 2^32. */
static void aw_sq_reserve__full_across_wrap(void **state)
{
	void *mem = malloc(aw_sq_mem_size(5, 1, 0));
	struct aw_sq sq;

	(void)state;
	aw_sq_init(&sq, mem, 5, aw_sq_stride(1, 0));
	sq.head = sq.next = sq.tail = UINT32_MAX - 2;
	for (unsigned int i = 0; i < 5; i++) {
		struct aw_swqe *wqe = aw_sq_reserve(&sq);

		assert_non_null(wqe);
		wqe->wr_id = i;
		aw_sq_commit(&sq);
		assert_int_equal(aw_sq_count(&sq), i + 1);
	}
	assert_null(aw_sq_reserve(&sq));
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(aw_sq_at(&sq, sq.head + i)->wr_id, i);
	free(mem);
}

static void aw_sq_reserve__not_committed_is_not_there(void **state)
{
	void *mem = malloc(aw_sq_mem_size(1, 1, 0));
	struct aw_sq sq;

	(void)state;
	aw_sq_init(&sq, mem, 1, aw_sq_stride(1, 0));
	assert_non_null(aw_sq_reserve(&sq));
	assert_int_equal(aw_sq_count(&sq), 0);
	free(mem);
}

static void aw_sq_reserve__capacity_0(void **state)
{
	struct aw_sq sq;

	(void)state;
	aw_sq_init(&sq, NULL, 0, aw_sq_stride(0, 0));
	assert_null(aw_sq_reserve(&sq));
}

static void aw_rq_post__full_across_wrap(void **state)
{
	void *mem = malloc(aw_rq_mem_size(3, 2));
	struct aw_sge sge[2] = { { 10, 20, 30 }, { 11, 21, 31 } };
	struct aw_rwqe recv;
	struct aw_rq rq;

	(void)state;
	aw_rq_init(&rq, mem, 3, 2);
	rq.head = rq.tail = UINT32_MAX - 1;
	assert_false(aw_rq_take(&rq, &recv));
	for (uint64_t id = 0; id < 3; id++)
		assert_true(aw_rq_post(&rq, id, sge, (uint32_t)id));
	assert_false(aw_rq_post(&rq, 3, sge, 1));
	for (uint64_t id = 0; id < 3; id++) {
		assert_true(aw_rq_take(&rq, &recv));
		assert_int_equal(recv.wr_id, id);
		assert_int_equal(recv.sge_count, id);
		assert_memory_equal(recv.sge, sge, id * sizeof(*sge));
	}
	assert_int_equal(recv.len, 41);
	assert_false(aw_rq_take(&rq, &recv));
	free(mem);
}

static void aw_rq_take__writes_only_its_sges(void **state)
{
	void *mem = malloc(aw_rq_mem_size(1, 1));
	struct aw_sge sge = { 1, 2, 3 };
	struct aw_rwqe recv;
	struct aw_rq rq;

	(void)state;
	memset(&recv, 0x5a, sizeof(recv));
	aw_rq_init(&rq, mem, 1, 1);
	assert_true(aw_rq_post(&rq, 9, &sge, 1));
	assert_true(aw_rq_take(&rq, &recv));
	assert_int_equal(recv.sge[1].len, 0x5a5a5a5a);
	free(mem);
}

static void aw_rq_post__sum_beyond_32_bits(void **state)
{
	void *mem = malloc(aw_rq_mem_size(1, 2));
	struct aw_sge sge[2] = { { 0, UINT32_MAX, 1 }, { 0, 2, 1 } };
	struct aw_rwqe recv;
	struct aw_rq rq;

	(void)state;
	aw_rq_init(&rq, mem, 1, 2);
	assert_true(aw_rq_post(&rq, 9, sge, 2));
	assert_true(aw_rq_take(&rq, &recv));
	assert_int_equal(recv.len, UINT32_MAX);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_sq_stride__limits),
		cmocka_unit_test(aw_sq_mem_size__none),
		cmocka_unit_test(aw_sq_reserve__full_across_wrap),
		cmocka_unit_test(aw_sq_reserve__not_committed_is_not_there),
		cmocka_unit_test(aw_sq_reserve__capacity_0),
		cmocka_unit_test(aw_rq_post__full_across_wrap),
		cmocka_unit_test(aw_rq_take__writes_only_its_sges),
		cmocka_unit_test(aw_rq_post__sum_beyond_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
