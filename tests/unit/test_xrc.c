// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An XRC domain: SRQs by their numbers, and an SRQ that goes while a message is received into it.
#include "net/cq/xrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
	NUMBERS = 3 * AW_XRC_BUCKETS, /* several in each bucket */
};

static struct aw_xrcd xrcd;
static struct aw_cq cq;
static const char pds[3];
static const struct aw_sge no_sges[1];

static int setup(void **state)
{
	(void)state;
	assert_int_equal(aw_xrcd_init(&xrcd), 0);
	return aw_cq_init(&cq, 4, NULL, NULL);
}

static int teardown(void **state)
{
	(void)state;
	aw_xrcd_fini(&xrcd);
	aw_cq_fini(&cq);
	return 0;
}

static struct aw_xrc_srq *join(struct aw_srq *srq, uint32_t number, const void *pd)
{
	struct aw_xrc_srq *joined = NULL;

	assert_int_equal(aw_srq_init(srq, pd, 4, 1), 0);
	assert_int_equal(aw_xrc_join(&xrcd, number, srq, &cq, &joined), 0);
	return joined;
}

static void leave(struct aw_xrc_srq *joined, struct aw_srq *srq)
{
	aw_xrc_leave(&xrcd, joined);
	aw_srq_fini(srq);
}

static enum aw_error take(uint32_t number, struct aw_xrc_srq **held)
{
	struct aw_rwqe recv;

	return aw_xrc_take(&xrcd, number, &recv, held);
}

static void complete(struct aw_xrc_srq *held, uint64_t wr_id)
{
	struct aw_cq_entry entry = { .cqe.wr_id = wr_id, .queue = AW_RQ };

	aw_xrc_complete(held, &entry);
}

static void take__by_number(void **state)
{
	static struct aw_srq srqs[NUMBERS];
	struct aw_xrc_srq *joined[NUMBERS], *held = NULL;

	(void)state;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		joined[i] = join(&srqs[i], 1000 + i, &pds[0]);
		assert_int_equal(aw_srq_post(&srqs[i], i, no_sges, 0), 0);
	}
	assert_int_equal(take(999, &held), AW_E_DDP_QN);
	assert_int_equal(take(1000 + NUMBERS, &held), AW_E_DDP_QN);
	assert_null(held);
	for (uint32_t i = 0; i < NUMBERS; i++) {
		assert_int_equal(take(1000 + i, &held), AW_OK);
		assert_ptr_equal(held, joined[i]);
		aw_xrc_put(held);
		held = NULL;
		assert_int_equal(take(1000 + i, &held), AW_E_DDP_NO_BUFFER);
		assert_null(held);
	}
	/* From the middle of each bucket first. */
	for (uint32_t i = 0; i < NUMBERS; i++) {
		uint32_t at = (i + AW_XRC_BUCKETS) % NUMBERS;

		leave(joined[at], &srqs[at]);
		assert_int_equal(take(1000 + at, &held), AW_E_DDP_QN);
	}
}

static void leave__drops_what_is_not_polled(void **state)
{
	struct aw_cq_entry polled[4];
	struct aw_xrc_srq *a, *b, *held = NULL;
	struct aw_srq of_a, of_b;

	(void)state;
	a = join(&of_a, 1, &pds[0]);
	b = join(&of_b, 2, &pds[0]);
	assert_int_equal(aw_srq_post(&of_a, 7, no_sges, 0), 0);
	assert_int_equal(aw_srq_post(&of_b, 8, no_sges, 0), 0);
	assert_int_equal(take(1, &held), AW_OK);
	complete(held, 7);
	aw_xrc_put(held);
	assert_int_equal(take(2, &held), AW_OK);
	complete(held, 8);
	aw_xrc_put(held);
	leave(a, &of_a);
	assert_int_equal(aw_cq_take(&cq, polled, 4), 1);
	assert_int_equal(polled[0].cqe.wr_id, 8);
	leave(b, &of_b);
}

static void leave__while_a_message_is_received(void **state)
{
	struct aw_cq_entry polled[4];
	struct aw_xrc_srq *a, *held = NULL;
	struct aw_srq of_a;

	(void)state;
	a = join(&of_a, 1, &pds[0]);
	assert_int_equal(aw_srq_post(&of_a, 7, no_sges, 0), 0);
	assert_int_equal(take(1, &held), AW_OK);
	leave(a, &of_a);
	complete(held, 7);
	aw_xrc_put(held);
	assert_int_equal(aw_cq_take(&cq, polled, 4), 0);
}

static void take__cq_that_has_overflowed(void **state)
{
	struct aw_xrc_srq *a, *held = NULL;
	struct aw_srq of_a;

	(void)state;
	a = join(&of_a, 1, &pds[0]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(aw_srq_post(&of_a, 7, no_sges, 0), 0);
	assert_int_equal(take(1, &held), AW_OK);
	for (int i = 0; i < 5; i++)
		complete(held, 7);
	aw_xrc_put(held);
	assert_int_equal(take(1, &held), AW_E_LOCAL_CATASTROPHIC);
	leave(a, &of_a);
}

static void has_pd__while_an_srq_has_it(void **state)
{
	struct aw_xrc_srq *joined[12];
	struct aw_srq srqs[12];

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		/* More PDs than there was room for at first. */
		joined[i] = join(&srqs[i], i, i < 4 ? &pds[i % 2] : (const void *)&srqs[i]);
		assert_true(aw_xrc_has_pd(&xrcd, &pds[0]));
	}
	assert_false(aw_xrc_has_pd(&xrcd, &pds[2]));
	leave(joined[0], &srqs[0]);
	assert_true(aw_xrc_has_pd(&xrcd, &pds[0]));
	leave(joined[2], &srqs[2]);
	assert_false(aw_xrc_has_pd(&xrcd, &pds[0]));
	assert_true(aw_xrc_has_pd(&xrcd, &srqs[11]));
	for (uint32_t i = 0; i < 12; i++)
		if (i != 0 && i != 2)
			leave(joined[i], &srqs[i]);
	assert_false(aw_xrc_has_pd(&xrcd, &srqs[11]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(take__by_number, setup, teardown),
		cmocka_unit_test_setup_teardown(leave__drops_what_is_not_polled, setup, teardown),
		cmocka_unit_test_setup_teardown(leave__while_a_message_is_received, setup,
						teardown),
		cmocka_unit_test_setup_teardown(take__cq_that_has_overflowed, setup, teardown),
		cmocka_unit_test_setup_teardown(has_pd__while_an_srq_has_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
