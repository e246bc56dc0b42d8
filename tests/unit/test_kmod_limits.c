// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// As many CQs and SRQs as the device offers, and no more. The last but one of them stands for all before it.
#include "kmod/cq/cq.h"
#include "kmod/cq/srq.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct awk_device dev;
static struct awk_ucontext uctx;
static struct ib_pd pd;

static int cq_make(struct awk_cq *cq, u32 cqe)
{
	struct ib_udata udata = { .uctx = &uctx.base, .outlen = 64 };
	struct ib_cq_init_attr attr = { .cqe = cqe };

	memset(cq, 0, sizeof(*cq));
	cq->base.device = &dev.base;
	return awk_cq_create(&cq->base, &attr, &udata);
}

static int srq_make(struct awk_srq *srq, u32 wr_max)
{
	struct ib_udata udata = { .uctx = &uctx.base, .outlen = 64 };
	struct ib_srq_init_attr attr = { .attr = { .max_wr = wr_max, .max_sge = 1 } };

	memset(srq, 0, sizeof(*srq));
	srq->base.device = &dev.base;
	srq->base.pd = &pd;
	return awk_srq_create(&srq->base, &attr, &udata);
}

static void awk_cq_create__as_many_as_offered(void **state)
{
	struct awk_cq cq, other;

	(void)state;
	dev.cqs.counter = AWK_OBJECT_MAX - 1;
	assert_int_equal(cq_make(&other, 0), -EINVAL); /* is not counted */
	assert_int_equal(cq_make(&cq, 4), 0);
	assert_int_equal(cq_make(&other, 4), -ENOMEM);
	awk_cq_destroy(&cq.base, NULL);
	assert_int_equal(cq_make(&cq, 4), 0);
	awk_cq_destroy(&cq.base, NULL);
	assert_int_equal(dev.cqs.counter, AWK_OBJECT_MAX - 1);
}

static void awk_srq_create__as_many_as_offered(void **state)
{
	struct awk_srq srq, other;

	(void)state;
	dev.srqs.counter = AWK_OBJECT_MAX - 1;
	assert_int_equal(srq_make(&other, 0), -EINVAL);
	assert_int_equal(srq_make(&srq, 4), 0);
	assert_int_equal(srq_make(&other, 4), -ENOMEM);
	awk_srq_destroy(&srq.base, NULL);
	assert_int_equal(srq_make(&srq, 4), 0);
	awk_srq_destroy(&srq.base, NULL);
	assert_int_equal(dev.srqs.counter, AWK_OBJECT_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(awk_cq_create__as_many_as_offered),
		cmocka_unit_test(awk_srq_create__as_many_as_offered),
	};

	pd.device = &dev.base;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
