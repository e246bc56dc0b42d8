// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SRQs: life, limits, posting and whose memory. Other receives from one are in test_connected.c.
#include "pair.h"

#include <errno.h>

static struct ibv_srq *srq_make(struct fixture *f, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .srq_context = f, .attr = { max_wr, max_sge, 0 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);

	if (srq) {
		assert_true(attr.attr.max_wr >= max_wr);
		assert_true(attr.attr.max_sge >= max_sge);
	}
	return srq;
}

static void create_srq__limits(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr dev;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	uint32_t wr, sge;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	wr = (uint32_t)dev.max_srq_wr;
	sge = (uint32_t)dev.max_srq_sge;
	srq = srq_make(f, wr, sge);
	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, f);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, wr);
	assert_int_equal(attr.max_sge, sge);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	FAILS_WITH(EINVAL, srq_make(f, wr + 1, 1));
	FAILS_WITH(EINVAL, srq_make(f, 1, sge + 1));
	FAILS_WITH(EINVAL, srq_make(f, 0, 1));
}

static void create_srq_ex__only_basic(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = f->pd,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(f->context, &attr);
	uint32_t number;

	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.srq_type = IBV_SRQT_XRC;
	FAILS_WITH(EOPNOTSUPP, ibv_create_srq_ex(f->context, &attr));
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TM;
	FAILS_WITH(EOPNOTSUPP, ibv_create_srq_ex(f->context, &attr));
	attr.comp_mask = 0;
	FAILS_WITH(EINVAL, ibv_create_srq_ex(f->context, &attr));
}

static void modify_srq__all_or_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq *srq = srq_make(f, 8, 1);
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 17 }, now;

	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, 8);
	assert_int_equal(now.srq_limit, 0);
	attr.srq_limit = 16;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_true(now.max_wr >= 16);
	assert_int_equal(now.srq_limit, 16);
	attr.max_wr = 15;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 0;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 2), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void modify_srq__both_shrink(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq *srq = srq_make(f, 8, 1);
	struct ibv_srq_attr attr = { .max_wr = 8, .srq_limit = 8 }, now;

	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	attr = (struct ibv_srq_attr){ .max_wr = 4, .srq_limit = 2 };
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &now), 0);
	assert_int_equal(now.max_wr, 4);
	assert_int_equal(now.srq_limit, 2);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void post_srq_recv__errors(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq *srq = srq_make(f, 2, 1);
	struct ibv_sge sge[2] = { { 0 } };
	struct ibv_recv_wr wr[3] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2, .next = &wr[2] },
				     { .wr_id = 3 } };
	struct ibv_recv_wr many = { .sg_list = sge, .num_sge = 2 };
	struct ibv_recv_wr *bad = NULL;

	assert_int_equal(ibv_post_srq_recv(srq, &many, &bad), EINVAL);
	assert_ptr_equal(bad, &many);
	many.num_sge = -1;
	assert_int_equal(ibv_post_srq_recv(srq, &many, &bad), EINVAL);
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void modify_srq__cannot_shrink_below_what_is_posted(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq *srq = srq_make(f, 2, 1);
	struct ibv_recv_wr wr[2] = { { .next = &wr[1] } }, *bad;
	struct ibv_srq_attr attr = { .max_wr = 1 };

	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 2;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void destroy_srq__busy_while_a_qp_uses_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq *srq = srq_make(f, 2, 1);
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_qp *qp;

	attr.srq = srq;
	attr.cap.max_recv_wr = UINT32_MAX; /* ignored */
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* What b gets for a receive whose memory is registered in `own`, from an SRQ of `pd`. */
static enum ibv_wc_status receive_status(struct fixture *f, struct ibv_pd *pd, struct ibv_pd *own)
{
	struct ibv_srq_init_attr attr = { .attr = { 1, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);
	enum ibv_wc_status status;
	struct ibv_sge from, into;
	struct ibv_recv_wr recv = { .sg_list = &into, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1 }, *bad;
	struct ibv_mr *mr;
	struct pair p;

	pair_make(&p, f, srq);
	mr = ibv_reg_mr(own, p.b.memory, PAIR_MEMORY, IBV_ACCESS_LOCAL_WRITE);
	into = (struct ibv_sge){ (uintptr_t)p.b.memory, 10, mr->lkey };
	from = side_sge(&p.a, 0, 10);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(p.a.qp, &send, &bad), 0);
	status = wc_wait(p.b.recv_cq).status;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_destroy(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	return status;
}

static void post_srq_recv__memory_is_of_the_srq_s_pd(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *other = ibv_alloc_pd(f->context);

	assert_int_equal(receive_status(f, other, other), IBV_WC_SUCCESS);
	assert_int_equal(receive_status(f, other, f->pd), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(receive_status(f, f->pd, other), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* A parent domain stands for its PD. */
static void post_srq_recv__memory_is_of_the_srq_s_parent_domain(void **state)
{
	struct fixture *f = *state;
	struct ibv_parent_domain_init_attr attr = { .pd = ibv_alloc_pd(f->context) };
	struct ibv_pd *domain = ibv_alloc_parent_domain(f->context, &attr);

	assert_int_equal(receive_status(f, domain, attr.pd), IBV_WC_SUCCESS);
	assert_int_equal(receive_status(f, domain, f->pd), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_pd(attr.pd), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(create_srq__limits),
		WITH(create_srq_ex__only_basic),
		WITH(modify_srq__all_or_nothing),
		WITH(modify_srq__both_shrink),
		WITH(post_srq_recv__errors),
		WITH(modify_srq__cannot_shrink_below_what_is_posted),
		WITH(destroy_srq__busy_while_a_qp_uses_it),
		WITH(post_srq_recv__memory_is_of_the_srq_s_pd),
		WITH(post_srq_recv__memory_is_of_the_srq_s_parent_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
