// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every verb that fails says why in errno, and one that answers with an error number says the same
// there: programs print the one or the other. What the header's inline functions refuse themselves is not ours.
#include "window.h"

#include <errno.h>

/* A pair whose b receives from an SRQ, with one of everything else that a verb can be called on. */
struct scene {
	struct fixture *f;
	struct pair p;
	struct ibv_srq *srq;
	struct ibv_mw *mw; /* bound to b's MR */
	struct ibv_cq_ex *cq_ex;
	struct ibv_td *td;
	struct ibv_pd *domain; /* of td */
	struct ibv_dm *dm;
	struct ibv_mr *dm_mr; /* of dm */
};

static void scene_make(struct scene *s, struct fixture *f)
{
	struct ibv_srq_init_attr srq = { .attr = { 2, 1, 0 } };
	struct ibv_cq_init_attr_ex cq = { .cqe = 4 };
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = f->pd };
	struct ibv_alloc_dm_attr dm = { .length = 64 };

	s->f = f;
	s->srq = ibv_create_srq(f->pd, &srq);
	pair_make(&s->p, f, s->srq);
	s->mw = window_make(&s->p, IBV_MW_TYPE_1);
	s->cq_ex = ibv_create_cq_ex(f->context, &cq);
	domain.td = s->td = ibv_alloc_td(f->context, &td);
	s->domain = ibv_alloc_parent_domain(f->context, &domain);
	s->dm = ibv_alloc_dm(f->context, &dm);
	s->dm_mr =
		ibv_reg_dm_mr(f->pd, s->dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(s->cq_ex);
	assert_non_null(s->domain);
	assert_non_null(s->dm_mr);
}

static void scene_destroy(struct scene *s)
{
	assert_int_equal(ibv_dereg_mr(s->dm_mr), 0);
	assert_int_equal(ibv_free_dm(s->dm), 0);
	assert_int_equal(ibv_dealloc_pd(s->domain), 0);
	assert_int_equal(ibv_dealloc_td(s->td), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq_ex)), 0);
	assert_int_equal(ibv_dealloc_mw(s->mw), 0);
	pair_destroy(&s->p);
	assert_int_equal(ibv_destroy_srq(s->srq), 0);
}

static int dealloc_pd_in_use(struct scene *s)
{
	return ibv_dealloc_pd(s->f->pd);
}

static int dealloc_td_in_use(struct scene *s)
{
	return ibv_dealloc_td(s->td);
}

static int dereg_mr_bound(struct scene *s)
{
	return ibv_dereg_mr(s->p.b.mr);
}

static int advise_mr_of_nothing(struct scene *s)
{
	return ibv_advise_mr(s->f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0);
}

static int advise_mr_of_a_bad_key(struct scene *s)
{
	struct ibv_sge sge = { .lkey = 0 };

	return ibv_advise_mr(s->f->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
}

static int advise_mr_otherwise(struct scene *s)
{
	return ibv_advise_mr(s->f->pd, (enum ibv_advise_mr_advice)99, 0, NULL, 1);
}

static int query_port_2(struct scene *s)
{
	struct ibv_port_attr attr;

	return ibv_query_port(s->f->context, 2, &attr);
}

static int query_gid_ex_with_flags(struct scene *s)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(s->f->context, 1, 0, &entry, 1);
}

static int query_gid_ex_of_port_2(struct scene *s)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(s->f->context, 2, 0, &entry, 0);
}

static int query_gid_table_with_flags(struct scene *s)
{
	struct ibv_gid_entry entry;

	return (int)-ibv_query_gid_table(s->f->context, &entry, 1, 1);
}

static int query_gid_table_of_none(struct scene *s)
{
	struct ibv_gid_entry entry;

	return (int)-ibv_query_gid_table(s->f->context, &entry, 0, 0);
}

static int destroy_comp_channel_in_use(struct scene *s)
{
	return ibv_destroy_comp_channel(s->f->channel);
}

static int resize_cq_to_none(struct scene *s)
{
	return ibv_resize_cq(s->f->cq, 0);
}

static int destroy_cq_in_use(struct scene *s)
{
	return ibv_destroy_cq(s->p.a.send_cq);
}

static int poll_cq_of_less_than_none(struct scene *s)
{
	struct ibv_wc wc;

	return -ibv_poll_cq(s->f->cq, -1, &wc);
}

static int start_poll_of_more(struct scene *s)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	return ibv_start_poll(s->cq_ex, &attr);
}

static int free_dm_in_use(struct scene *s)
{
	return ibv_free_dm(s->dm);
}

static int memcpy_to_dm_of_half_a_word(struct scene *s)
{
	return ibv_memcpy_to_dm(s->dm, 0, "ab", 2);
}

static int memcpy_from_dm_behind_it(struct scene *s)
{
	char word[4];

	return ibv_memcpy_from_dm(word, s->dm, 64, sizeof(word));
}

static int modify_qp_of_no_attribute(struct scene *s)
{
	struct ibv_qp_attr attr = { 0 };

	return ibv_modify_qp(s->p.a.qp, &attr, 1 << 30);
}

static int modify_qp_to_nowhere(struct scene *s)
{
	return qp_move(s->p.a.qp, IBV_QPS_SQE);
}

static int set_ece(struct scene *s)
{
	struct ibv_ece ece = { 0 };

	return ibv_set_ece(s->p.a.qp, &ece);
}

static int query_ece(struct scene *s)
{
	struct ibv_ece ece = { 0 };

	return ibv_query_ece(s->p.a.qp, &ece);
}

static int post_send_of_less_than_none(struct scene *s)
{
	struct ibv_send_wr wr = { .num_sge = -1 }, *bad;

	return ibv_post_send(s->p.a.qp, &wr, &bad);
}

static int post_recv_of_less_than_none(struct scene *s)
{
	struct ibv_recv_wr wr = { .num_sge = -1 }, *bad;

	return ibv_post_recv(s->p.a.qp, &wr, &bad);
}

static int post_srq_recv_of_less_than_none(struct scene *s)
{
	struct ibv_recv_wr wr = { .num_sge = -1 }, *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

static int wr_complete_of_no_window(struct scene *s)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(s->p.a.qp);
	struct ibv_mw_bind_info info = { 0 };

	ibv_wr_start(qp);
	ibv_wr_bind_mw(qp, NULL, 0, &info);
	return ibv_wr_complete(qp);
}

static int bind_mw_inline(struct scene *s)
{
	struct ibv_mw_bind bind = { 1, IBV_SEND_INLINE, window_info(&s->p.b, LEN) };

	return ibv_bind_mw(s->p.b.qp, s->mw, &bind);
}

static int modify_srq_to_none(struct scene *s)
{
	struct ibv_srq_attr attr = { 0 };

	return ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR);
}

static int modify_srq_limit_above_it(struct scene *s)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	return ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT);
}

static int destroy_srq_in_use(struct scene *s)
{
	return ibv_destroy_srq(s->srq);
}

static int attach_mcast_to_rc(struct scene *s)
{
	union ibv_gid gid = { 0 };

	return ibv_attach_mcast(s->p.a.qp, &gid, 0);
}

static int detach_mcast_from_rc(struct scene *s)
{
	union ibv_gid gid = { 0 };

	return ibv_detach_mcast(s->p.a.qp, &gid, 0);
}

#define NAMED(call) #call, call

static const struct {
	const char *name;
	int (*call)(struct scene *s);
	int err;
} numbers[] = {
	{ NAMED(dealloc_pd_in_use), EBUSY },
	{ NAMED(dealloc_td_in_use), EBUSY },
	{ NAMED(dereg_mr_bound), EBUSY },
	{ NAMED(advise_mr_of_nothing), EINVAL },
	{ NAMED(advise_mr_of_a_bad_key), ENOENT },
	{ NAMED(advise_mr_otherwise), ENOTSUP },
	{ NAMED(query_port_2), EINVAL },
	{ NAMED(query_gid_ex_with_flags), EOPNOTSUPP },
	{ NAMED(query_gid_ex_of_port_2), EINVAL },
	{ NAMED(query_gid_table_with_flags), EOPNOTSUPP },
	{ NAMED(query_gid_table_of_none), EINVAL },
	{ NAMED(destroy_comp_channel_in_use), EBUSY },
	{ NAMED(resize_cq_to_none), EINVAL },
	{ NAMED(destroy_cq_in_use), EBUSY },
	{ NAMED(poll_cq_of_less_than_none), EINVAL },
	{ NAMED(start_poll_of_more), EINVAL },
	{ NAMED(free_dm_in_use), EBUSY },
	{ NAMED(memcpy_to_dm_of_half_a_word), EINVAL },
	{ NAMED(memcpy_from_dm_behind_it), EINVAL },
	{ NAMED(modify_qp_of_no_attribute), EINVAL },
	{ NAMED(modify_qp_to_nowhere), EINVAL },
	{ NAMED(set_ece), EOPNOTSUPP },
	{ NAMED(query_ece), EOPNOTSUPP },
	{ NAMED(post_send_of_less_than_none), EINVAL },
	{ NAMED(post_recv_of_less_than_none), EINVAL },
	{ NAMED(post_srq_recv_of_less_than_none), EINVAL },
	{ NAMED(wr_complete_of_no_window), EINVAL },
	{ NAMED(bind_mw_inline), EINVAL },
	{ NAMED(modify_srq_to_none), EINVAL },
	{ NAMED(modify_srq_limit_above_it), EINVAL },
	{ NAMED(destroy_srq_in_use), EBUSY },
	{ NAMED(attach_mcast_to_rc), EOPNOTSUPP },
	{ NAMED(detach_mcast_from_rc), EOPNOTSUPP },
};

static void each_error_number_is_errno_too(void **state)
{
	struct scene s;
	int wrong = 0;

	scene_make(&s, *state);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int answer;

		errno = EXDEV; /* no verb's */
		answer = numbers[i].call(&s);
		if (answer == numbers[i].err && errno == numbers[i].err)
			continue;
		print_error("%s: answers %d with errno %d, not %d\n", numbers[i].name, answer,
			    errno, numbers[i].err);
		wrong++;
	}
	scene_destroy(&s);
	assert_int_equal(wrong, 0);
}

static int query_gid_of_port_2(struct scene *s)
{
	union ibv_gid gid;

	return ibv_query_gid(s->f->context, 2, 0, &gid);
}

static int query_gid_before_the_first(struct scene *s)
{
	union ibv_gid gid;

	return ibv_query_gid(s->f->context, 1, -1, &gid);
}

static int query_pkey_behind_the_last(struct scene *s)
{
	__be16 pkey;

	return ibv_query_pkey(s->f->context, 1, 1, &pkey);
}

static int get_pkey_index_of_none(struct scene *s)
{
	return ibv_get_pkey_index(s->f->context, 1, 1);
}

static int init_ah_of_no_header(struct scene *s)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { 0 };
	struct ibv_ah_attr attr;

	return ibv_init_ah_from_wc(s->f->context, 1, &wc, &grh, &attr);
}

static int get_cq_event_of_none(struct scene *s)
{
	struct ibv_cq *cq;
	void *context;

	return ibv_get_cq_event(s->f->channel, &cq, &context);
}

static void each_minus_one_has_its_errno(void **state)
{
	static const struct {
		int (*call)(struct scene *s);
		int err;
	} cases[] = {
		{ query_gid_of_port_2, EINVAL },	   { query_gid_before_the_first, EINVAL },
		{ query_pkey_behind_the_last, EINVAL },	   { get_pkey_index_of_none, EINVAL },
		{ init_ah_of_no_header, EPROTONOSUPPORT }, { get_cq_event_of_none, EAGAIN },
	};
	struct scene s = { .f = *state };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = EXDEV;
		assert_int_equal(cases[i].call(&s), -1);
		assert_int_equal(errno, cases[i].err);
	}
}

static void each_null_has_its_errno(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr qp = qp_attr(f);
	struct ibv_srq_init_attr srq = { 0 };
	struct ibv_ah_attr ah = { 0 };
	struct ibv_td_init_attr td = { .comp_mask = 1 };
	struct ibv_alloc_dm_attr dm = { 0 };
	struct ibv_parent_domain_init_attr domain = { 0 };
	struct ibv_qp *plain = qp_make(f);

	qp.qp_type = IBV_QPT_DRIVER;
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp(f->pd, &qp));
	FAILS_WITH(EINVAL, ibv_create_srq(f->pd, &srq));
	FAILS_WITH(EINVAL, ibv_create_cq(f->context, 0, NULL, NULL, 0));
	FAILS_WITH(EOPNOTSUPP, ibv_create_ah(f->pd, &ah));
	FAILS_WITH(EINVAL, ibv_reg_mr(f->pd, &qp, 1, IBV_ACCESS_REMOTE_WRITE));
	FAILS_WITH(EINVAL, ibv_alloc_td(f->context, &td));
	FAILS_WITH(EINVAL, ibv_alloc_dm(f->context, &dm));
	FAILS_WITH(EINVAL, ibv_alloc_parent_domain(f->context, &domain));
	FAILS_WITH(ENOENT, ibv_import_pd(f->context, UINT32_MAX));
	FAILS_WITH(ENOENT, ibv_import_dm(f->context, UINT32_MAX));
	FAILS_WITH(EINVAL, ibv_import_mr(f->pd, 0));
	FAILS_WITH(EBADF, ibv_import_device(-1));
	FAILS_WITH(EINVAL, ibv_open_device(NULL));
	FAILS_WITH(EINVAL, ibv_qp_to_qp_ex(plain));
	assert_int_equal(ibv_destroy_qp(plain), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(each_error_number_is_errno_too),
		WITH(each_minus_one_has_its_errno),
		WITH(each_null_has_its_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
