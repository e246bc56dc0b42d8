// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that posts may hold locks which a consumer's handler takes: only ib_core's handlers run as it releases the QP.
#include "kmod/qp/qp.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct awk_qp qp;
static struct awk_cq send_cq, recv_cq;
static struct ib_wc *pool;
static unsigned int handled;

static void on_completion(struct ib_cq *cq, void *context)
{
	(void)cq;
	(void)context;
	handled++;
}

static void on_work(struct work_struct *work)
{
	(void)work;
}

static int qp_make(void **state)
{
	(void)state;
	memset(&qp, 0, sizeof(qp));
	memset(&send_cq, 0, sizeof(send_cq));
	memset(&recv_cq, 0, sizeof(recv_cq));
	spin_lock_init(&qp.lock);
	INIT_WORK(&qp.work, on_work);
	qp.send_cq = &send_cq;
	qp.recv_cq = &recv_cq;
	send_cq.base.comp_handler = recv_cq.base.comp_handler = on_completion;
	handled = 0;
	return 0;
}

static int qp_end(void **state)
{
	(void)state;
	cancel_work_sync(&qp.work);
	return 0;
}

/* Releases the QP when so much has become due. */
static void release(void (*unlock)(struct awk_qp *qp), u32 due)
{
	awk_qp_lock(&qp);
	qp.due |= due;
	unlock(&qp);
}

static void awk_qp_unlock_posted__a_consumers_handler_is_the_workers(void **state)
{
	(void)state;
	release(awk_qp_unlock_posted, AWK_DUE_SEND_CQ);
	assert_int_equal(handled, 0);
	assert_true(qp.work.pending);
	release(awk_qp_unlock, 0);
	assert_int_equal(handled, 1);
	release(awk_qp_unlock, 0);
	assert_int_equal(handled, 1);
}

static void awk_qp_unlock_posted__a_pools_handler_runs(void **state)
{
	(void)state;
	send_cq.base.wc = (struct ib_wc *)&pool;
	release(awk_qp_unlock_posted, AWK_DUE_SEND_CQ);
	assert_int_equal(handled, 1);
	assert_false(qp.work.pending);
}

/* With one that is not a pool's, neither runs: their order stays. */
static void awk_qp_unlock_posted__one_of_each(void **state)
{
	(void)state;
	send_cq.base.wc = (struct ib_wc *)&pool;
	release(awk_qp_unlock_posted, AWK_DUE_SEND_CQ | AWK_DUE_RECV_CQ);
	assert_int_equal(handled, 0);
	assert_true(qp.work.pending);
	release(awk_qp_unlock, 0);
	assert_int_equal(handled, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			awk_qp_unlock_posted__a_consumers_handler_is_the_workers, qp_make, qp_end),
		cmocka_unit_test_setup_teardown(awk_qp_unlock_posted__a_pools_handler_runs, qp_make,
						qp_end),
		cmocka_unit_test_setup_teardown(awk_qp_unlock_posted__one_of_each, qp_make, qp_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
