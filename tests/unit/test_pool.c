// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stages: how many large ones there may be, and what the others wait in. Batches: whose they are, and how many are out.
#include "net/mem/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

/* A rest of len octets in stage. */
static void put_rest(struct aw_stage *stage, size_t len)
{
	stage->len = len;
	for (size_t i = 0; i < len; i++)
		stage->buf[i] = (uint8_t)(i * 7);
}

static void assert_rest(const struct aw_stage *stage, size_t len)
{
	assert_int_equal(stage->len, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(stage->buf[i], (uint8_t)(i * 7));
}

static struct aw_stage *get_of_size(uint32_t size)
{
	struct aw_stage *stage = aw_stage_get();

	assert_non_null(stage);
	assert_int_equal(stage->size, size);
	assert_int_equal(stage->len, 0);
	return stage;
}

/* Every place is taken. */
static void take_places(struct aw_stage **large)
{
	for (unsigned int i = 0; i < AW_STAGES_LARGE_MAX; i++)
		large[i] = get_of_size(AW_STAGE_BYTES);
}

static void put_places(struct aw_stage **large)
{
	for (unsigned int i = 0; i < AW_STAGES_LARGE_MAX; i++)
		aw_stage_put(large[i]);
}

static int teardown(void **state)
{
	(void)state;
	aw_pool_flush();
	return 0;
}

/* Whoever finds no place has no more room than one FPDU needs, and so none to keep more. */
static void stage_get__bound(void **state)
{
	struct aw_stage *large[AW_STAGES_LARGE_MAX], *more[2];

	(void)state;
	take_places(large);
	for (int i = 0; i < 2; i++)
		more[i] = get_of_size(FPDU_MAX);
	aw_stage_put(large[0]);
	large[0] = get_of_size(AW_STAGE_BYTES);
	aw_stage_put(more[0]);
	more[0] = get_of_size(FPDU_MAX);
	put_places(large);
	for (int i = 0; i < 2; i++)
		aw_stage_put(more[i]);
	/* All places are free again. */
	take_places(large);
	aw_stage_put(get_of_size(FPDU_MAX));
	put_places(large);
}

/* While places are left: a full one waits as it is, and so does one with a single octet. */
static void stage_keep__large_waits_as_it_is(void **state)
{
	static const size_t lens[] = { 0, 1, FPDU_MAX, FPDU_MAX + 1, AW_STAGE_BYTES };

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct aw_stage *stage = get_of_size(AW_STAGE_BYTES);

		put_rest(stage, lens[i]);
		assert_ptr_equal(aw_stage_keep(stage), stage);
		assert_ptr_equal(aw_stage_resume(stage), stage);
		assert_rest(stage, lens[i]);
		aw_stage_put(stage);
	}
}

/* Where no place is left, a short rest gives its own back: peers with half an FPDU do not keep all of them. */
static void stage_keep__large_gives_the_last_place_back(void **state)
{
	struct aw_stage *large[AW_STAGES_LARGE_MAX], *kept[2];

	(void)state;
	take_places(large);
	kept[0] = large[0];
	put_rest(kept[0], AW_STAGE_COPY_MAX + 1);
	assert_ptr_equal(aw_stage_keep(kept[0]), kept[0]);
	put_rest(kept[0], AW_STAGE_COPY_MAX);
	kept[0] = aw_stage_keep(kept[0]);
	assert_int_equal(kept[0]->size, AW_STAGE_COPY_MAX);
	assert_rest(kept[0], AW_STAGE_COPY_MAX);
	large[0] = get_of_size(AW_STAGE_BYTES);
	kept[1] = get_of_size(FPDU_MAX);
	aw_stage_put(kept[0]);
	aw_stage_put(kept[1]);
	put_places(large);
}

/* A rest of len octets, while all places are taken, waits in kept_size and comes back in resumed_size. */
static void assert_resumes(size_t len, size_t kept_size, size_t resumed_size)
{
	struct aw_stage *large[AW_STAGES_LARGE_MAX], *stage;

	take_places(large);
	stage = get_of_size(FPDU_MAX);
	put_rest(stage, len);
	stage = aw_stage_keep(stage);
	assert_int_equal(stage->size, kept_size);
	assert_rest(stage, len);
	if (resumed_size == AW_STAGE_BYTES) {
		aw_stage_put(large[0]);
		stage = aw_stage_resume(stage);
		large[0] = stage;
	} else {
		stage = aw_stage_resume(stage);
	}
	assert_non_null(stage);
	assert_int_equal(stage->size, resumed_size);
	assert_rest(stage, len);
	if (stage != large[0])
		aw_stage_put(stage);
	put_places(large);
}

static void stage_resume__rest_moves_with_it(void **state)
{
	(void)state;
	for (size_t len = 0; len < 2; len++) {
		assert_resumes(len, len, FPDU_MAX);
		assert_resumes(len, len, AW_STAGE_BYTES);
	}
	assert_resumes(AW_STAGE_COPY_MAX, AW_STAGE_COPY_MAX, FPDU_MAX);
	assert_resumes(AW_STAGE_COPY_MAX, AW_STAGE_COPY_MAX, AW_STAGE_BYTES);
}

static void stage_resume__long_rest_stays(void **state)
{
	(void)state;
	assert_resumes(AW_STAGE_COPY_MAX + 1, FPDU_MAX, FPDU_MAX);
	assert_resumes(FPDU_MAX - 1, FPDU_MAX, FPDU_MAX);
	assert_resumes(FPDU_MAX, FPDU_MAX, FPDU_MAX);
}

static void *put_one(void *unused)
{
	(void)unused;
	aw_stage_put(get_of_size(AW_STAGE_BYTES));
	return NULL;
}

/* A stage that another thread has left at hand is found before a place is missing. */
static void stage_get__takes_what_another_thread_has_left(void **state)
{
	struct aw_stage *large[AW_STAGES_LARGE_MAX];
	pthread_t other;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, put_one, NULL), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	take_places(large);
	aw_stage_put(get_of_size(FPDU_MAX));
	put_places(large);
}

static void *put_batch(void *batch)
{
	aw_batch_put(batch);
	return NULL;
}

static void put_batch_elsewhere(struct aw_batch *batch)
{
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, put_batch, batch), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
}

/* A region that is deregistered is looked for in batches as long as one is out, whichever thread has it. */
static void batch_get__those_out_are_counted(void **state)
{
	struct aw_batch *own = aw_batch_get(), *more[2];

	(void)state;
	assert_non_null(own);
	for (unsigned int i = 0; i < 2; i++) {
		more[i] = aw_batch_get();
		assert_non_null(more[i]);
		assert_int_equal(aw_batches_out(), 2 + i);
	}
	put_batch_elsewhere(own);
	assert_int_equal(aw_batches_out(), 2);
	aw_batch_put(more[0]);
	put_batch_elsewhere(more[1]);
	assert_int_equal(aw_batches_out(), 0);
}

/* The thread's own comes back to it from whichever thread gives it back, also behind a flush. */
static void batch_get__a_thread_has_its_own(void **state)
{
	struct aw_batch *own = aw_batch_get(), *other;

	(void)state;
	other = aw_batch_get();
	assert_non_null(other);
	assert_ptr_not_equal(own, other);
	aw_pool_flush();
	assert_int_equal(aw_batches_out(), 2);
	own->iov_count = own->iov_sent = 1;
	put_batch_elsewhere(own);
	assert_ptr_equal(aw_batch_get(), own);
	assert_int_equal(own->iov_count, 0);
	assert_int_equal(own->iov_sent, 0);
	aw_batch_put(other);
	aw_batch_put(own);
	aw_pool_flush();
	assert_int_equal(aw_batches_out(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(stage_get__bound, teardown),
		cmocka_unit_test_teardown(stage_get__takes_what_another_thread_has_left, teardown),
		cmocka_unit_test_teardown(stage_keep__large_waits_as_it_is, teardown),
		cmocka_unit_test_teardown(stage_keep__large_gives_the_last_place_back, teardown),
		cmocka_unit_test_teardown(stage_resume__rest_moves_with_it, teardown),
		cmocka_unit_test_teardown(stage_resume__long_rest_stays, teardown),
		cmocka_unit_test_teardown(batch_get__those_out_are_counted, teardown),
		cmocka_unit_test_teardown(batch_get__a_thread_has_its_own, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
