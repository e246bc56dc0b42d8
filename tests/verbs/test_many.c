// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// As many objects as the device promises, and one more.
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>

static void alloc_pd__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;
	struct ibv_pd **pds;
	int count = 0;

	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(struct ibv_pd *));
	while (count < attr.max_pd - 1 && (pds[count] = ibv_alloc_pd(f->context)))
		count++;
	assert_int_equal(count, attr.max_pd - 1); /* the fixture has one */
	FAILS_WITH(ENOMEM, ibv_alloc_pd(f->context));
	while (count--)
		assert_int_equal(ibv_dealloc_pd(pds[count]), 0);
	free(pds);
}

static void create_cq__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr dev;
	struct ibv_cq **cqs;
	int count = 0;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	cqs = calloc((size_t)dev.max_cq, sizeof(struct ibv_cq *));
	while (count < dev.max_cq - 1 && (cqs[count] = ibv_create_cq(f->context, 1, NULL, NULL, 0)))
		count++;
	assert_int_equal(count, dev.max_cq - 1); /* the fixture has one */
	FAILS_WITH(ENOMEM, ibv_create_cq(f->context, 1, NULL, NULL, 0));
	while (count--)
		assert_int_equal(ibv_destroy_cq(cqs[count]), 0);
	free(cqs);
}

static void create_qp__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_device_attr dev;
	struct ibv_qp **qps;
	int count = 0;

	attr.cap = (struct ibv_qp_cap){ 1, 1, 1, 1, 0 };
	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	qps = calloc((size_t)dev.max_qp, sizeof(struct ibv_qp *));
	while (count < dev.max_qp && (qps[count] = ibv_create_qp(f->pd, &attr)))
		count++;
	assert_int_equal(count, dev.max_qp);
	FAILS_WITH(ENOMEM, ibv_create_qp(f->pd, &attr));
	while (count--)
		assert_int_equal(ibv_destroy_qp(qps[count]), 0);
	free(qps);
}

static void create_srq__as_many_as_promised(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { 1, 1, 0 } };
	struct fixture *f = *state;
	struct ibv_device_attr dev;
	struct ibv_srq **srqs;
	int count = 0;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	srqs = calloc((size_t)dev.max_srq, sizeof(struct ibv_srq *));
	while (count < dev.max_srq && (srqs[count] = ibv_create_srq(f->pd, &attr)))
		count++;
	assert_int_equal(count, dev.max_srq);
	FAILS_WITH(ENOMEM, ibv_create_srq(f->pd, &attr));
	while (count--)
		assert_int_equal(ibv_destroy_srq(srqs[count]), 0);
	free(srqs);
}

/* Of no octets: what is counted is the STags. */
static void reg_mr__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr dev;
	struct ibv_mr **mrs;
	int count = 0;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	mrs = calloc((size_t)dev.max_mr, sizeof(struct ibv_mr *));
	while (count < dev.max_mr && (mrs[count] = ibv_reg_mr(f->pd, NULL, 0, 0)))
		count++;
	assert_int_equal(count, dev.max_mr);
	FAILS_WITH(ENOMEM, ibv_reg_mr(f->pd, NULL, 0, 0));
	/* Windows have STags of their own. */
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);

	assert_non_null(mw);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	while (count--)
		assert_int_equal(ibv_dereg_mr(mrs[count]), 0);
	free(mrs);
}

static void alloc_mw__as_many_as_promised(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr dev;
	struct ibv_mw **mws;
	int count = 0;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	mws = calloc((size_t)dev.max_mw, sizeof(struct ibv_mw *));
	while (count < dev.max_mw && (mws[count] = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2)))
		count++;
	assert_int_equal(count, dev.max_mw);
	FAILS_WITH(ENOMEM, ibv_alloc_mw(f->pd, IBV_MW_TYPE_2));
	while (count--)
		assert_int_equal(ibv_dealloc_mw(mws[count]), 0);
	free(mws);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(alloc_pd__as_many_as_promised),  WITH(create_cq__as_many_as_promised),
		WITH(create_qp__as_many_as_promised), WITH(reg_mr__as_many_as_promised),
		WITH(alloc_mw__as_many_as_promised),  WITH(create_srq__as_many_as_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
