// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What asks for the acknowledgement of a WR that is not signalled.
#include "../lib/core_pair.h"
#include "core/ack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A local operation completes behind what went out before it, which has to be acknowledged for its sake. */
static void ack__local_one_behind_an_unsignalled(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

	(void)state;
	wqe->flags = 0;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_mr_add(&pair->a, 0x99, 0, 0, 1);
	core_wr(&pair->a, AW_OP_LOCAL_INV, 0, 0)->stag = 0x99;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_LOCAL_INV, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* A queue that is drained has no later WR to ask for it. */
static void ack__halted_behind_an_unsignalled(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

	(void)state;
	wqe->flags = 0;
	pair->a.qp.sq_halts = true;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_true(aw_qp_is_drained(&pair->a.qp)); /* not begun */
	pair->a.qp.sq_halts = false;
	core_tx(&pair->a);
	pair->a.qp.sq_halts = true;
	assert_false(aw_qp_is_drained(&pair->a.qp));
	assert_true(aw_ack_is_awaited(&pair->a.qp));
	core_pump(pair);
	assert_true(aw_qp_is_drained(&pair->a.qp));
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__local_one_behind_an_unsignalled),
		cmocka_unit_test(ack__halted_behind_an_unsignalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
