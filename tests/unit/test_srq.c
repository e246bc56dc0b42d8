// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shared receive queue: bounds, order, the limit event, resize.
#include "net/cq/srq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

static struct aw_srq srq;
static struct aw_channel async;
static int object;

static int setup(void **state)
{
	(void)state;
	if (aw_srq_init(&srq, NULL, 4, 2) != 0 || aw_channel_init(&async) != 0)
		return -1;
	srq.async = &async;
	aw_source_init(&srq.limit_event, &object, 7);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	aw_srq_fini(&srq);
	aw_channel_fini(&async);
	return 0;
}

static int post(uint64_t wr_id)
{
	const struct aw_sge sge[2] = { { .addr = wr_id, .len = 1 }, { .addr = wr_id + 1 } };

	return aw_srq_post(&srq, wr_id, sge, 2);
}

static void fill(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(post(i), 0);
}

static void assert_take(uint64_t wr_id)
{
	struct aw_rwqe recv;

	assert_true(aw_srq_take(&srq, &recv));
	assert_int_equal(recv.wr_id, wr_id);
	assert_int_equal(recv.sge_count, 2);
	assert_int_equal(recv.sge[0].addr, wr_id);
}

static void srq_init__bounds(void **state)
{
	struct aw_srq s;

	(void)state;
	assert_int_equal(aw_srq_init(&s, NULL, 0, 1), EINVAL);
	assert_int_equal(aw_srq_init(&s, NULL, 1, 0), EINVAL);
	assert_int_equal(aw_srq_init(&s, NULL, AW_WR_MAX + 1, 1), EINVAL);
	assert_int_equal(aw_srq_init(&s, NULL, 1, AW_SGE_MAX + 1), EINVAL);
	assert_int_equal(aw_srq_init(&s, NULL, AW_WR_MAX, AW_SGE_MAX), 0);
	aw_srq_fini(&s);
}

static void srq_post__full_and_too_many_sges(void **state)
{
	struct aw_sge sge[3] = { { .addr = 0 } };
	struct aw_rwqe recv;

	(void)state;
	assert_int_equal(aw_srq_post(&srq, 0, sge, 3), EINVAL);
	assert_false(aw_srq_take(&srq, &recv));
	fill(4);
	assert_int_equal(post(4), ENOMEM);
	assert_take(0);
	assert_int_equal(post(4), 0);
	for (uint64_t i = 1; i <= 4; i++)
		assert_take(i);
	assert_false(aw_srq_take(&srq, &recv));
}

static void srq_set_limit__one_event(void **state)
{
	(void)state;
	assert_int_equal(aw_srq_set_limit(&srq, 5), EINVAL);
	fill(4);
	assert_int_equal(aw_srq_set_limit(&srq, 3), 0);
	assert_take(0); /* three are left: not fewer */
	assert_int_equal(srq.limit_event.pending, 0);
	assert_take(1);
	assert_int_equal(srq.limit_event.pending, 1);
	assert_take(2);
	assert_int_equal(srq.limit_event.pending, 1);
	assert_int_equal(srq.limit, 0);

	void *got;
	int kind;

	assert_int_equal(aw_channel_read(&async, &got, &kind), 0);
	assert_ptr_equal(got, &object);
	assert_int_equal(kind, 7);
}

static void srq_set_limit__zero_disarms(void **state)
{
	(void)state;
	fill(1);
	assert_int_equal(aw_srq_set_limit(&srq, 1), 0);
	assert_int_equal(aw_srq_set_limit(&srq, 0), 0);
	assert_take(0);
	assert_int_equal(srq.limit_event.pending, 0);
}

static void srq_resize__keeps_what_is_posted(void **state)
{
	(void)state;
	fill(3);
	assert_take(0);
	assert_int_equal(post(3), 0);
	assert_int_equal(aw_srq_resize(&srq, 2), EINVAL);
	assert_int_equal(aw_srq_resize(&srq, 0), EINVAL);
	assert_int_equal(aw_srq_resize(&srq, AW_WR_MAX + 1), EINVAL);
	assert_int_equal(aw_srq_resize(&srq, 3), 0);
	assert_int_equal(post(4), ENOMEM);
	assert_int_equal(aw_srq_resize(&srq, 9), 0);
	assert_int_equal(post(4), 0);
	for (uint64_t i = 1; i <= 4; i++)
		assert_take(i);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(srq_init__bounds),	TEST(srq_post__full_and_too_many_sges),
		TEST(srq_set_limit__one_event),		TEST(srq_set_limit__zero_disarms),
		TEST(srq_resize__keeps_what_is_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
