// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stages: how many whole ones may wait with QPs, and what the others wait in.
#include "net/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* A stage with a rest of len octets, put away. */
static struct aw_stage *kept(size_t len)
{
	struct aw_stage *stage = aw_stage_get();

	assert_non_null(stage);
	assert_int_equal(stage->size, AW_STAGE_OCTETS);
	stage->len = len;
	for (size_t i = 0; i < len; i++)
		stage->buf[i] = (uint8_t)(i * 7);
	return aw_stage_keep(stage);
}

static void assert_rest(const struct aw_stage *stage, size_t len)
{
	assert_int_equal(stage->len, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(stage->buf[i], (uint8_t)(i * 7));
}

static int teardown(void **state)
{
	(void)state;
	aw_pool_flush();
	return 0;
}

static void stage_keep__bound(void **state)
{
	struct aw_stage *whole[AW_STAGES_KEPT_MAX], *more;

	(void)state;
	for (unsigned int i = 0; i < AW_STAGES_KEPT_MAX; i++) {
		whole[i] = kept(1);
		assert_int_equal(whole[i]->size, AW_STAGE_OCTETS);
	}
	more = kept(1);
	assert_in_range(more->size, 1, AW_STAGE_COPY_MAX);
	aw_stage_put(more);
	/* A place is free again when one goes on or is put. */
	assert_ptr_equal(aw_stage_resume(whole[0]), whole[0]);
	more = kept(1);
	assert_int_equal(more->size, AW_STAGE_OCTETS);
	aw_stage_put(more);
	assert_ptr_equal(aw_stage_keep(whole[0]), whole[0]);
	for (unsigned int i = 0; i < AW_STAGES_KEPT_MAX; i++)
		aw_stage_put(whole[i]);
}

/* What waits while all places are taken, for a rest of len octets. */
static struct aw_stage *kept_small(size_t len, struct aw_stage **whole)
{
	for (unsigned int i = 0; i < AW_STAGES_KEPT_MAX; i++)
		whole[i] = kept(1);
	return kept(len);
}

static void assert_resumes(size_t len, size_t kept_size, size_t resumed_size)
{
	struct aw_stage *whole[AW_STAGES_KEPT_MAX], *stage = kept_small(len, whole);

	assert_int_equal(stage->size, kept_size);
	assert_rest(stage, len);
	stage = aw_stage_resume(stage);
	assert_non_null(stage);
	assert_int_equal(stage->size, resumed_size);
	assert_rest(stage, len);
	/* It waits again with as much more as one FPDU can have. */
	if (resumed_size == FPDU_MAX)
		assert_ptr_equal(aw_stage_keep(stage), stage);
	aw_stage_put(stage);
	for (unsigned int i = 0; i < AW_STAGES_KEPT_MAX; i++)
		aw_stage_put(whole[i]);
}

static void stage_resume__rest_moves_with_it(void **state)
{
	(void)state;
	assert_resumes(1, 1, AW_STAGE_OCTETS);
	assert_resumes(AW_STAGE_COPY_MAX, AW_STAGE_COPY_MAX, AW_STAGE_OCTETS);
}

static void stage_resume__long_rest_stays(void **state)
{
	(void)state;
	assert_resumes(AW_STAGE_COPY_MAX + 1, FPDU_MAX, FPDU_MAX);
	assert_resumes(FPDU_MAX - 1, FPDU_MAX, FPDU_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(stage_keep__bound, teardown),
		cmocka_unit_test_teardown(stage_resume__rest_moves_with_it, teardown),
		cmocka_unit_test_teardown(stage_resume__long_rest_stays, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
