// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows of the driver: what may be bound, whose a binding is, how it ends, and that the
// memory is free when it has.
#include "net/mr/mw.h"

#include "net/mr/mrtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ALL (AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE | AW_ACCESS_MW_BIND)
#define RW (AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ)

enum {
	LEN = 4096,
	ROUNDS = 2000,
};

static uint8_t memory[LEN];
static int pd, other_pd;

/* Two QPs of a PD, one of another, an MR that may be bound, a window of each type. */
struct scene {
	struct aw_mw_user qp, sibling, stranger;
	struct aw_mr mr;
	struct aw_mw *type1, *type2;
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->qp = (struct aw_mw_user){ .pd = &pd, .core = &s->qp };
	s->sibling = (struct aw_mw_user){ .pd = &pd, .core = &s->sibling };
	s->stranger = (struct aw_mw_user){ .pd = &other_pd, .core = &s->stranger };
	s->mr = (struct aw_mr){
		.access = ALL,
		.iova = 0x10000,
		.len = LEN,
		.host = memory,
		.pd = &pd,
	};
	assert_int_equal(aw_mr_add(&s->mr), 0);
	assert_int_equal(aw_mw_create(&pd, false, &s->type1), 0);
	assert_int_equal(aw_mw_create(&pd, true, &s->type2), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	aw_mw_destroy(s->type1);
	aw_mw_destroy(s->type2);
	assert_int_equal(s->mr.windows, 0);
	aw_mr_remove(&s->mr);
	free(s);
	return 0;
}

static struct aw_swqe wr_to(const struct scene *s, const struct aw_mw *mw, uint64_t offset,
			    uint64_t len)
{
	return (struct aw_swqe){
		.op = AW_OP_BIND_MW,
		.stag = mw->stag,
		.swap = mw->handle,
		.inv_or_imm = s->mr.stag,
		.to = s->mr.iova + offset,
		.compare_add = len,
		.access = RW,
	};
}

static enum aw_wc_status bind_to(struct scene *s, struct aw_mw *mw, uint64_t offset, uint64_t len)
{
	struct aw_swqe wr = wr_to(s, mw, offset, len);

	return aw_mw_bind(&s->qp, &wr);
}

/* What the core finds when a peer names the STag. */
static enum aw_error verdict(uint32_t stag, const struct aw_mw_user *qp, uint32_t access,
			     uint64_t to, uint64_t len)
{
	const struct aw_mr *mr = aw_mr_get(stag);
	enum aw_error err = aw_mr_check(mr, qp->pd, qp->core, access, to, len);

	if (mr)
		aw_mr_put(mr);
	return err;
}

static void mw_create__not_bound(void **state)
{
	struct scene *s = *state;

	assert_null(aw_mr_get(s->type1->stag));
	assert_null(aw_mr_get(s->type2->stag));
	assert_false(aw_stag_same_index(s->type1->stag, s->type2->stag));
	assert_false(aw_stag_same_index(s->type1->stag, s->mr.stag));
}

static void mw_bind__opens_that_part_and_those_rights(void **state)
{
	struct scene *s = *state;
	uint64_t first = s->mr.iova + 100;
	uint32_t stag = s->type2->stag;
	const struct aw_mr *mr;

	assert_int_equal(bind_to(s, s->type2, 100, 50), AW_WC_SUCCESS);
	mr = aw_mr_get(stag);
	assert_ptr_equal(aw_mr_at(mr, first), memory + 100);
	aw_mr_put(mr);
	assert_int_equal(verdict(stag, &s->qp, RW, first, 50), AW_OK);
	assert_int_equal(verdict(stag, &s->qp, RW, first, 51), AW_E_RDMAP_BOUNDS);
	assert_int_equal(verdict(stag, &s->qp, RW, first - 1, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(verdict(stag, &s->qp, RW, first + 49, 1), AW_OK);
	assert_int_equal(verdict(stag, &s->qp, RW, first + 50, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(verdict(stag, &s->qp, AW_ACCESS_REMOTE_ATOMIC, first, 8),
			 AW_E_RDMAP_ACCESS);
	assert_int_equal(verdict(stag, &s->qp, 0, first, 1), AW_E_RDMAP_ACCESS);
	assert_int_equal(verdict(stag ^ 1, &s->qp, RW, first, 1), AW_E_RDMAP_STAG);
}

static void mw_bind__zero_based(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type1, 100, 50);
	const struct aw_mr *mr;

	wr.access |= AW_ACCESS_ZERO_BASED;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_SUCCESS);
	assert_int_equal(verdict(wr.stag, &s->qp, RW, 0, 50), AW_OK);
	assert_int_equal(verdict(wr.stag, &s->qp, RW, 1, 50), AW_E_RDMAP_BOUNDS);
	mr = aw_mr_get(wr.stag);
	assert_ptr_equal(aw_mr_at(mr, 3), memory + 103);
	assert_int_equal(mr->access & AW_ACCESS_ZERO_BASED, 0);
	aw_mr_put(mr);
}

static void mw_bind__range_of_the_mr(void **state)
{
	struct scene *s = *state;

	assert_int_equal(bind_to(s, s->type1, 0, LEN), AW_WC_SUCCESS);
	assert_int_equal(bind_to(s, s->type1, LEN - 1, 1), AW_WC_SUCCESS);
	assert_int_equal(bind_to(s, s->type1, 0, LEN + 1), AW_WC_MW_BIND_ERR);
	assert_int_equal(bind_to(s, s->type1, LEN - 1, 2), AW_WC_MW_BIND_ERR);
	assert_int_equal(bind_to(s, s->type1, LEN, 1), AW_WC_MW_BIND_ERR);
	assert_int_equal(bind_to(s, s->type1, (uint64_t)-1, 1), AW_WC_MW_BIND_ERR);
	assert_int_equal(bind_to(s, s->type1, 0, UINT64_MAX), AW_WC_MW_BIND_ERR);
	/* A refused bind leaves the one before. */
	assert_int_equal(verdict(s->type1->stag, &s->qp, RW, s->mr.iova + LEN - 1, 1), AW_OK);
}

/* The MR's side of the bargain, right by right. */
static void mw_bind__rights_of_the_mr(void **state)
{
	static const struct {
		uint32_t mr;
		uint8_t window;
		enum aw_wc_status status;
	} cases[] = {
		{ ALL, AW_ACCESS_REMOTE & ~AW_ACCESS_FLUSH, AW_WC_SUCCESS },
		{ ALL & ~(uint32_t)AW_ACCESS_MW_BIND, 0, AW_WC_MW_BIND_ERR },
		{ AW_ACCESS_MW_BIND, 0, AW_WC_SUCCESS },
		{ AW_ACCESS_MW_BIND, AW_ACCESS_REMOTE_READ, AW_WC_SUCCESS },
		{ AW_ACCESS_MW_BIND, AW_ACCESS_REMOTE_WRITE, AW_WC_MW_BIND_ERR },
		{ AW_ACCESS_MW_BIND, AW_ACCESS_REMOTE_ATOMIC, AW_WC_MW_BIND_ERR },
		{ AW_ACCESS_MW_BIND | AW_ACCESS_LOCAL_WRITE, RW, AW_WC_SUCCESS },
	};
	struct scene *s = *state;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct aw_swqe wr = wr_to(s, s->type1, 0, 10);

		wr.access = cases[i].window;
		s->mr.access = cases[i].mr;
		assert_int_equal(aw_mw_bind(&s->qp, &wr), cases[i].status);
	}
}

static void mw_bind__wrong_names(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type1, 0, 10), good = wr;

	wr.stag = s->type2->stag;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	wr = good;
	wr.inv_or_imm ^= 1;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	wr = good;
	wr.swap = AW_MW_MAX;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(aw_mw_bind(&s->stranger, &good), AW_WC_MW_BIND_ERR);
	s->mr.pd = &other_pd;
	assert_int_equal(aw_mw_bind(&s->qp, &good), AW_WC_MW_BIND_ERR);
	s->mr.pd = &pd;
	assert_int_equal(aw_mw_bind(&s->qp, &good), AW_WC_SUCCESS);
	/* Nor is a window what another is bound to. */
	wr = wr_to(s, s->type2, 0, 10);
	wr.inv_or_imm = good.stag;
	wr.access = 0;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
}

static void mw_bind__of_a_window_that_is_gone(void **state)
{
	struct scene *s = *state;
	struct aw_mw *mw;
	struct aw_swqe wr;

	assert_int_equal(aw_mw_create(&pd, false, &mw), 0);
	wr = wr_to(s, mw, 0, 10);
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_SUCCESS);
	aw_mw_destroy(mw);
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	assert_null(aw_mr_get(wr.stag));
}

static void mw_bind__type_1_any_time_and_for_every_qp(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type1, 0, 10);
	uint32_t old = wr.stag;

	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_SUCCESS);
	assert_int_equal(verdict(old, &s->sibling, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(verdict(old, &s->stranger, RW, s->mr.iova, 10), AW_E_RDMAP_NOT_ASSOCIATED);
	wr = wr_to(s, s->type1, 20, 10);
	assert_int_equal(aw_stag_rekey(old, &wr.stag), 0);
	assert_int_equal(aw_mw_bind(&s->sibling, &wr), AW_WC_SUCCESS);
	assert_null(aw_mr_get(old));
	assert_int_equal(verdict(wr.stag, &s->qp, RW, s->mr.iova + 20, 10), AW_OK);
	assert_int_equal(s->mr.windows, 1);
}

static void mw_bind__type_2_once_and_for_its_qp(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type2, 20, 10);

	assert_int_equal(bind_to(s, s->type2, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(verdict(wr.stag, &s->sibling, RW, s->mr.iova, 10),
			 AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(aw_mw_bind(&s->sibling, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(verdict(wr.stag, &s->qp, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(s->mr.windows, 1);
}

static void mw_bind__length_0_unbinds_type_1(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type1, 0, 0);

	wr.inv_or_imm = 0; /* it needs no MR */
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_SUCCESS);
	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_SUCCESS);
	assert_null(aw_mr_get(wr.stag));
	assert_int_equal(s->mr.windows, 0);
	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_SUCCESS);
}

static void mw_bind__length_0_is_no_bind_of_type_2(void **state)
{
	struct scene *s = *state;
	struct aw_swqe wr = wr_to(s, s->type2, 0, 0);

	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	wr.inv_or_imm = 0;
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(bind_to(s, s->type2, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(aw_mw_bind(&s->qp, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(aw_mw_bind(&s->sibling, &wr), AW_WC_MW_BIND_ERR);
	assert_int_equal(verdict(wr.stag, &s->qp, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(s->mr.windows, 1);
}

static void mw_invalidate__by_its_qp_alone(void **state)
{
	struct scene *s = *state;
	uint32_t stag = s->type2->stag;

	assert_int_equal(aw_mw_invalidate(&s->qp, stag), AW_E_RDMAP_STAG);
	assert_int_equal(bind_to(s, s->type2, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(aw_mw_invalidate(&s->sibling, stag), AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(aw_mw_invalidate(&s->stranger, stag), AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(aw_mw_invalidate(&s->qp, stag ^ 1), AW_E_RDMAP_STAG);
	assert_int_equal(verdict(stag, &s->qp, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(aw_mw_invalidate(&s->qp, stag), AW_OK);
	assert_null(aw_mr_get(stag));
	assert_int_equal(s->mr.windows, 0);
	assert_int_equal(aw_mw_invalidate(&s->qp, stag), AW_E_RDMAP_STAG);
	assert_int_equal(bind_to(s, s->type2, 5, 10), AW_WC_SUCCESS);
}

static void mw_invalidate__nothing_but_type_2(void **state)
{
	struct scene *s = *state;

	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(aw_mw_invalidate(&s->qp, s->type1->stag), AW_E_RDMAP_CANNOT_INVALIDATE);
	assert_int_equal(aw_mw_invalidate(&s->qp, s->mr.stag), AW_E_RDMAP_CANNOT_INVALIDATE);
	assert_int_equal(aw_mw_invalidate(&s->stranger, s->mr.stag), AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(verdict(s->type1->stag, &s->qp, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(verdict(s->mr.stag, &s->qp, RW, s->mr.iova, 10), AW_OK);
}

static void mw_forget_qp__ends_its_own_only(void **state)
{
	struct scene *s = *state;
	struct aw_mw *mine, *theirs;
	struct aw_swqe wr;

	assert_int_equal(aw_mw_create(&pd, true, &mine), 0);
	assert_int_equal(aw_mw_create(&pd, true, &theirs), 0);
	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(bind_to(s, s->type2, 0, 10), AW_WC_SUCCESS);
	assert_int_equal(bind_to(s, mine, 0, 10), AW_WC_SUCCESS);
	wr = wr_to(s, theirs, 0, 10);
	assert_int_equal(aw_mw_bind(&s->sibling, &wr), AW_WC_SUCCESS);
	aw_mw_forget_qp(&s->qp);
	assert_null(aw_mr_get(s->type2->stag));
	assert_null(aw_mr_get(mine->stag));
	assert_int_equal(verdict(s->type1->stag, &s->sibling, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(verdict(theirs->stag, &s->sibling, RW, s->mr.iova, 10), AW_OK);
	assert_int_equal(s->mr.windows, 2);
	assert_int_equal(bind_to(s, mine, 0, 10), AW_WC_SUCCESS);
	aw_mw_destroy(mine);
	aw_mw_destroy(theirs);
	assert_true(LIST_EMPTY(&s->qp.windows));
}

static void mw_forbid__while_none_is_bound(void **state)
{
	struct scene *s = *state;

	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_SUCCESS);
	assert_false(aw_mw_forbid(&s->mr));
	assert_int_equal(bind_to(s, s->type1, 0, 0), AW_WC_SUCCESS);
	assert_true(aw_mw_forbid(&s->mr));
	assert_int_equal(bind_to(s, s->type1, 0, 10), AW_WC_MW_BIND_ERR);
	s->mr.windows = 0; /* for the teardown */
}

static void mw_create__as_many_as_may_be(void **state)
{
	struct aw_mw **mws = calloc(AW_MW_MAX, sizeof(struct aw_mw *));
	struct scene *s = *state;
	struct aw_mw *more;
	uint32_t have = 2; /* the scene's */

	for (uint32_t i = have; i < AW_MW_MAX; i++)
		assert_int_equal(aw_mw_create(&pd, i % 2, &mws[i]), 0);
	assert_int_equal(aw_mw_create(&pd, true, &more), ENOMEM);
	assert_int_equal(bind_to(s, mws[AW_MW_MAX - 1], 0, 1), AW_WC_SUCCESS);
	aw_mw_destroy(mws[have]);
	assert_int_equal(aw_mw_create(&pd, true, &mws[have]), 0);
	for (uint32_t i = have; i < AW_MW_MAX; i++)
		aw_mw_destroy(mws[i]);
	free(mws);
}

struct race {
	struct scene *scene;
	uint8_t *octets; /* two areas of AREA; the window is over one of them */
	_Atomic uint32_t stag;
	_Atomic bool stop;
	_Atomic uint32_t placed;
};

#define AREA 256

/* A QP's placements: all of the window, with the mark of the area. */
static void *place(void *arg)
{
	struct race *r = arg;

	while (!r->stop) {
		const struct aw_mr *mr = aw_mr_get(r->stag);

		if (!mr)
			continue;
		memset(mr->host, 0xff, mr->len);
		r->placed++;
		aw_mr_put(mr);
	}
	return NULL;
}

static struct aw_mr *area_add(const struct race *r, uint32_t which)
{
	struct aw_mr *mr = malloc(sizeof(*mr));

	*mr = r->scene->mr;
	mr->host = r->octets + which * AREA;
	mr->len = AREA;
	assert_int_equal(aw_mr_add(mr), 0);
	return mr;
}

/* No window is at it: its memory is ours. */
static void area_remove(struct aw_mr *mr)
{
	memset(mr->host, 0, AREA);
	for (int i = 0; i < AREA; i++)
		assert_int_equal(mr->host[i], 0);
	assert_true(aw_mw_forbid(mr));
	aw_mr_remove(mr);
	free(mr);
}

/* The window goes back and forth between two MRs, which live only while it is there. */
static void mw_bind__ends_the_placement_before(void **state)
{
	struct race r = { .scene = *state, .octets = calloc(2, AREA) };
	struct aw_swqe wr = wr_to(r.scene, r.scene->type1, 0, AREA);
	struct aw_mr *mr = NULL, *old;
	pthread_t thread;

	pthread_create(&thread, NULL, place, &r);
	for (uint32_t i = 0; i < ROUNDS || r.placed < 100; i++) {
		old = mr;
		mr = area_add(&r, i % 2);
		wr.inv_or_imm = mr->stag;
		assert_int_equal(aw_stag_rekey(wr.stag, &wr.stag), 0);
		assert_int_equal(aw_mw_bind(&r.scene->qp, &wr), AW_WC_SUCCESS);
		r.stag = wr.stag;
		if (old)
			area_remove(old);
	}
	wr.compare_add = 0;
	assert_int_equal(aw_mw_bind(&r.scene->qp, &wr), AW_WC_SUCCESS);
	area_remove(mr);
	r.stop = true;
	pthread_join(thread, NULL);
	free(r.octets);
}

/* Each of many threads is a QP that binds the one window. */
static void *bind_often(void *arg)
{
	struct race *r = arg;
	struct aw_mw_user *qp = calloc(1, sizeof(*qp));
	struct aw_swqe wr = wr_to(r->scene, r->scene->type1, 0, AREA);
	uintptr_t failed = 0;

	qp->pd = &pd;
	qp->core = qp;
	for (int i = 0; i < ROUNDS; i++) {
		wr.stag ^= (uint32_t)i & 0xff;
		wr.compare_add = i % 5 ? AREA : 0;
		failed += aw_mw_bind(qp, &wr) != AW_WC_SUCCESS;
	}
	free(qp);
	return (void *)failed;
}

static void mw_bind__of_one_window_by_many(void **state)
{
	struct race r = { .scene = *state };
	pthread_t threads[4];
	void *failed;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, bind_often, &r);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(bind_to(*state, r.scene->type1, 0, 0), AW_WC_SUCCESS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mw_create__not_bound),
		TEST(mw_bind__opens_that_part_and_those_rights),
		TEST(mw_bind__zero_based),
		TEST(mw_bind__range_of_the_mr),
		TEST(mw_bind__rights_of_the_mr),
		TEST(mw_bind__wrong_names),
		TEST(mw_bind__of_a_window_that_is_gone),
		TEST(mw_bind__type_1_any_time_and_for_every_qp),
		TEST(mw_bind__type_2_once_and_for_its_qp),
		TEST(mw_bind__length_0_unbinds_type_1),
		TEST(mw_bind__length_0_is_no_bind_of_type_2),
		TEST(mw_invalidate__by_its_qp_alone),
		TEST(mw_invalidate__nothing_but_type_2),
		TEST(mw_forget_qp__ends_its_own_only),
		TEST(mw_forbid__while_none_is_bound),
		TEST(mw_create__as_many_as_may_be),
		TEST(mw_bind__ends_the_placement_before),
		TEST(mw_bind__of_one_window_by_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
