// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows over two connected QPs: what binds them, and what the peer may then do.
#include "window.h"

#include <errno.h>
#include <string.h>

static void test_use(struct pair *p, struct ibv_mw *mw)
{
	window_expect_works(p, mw->rkey);
}

static void bind_mw__the_peer_writes_and_reads(void **state)
{
	window_each_type(state, test_use);
}

static void test_end(struct pair *p, struct ibv_mw *mw)
{
	assert_int_equal(window_read(p, mw->rkey, AT + LEN - 1, 1), IBV_WC_SUCCESS);
	assert_int_equal(window_read(p, mw->rkey, AT + LEN - 1, 2), IBV_WC_REM_ACCESS_ERR);
}

static void test_start(struct pair *p, struct ibv_mw *mw)
{
	assert_int_equal(window_read(p, mw->rkey, AT, 1), IBV_WC_SUCCESS);
	assert_int_equal(window_read(p, mw->rkey, AT - 1, 1), IBV_WC_REM_ACCESS_ERR);
}

/* The MR goes on at both ends. */
static void bind_mw__bounds_are_the_window_s(void **state)
{
	window_each_type(state, test_end);
	window_each_type(state, test_start);
}

static void bind_mw__rights_are_the_window_s(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;

	pair_make(&p, *state, NULL);
	info = window_info(&p.b, LEN);
	info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_1);
	assert_int_equal(window_bind_type1(&p.b, mw, info), 0);
	window_expect_bound(&p.b);
	assert_int_equal(window_read(&p, mw->rkey, AT, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

static void bind_mw__zero_based(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;

	pair_make(&p, *state, NULL);
	info = window_info(&p.b, LEN);
	info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_1);
	assert_int_equal(window_bind_type1(&p.b, mw, info), 0);
	window_expect_bound(&p.b);
	p.b.memory[AT + 3] = 33;
	side_post(&p.a, IBV_WR_RDMA_READ, mw->rkey, 3, 1);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(p.a.memory[0], 33);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

static void test_no_sge(struct pair *p, struct ibv_mw *mw)
{
	struct ibv_sge sge = { (uintptr_t)p->b.memory + AT, 10, mw->rkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	window_expect_works(p, mw->rkey); /* b may send now */
	side_recv(&p->a, 1, 0, 100);
	assert_int_equal(ibv_post_send(p->b.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p->b.send_cq).status, IBV_WC_LOC_PROT_ERR);
}

static void bind_mw__rkey_is_no_lkey(void **state)
{
	window_each_type(state, test_no_sge);
}

static void bind_mw__type_1_rebound_gets_another_key(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	uint32_t old;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_1);
	old = mw->rkey;
	assert_int_equal(window_bind_type1(&p.b, mw, window_info(&p.b, LEN)), 0);
	window_expect_bound(&p.b);
	assert_int_not_equal(mw->rkey, old);
	assert_int_equal(mw->rkey >> 8, old >> 8);
	window_expect_works(&p, mw->rkey);
	assert_int_equal(window_read(&p, old, AT, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

static void bind_mw__type_1_length_0_unbinds(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	uint32_t old;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_1);
	old = mw->rkey;
	assert_int_equal(window_bind_type1(&p.b, mw, (struct ibv_mw_bind_info){ 0 }), 0);
	window_expect_bound(&p.b);
	assert_int_equal(window_read(&p, old, AT, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

static void bind_mw__type_1_serves_every_qp(void **state)
{
	struct pair p, other;
	struct ibv_mw *mw;

	pair_make(&p, *state, NULL);
	pair_make(&other, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_1);
	side_post(&other.a, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)p.b.memory + AT, 1);
	assert_int_equal(wc_wait(other.a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
	pair_destroy(&other);
}

static void post_send__type_2_serves_its_qp_alone(void **state)
{
	struct pair p, other;
	struct ibv_mw *mw;

	pair_make(&p, *state, NULL);
	pair_make(&other, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	side_post(&other.a, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)p.b.memory + AT, 1);
	assert_int_equal(wc_wait(other.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
	window_expect_works(&p, mw->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
	pair_destroy(&other);
}

/* b's bind of a type 2 window comes to this; what the window was before, if bound, it still is. */
static void expect_bind_refused(struct pair *p, struct ibv_mw *mw, uint32_t rkey,
				struct ibv_mw_bind_info info)
{
	struct ibv_wc wc;

	assert_int_equal(window_bind_type2(&p->b, mw, rkey, info), 0);
	wc = wc_wait(p->b.send_cq);
	assert_int_equal(wc.status, IBV_WC_MW_BIND_ERR);
	assert_int_equal(wc.wr_id, 52);
	assert_int_equal(qp_state(p->b.qp), IBV_QPS_ERR);
}

static void refused(void **state, void (*spoil)(struct ibv_mw_bind_info *info, uint32_t *rkey))
{
	struct ibv_mw_bind_info info;
	struct ibv_mw *mw;
	struct pair p;
	uint32_t rkey;

	pair_make(&p, *state, NULL);
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_2);
	rkey = mw->rkey;
	info = window_info(&p.b, LEN);
	spoil(&info, &rkey);
	expect_bind_refused(&p, mw, rkey, info);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

/* Length 0 unbinds type 1 alone; type 2 has its invalidation (IBTA o10-37.2.40). */
static void spoil_length(struct ibv_mw_bind_info *info, uint32_t *rkey)
{
	(void)rkey;
	info->length = 0;
}

static void spoil_mr(struct ibv_mw_bind_info *info, uint32_t *rkey)
{
	(void)rkey;
	*info = (struct ibv_mw_bind_info){ 0 };
}

static void spoil_range(struct ibv_mw_bind_info *info, uint32_t *rkey)
{
	(void)rkey;
	info->length = PAIR_MEMORY - AT + 1;
}

static void post_send__bind_refused(void **state)
{
	refused(state, spoil_length);
	refused(state, spoil_mr);
	refused(state, spoil_range);
}

static void post_send__bind_of_another_pd_refused(void **state)
{
	struct pair p;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;

	pair_make(&p, *state, NULL);
	pd = ibv_alloc_pd(p.f->context);
	mr = ibv_reg_mr(pd, p.b.memory, PAIR_MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	info = window_info(&p.b, LEN);
	info.mr = mr;
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_2);
	expect_bind_refused(&p, mw, mw->rkey, info);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	assert_int_equal(window_bind_type1(&p.b, mw, window_info(&p.b, LEN)), EPERM);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pair_destroy(&p);
}

static void post_send__bound_type_2_is_not_rebound(void **state)
{
	struct pair p;
	struct ibv_mw *mw;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	expect_bind_refused(&p, mw, ibv_inc_rkey(mw->rkey), window_info(&p.b, LEN));
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

static void alloc_mw__unknown_type(void **state)
{
	struct fixture *f = *state;

	FAILS_WITH(EINVAL, ibv_alloc_mw(f->pd, (enum ibv_mw_type)0));
	FAILS_WITH(EINVAL, ibv_alloc_mw(f->pd, (enum ibv_mw_type)3));
}

static void bind_mw__what_no_wr_is_made_of(void **state)
{
	struct pair p;
	struct ibv_mw *type1, *type2;
	struct ibv_mw_bind_info good, info;
	struct ibv_mw_bind inline_bind;
	uint32_t rkey;

	pair_make(&p, *state, NULL);
	type1 = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_1);
	type2 = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_2);
	rkey = type1->rkey;
	good = info = window_info(&p.b, LEN);
	info.mw_access_flags = IBV_ACCESS_MW_BIND;
	assert_int_equal(window_bind_type1(&p.b, type1, info), EINVAL);
	assert_int_equal(window_bind_type2(&p.b, type2, type2->rkey, info), EINVAL);
	inline_bind = (struct ibv_mw_bind){ 51, IBV_SEND_INLINE, good };
	assert_int_equal(ibv_bind_mw(p.b.qp, type1, &inline_bind), EINVAL);
	assert_int_equal(type1->rkey, rkey);
	assert_int_equal(window_bind_type1(&p.b, type2, good), EINVAL);
	assert_int_equal(window_bind_type2(&p.b, type1, rkey, good), EINVAL);
	assert_int_equal(window_bind_type2(&p.b, NULL, rkey, good), EINVAL);
	info = (struct ibv_mw_bind_info){ .length = 1 };
	assert_int_equal(window_bind_type2(&p.b, type2, type2->rkey, info), EINVAL);
	info = (struct ibv_mw_bind_info){ .addr = 1 };
	assert_int_equal(window_bind_type2(&p.b, type2, type2->rkey, info), EINVAL);
	good.mw_access_flags |= IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE;
	assert_int_equal(window_bind_type2(&p.b, type2, type2->rkey, good), 0);
	window_expect_bound(&p.b);
	assert_int_equal(ibv_dealloc_mw(type1), 0);
	assert_int_equal(ibv_dealloc_mw(type2), 0);
	pair_destroy(&p);
}

/* As from an adapter: handle is the kernel's number for a window, which no WR needs. */
static void test_handle(struct pair *p, struct ibv_mw *mw)
{
	struct ibv_mw_bind_info info = window_info(&p->b, LEN);
	struct ibv_mw *fresh = ibv_alloc_mw(p->b.mr->pd, mw->type);

	fresh->handle = ~fresh->handle;
	if (mw->type == IBV_MW_TYPE_1)
		assert_int_equal(window_bind_type1(&p->b, fresh, info), 0);
	else
		assert_int_equal(window_bind_type2(&p->b, fresh, fresh->rkey, info), 0);
	window_expect_bound(&p->b);
	window_expect_works(p, fresh->rkey);
	assert_int_equal(ibv_dealloc_mw(fresh), 0);
}

static void bind_mw__whatever_the_handle_says(void **state)
{
	window_each_type(state, test_handle);
}

static void bind_mw__before_the_connection(void **state)
{
	struct fixture *f = *state;
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { 0 };
	struct ibv_qp *qp = qp_make(f);

	assert_int_equal(ibv_bind_mw(qp, mw, &bind), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void bind_mw__full_queue(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	uint32_t rkey;

	pair_make(&p, *state, NULL);
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_1);
	for (int i = 0; i < WR_MAX; i++)
		assert_int_equal(window_bind_type1(&p.b, mw, window_info(&p.b, LEN)), 0);
	rkey = mw->rkey;
	assert_int_equal(window_bind_type1(&p.b, mw, window_info(&p.b, LEN)), ENOMEM);
	assert_int_equal(mw->rkey, rkey);
	for (int i = 0; i < WR_MAX; i++)
		window_expect_bound(&p.b);
	window_expect_works(&p, rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

/* Programs pass a number of their own: its lowest 8 bits are the key, the index is the window's. */
static void post_send__type_2_takes_the_key_alone(void **state)
{
	struct ibv_mw *mws[2];
	struct pair p;

	pair_make(&p, *state, NULL);
	for (int i = 0; i < 2; i++) {
		uint32_t index;

		mws[i] = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_2);
		index = mws[i]->rkey >> 8;
		assert_int_equal(window_bind_type2(&p.b, mws[i], 0x4a5, window_info(&p.b, LEN)), 0);
		window_expect_bound(&p.b);
		assert_int_equal(mws[i]->rkey, index << 8 | 0xa5);
		window_expect_works(&p, mws[i]->rkey);
	}
	assert_int_equal(ibv_dealloc_mw(mws[0]), 0);
	assert_int_equal(ibv_dealloc_mw(mws[1]), 0);
	pair_destroy(&p);
}

/* What the program writes into the window's rkey itself changes no index either. */
static void wr_bind_mw__takes_the_key_alone(void **state)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	struct pair p;
	uint32_t index;

	pair_make(&p, *state, NULL);
	mw = ibv_alloc_mw(p.f->pd, IBV_MW_TYPE_2);
	index = mw->rkey >> 8;
	mw->rkey = 7;
	info = window_info(&p.b, LEN);
	qp = ibv_qp_to_qp_ex(p.b.qp);
	ibv_wr_start(qp);
	qp->wr_id = 52;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp, mw, 0x3c, &info);
	ibv_wr_set_sge(qp, p.b.mr->lkey, 1, 1); /* of which a bind has none */
	assert_int_equal(ibv_wr_complete(qp), 0);
	window_expect_bound(&p.b);
	assert_int_equal(mw->rkey, index << 8 | 0x3c);
	window_expect_works(&p, mw->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

/* Nothing was posted, and nothing bound: the window has the rkey that it had. */
static void wr_bind_mw__of_a_list_that_is_not_posted(void **state)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *qp;
	struct ibv_mw *mw;
	struct pair p;
	uint32_t rkey;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	rkey = mw->rkey;
	info = window_info(&p.b, LEN);
	qp = ibv_qp_to_qp_ex(p.b.qp);
	for (int aborts = 0; aborts < 2; aborts++) {
		ibv_wr_start(qp);
		ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(rkey), &info);
		if (aborts) {
			ibv_wr_abort(qp);
		} else {
			ibv_wr_bind_mw(qp, NULL, rkey, &info);
			assert_int_equal(ibv_wr_complete(qp), EINVAL);
		}
		assert_int_equal(mw->rkey, rkey);
	}
	window_expect_works(&p, mw->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

/* Bound, told of and closed in one list, as servers do it. */
static void wr_bind_mw__before_the_send_that_tells(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	struct ibv_qp_ex *qp;
	struct ibv_mw_bind_info info;
	struct ibv_sge sge;
	uint32_t rkey;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	window_expect_works(&p, mw->rkey); /* b may send from now on */
	info = window_info(&p.b, LEN);
	rkey = ibv_inc_rkey(mw->rkey);
	memcpy(p.b.memory, &rkey, sizeof(rkey));
	sge = side_sge(&p.b, 0, sizeof(rkey));
	side_recv(&p.a, 1, 2000, 100);
	qp = ibv_qp_to_qp_ex(p.b.qp);
	ibv_wr_start(qp);
	qp->wr_flags = 0;
	ibv_wr_local_inv(qp, mw->rkey);
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_wait(p.a.recv_cq).byte_len, sizeof(rkey));
	memcpy(&rkey, p.a.memory + 2000, sizeof(rkey));
	window_expect_works(&p, rkey);
	ibv_wr_start(qp);
	ibv_wr_bind_mw(qp, NULL, rkey, &info);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(bind_mw__the_peer_writes_and_reads),
		WITH(bind_mw__bounds_are_the_window_s),
		WITH(bind_mw__rights_are_the_window_s),
		WITH(bind_mw__zero_based),
		WITH(bind_mw__rkey_is_no_lkey),
		WITH(bind_mw__type_1_rebound_gets_another_key),
		WITH(bind_mw__type_1_length_0_unbinds),
		WITH(bind_mw__type_1_serves_every_qp),
		WITH(post_send__type_2_serves_its_qp_alone),
		WITH(post_send__bind_refused),
		WITH(post_send__bind_of_another_pd_refused),
		WITH(post_send__bound_type_2_is_not_rebound),
		WITH(post_send__type_2_takes_the_key_alone),
		WITH(wr_bind_mw__takes_the_key_alone),
		WITH(wr_bind_mw__of_a_list_that_is_not_posted),
		WITH(alloc_mw__unknown_type),
		WITH(bind_mw__what_no_wr_is_made_of),
		WITH(bind_mw__whatever_the_handle_says),
		WITH(bind_mw__before_the_connection),
		WITH(bind_mw__full_queue),
		WITH(wr_bind_mw__before_the_send_that_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
