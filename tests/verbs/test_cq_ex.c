// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Extended CQs: their flags and attributes, their poll, their time stamps and the clock behind these.
#include "flusher.h"

#include "../lib/until.h"

#include <errno.h>
#include <time.h>

static struct ibv_cq_ex *extended_make(struct fixture *f, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4,
					    .wc_flags = IBV_WC_STANDARD_FLAGS | wc_flags,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &attr);

	assert_non_null(cq);
	return cq;
}

static void create_cq_ex__flags(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &attr);

	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	attr = (struct ibv_cq_init_attr_ex){ .cqe = 4, .comp_mask = 1 << 5 };
	FAILS_WITH(EOPNOTSUPP, ibv_create_cq_ex(f->context, &attr));
	attr = (struct ibv_cq_init_attr_ex){ .cqe = 4,
					     .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					     .flags = 1 << 2 };
	FAILS_WITH(EOPNOTSUPP, ibv_create_cq_ex(f->context, &attr));
	for (int i = 8; i <= 10; i++) { /* VLAN, flow tag, tag matching */
		attr = (struct ibv_cq_init_attr_ex){ .cqe = 4, .wc_flags = UINT64_C(1) << i };
		FAILS_WITH(EOPNOTSUPP, ibv_create_cq_ex(f->context, &attr));
	}
	attr = (struct ibv_cq_init_attr_ex){ .cqe = 0 };
	FAILS_WITH(EINVAL, ibv_create_cq_ex(f->context, &attr));
}

static void create_cq_ex__parent_domain(void **state)
{
	struct fixture *f = *state;
	struct ibv_parent_domain_init_attr domain = { .pd = f->pd };
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &domain);
	struct ibv_cq_ex *cq;

	assert_non_null(parent);
	FAILS_WITH(EINVAL, ibv_create_cq_ex(f->context, &attr));
	attr.parent_domain = f->pd;
	FAILS_WITH(EINVAL, ibv_create_cq_ex(f->context, &attr));
	attr.parent_domain = parent;
	cq = ibv_create_cq_ex(f->context, &attr);
	assert_non_null(cq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* What the QP posts is not lost with the CQE: it goes on for ever, and its CQ raises no event. */
static void create_cq_ex__ignores_an_overrun(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(extended_make(f, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
	struct ibv_qp *qp = flusher_on(f, cq);
	struct ibv_async_event event;
	struct ibv_wc wc[4];

	for (uint64_t i = 1; i <= 10; i++)
		complete(qp, i);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, 7 + i);
	complete(qp, 11);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 11);
	fd_make_nonblocking(f->context->async_fd);
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static uint64_t device_now(struct fixture *f)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(f->context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec;
}

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void query_rt_values__the_hosts_clock(void **state)
{
	struct fixture *f = *state;
	struct ibv_values_ex unknown = { .comp_mask = 1 << 1 };
	uint64_t before = clock_now(CLOCK_MONOTONIC_RAW), now = device_now(f);

	assert_in_range(now, before, clock_now(CLOCK_MONOTONIC_RAW));
	assert_int_equal(ibv_query_rt_values_ex(f->context, &unknown), 0);
	assert_int_equal(unknown.comp_mask, 0);
}

/* The stamp is of the completion, not of the poll. */
static void read_completion_ts__when_it_completed(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_ex *cq = extended_make(f, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
	struct ibv_qp *qp = flusher_on(f, ibv_cq_ex_to_cq(cq));
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t times[3], stamps[2];

	assert_null(cq->read_completion_wallclock_ns);
	for (uint64_t i = 0; i < 2; i++) {
		times[i] = device_now(f);
		complete(qp, i);
	}
	times[2] = device_now(f);
	until(device_now(f) > times[2]);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	stamps[0] = ibv_wc_read_completion_ts(cq);
	assert_int_equal(ibv_next_poll(cq), 0);
	stamps[1] = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	for (int i = 0; i < 2; i++)
		assert_in_range(stamps[i], times[i], times[i + 1]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static uint64_t wallclock_of_one(struct fixture *f, struct ibv_cq_ex *cq)
{
	struct ibv_qp *qp = flusher_on(f, ibv_cq_ex_to_cq(cq));
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t stamp;

	complete(qp, 1);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	stamp = ibv_wc_read_completion_wallclock_ns(cq);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return stamp;
}

/* Beside the other stamp it is computed from that one, and may miss the clock by what a lost CPU costs. */
static void read_completion_wallclock__the_wall_clock(void **state)
{
	const uint64_t second = 1000000000;
	struct fixture *f = *state;
	struct ibv_cq_ex *alone =
		extended_make(f, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0);
	struct ibv_cq_ex *both = extended_make(
		f,
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		0);
	uint64_t before = clock_now(CLOCK_REALTIME), stamp = wallclock_of_one(f, alone);

	assert_in_range(stamp, before, clock_now(CLOCK_REALTIME));
	before = clock_now(CLOCK_REALTIME);
	stamp = wallclock_of_one(f, both);
	assert_in_range(stamp, before - second, clock_now(CLOCK_REALTIME) + second);
}

static void start_poll__reads_one_by_one(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &cq_attr);
	struct ibv_poll_cq_attr poll_attr = { 0 }, bad = { .comp_mask = 1 };
	struct ibv_qp *qp = flusher_on(f, ibv_cq_ex_to_cq(cq));

	assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
	assert_int_equal(ibv_start_poll(cq, &bad), EINVAL);
	complete(qp, 1);
	complete(qp, 2);
	assert_int_equal(ibv_start_poll(cq, &poll_attr), 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	assert_int_equal(ibv_wc_read_slid(cq) | ibv_wc_read_sl(cq) | ibv_wc_read_src_qp(cq), 0);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(create_cq_ex__flags),
		WITH(create_cq_ex__parent_domain),
		WITH(create_cq_ex__ignores_an_overrun),
		WITH(query_rt_values__the_hosts_clock),
		WITH(read_completion_ts__when_it_completed),
		WITH(read_completion_wallclock__the_wall_clock),
		WITH(start_poll__reads_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
