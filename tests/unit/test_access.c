// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a QP grants its peer at all (qp_access_flags): each kind of request with its right taken
// away, whatever the MR allows.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TARGET 64 /* aligned, for the atomic */

static void post(struct core_end *end, enum aw_op op, uint32_t len)
{
	struct aw_swqe *wqe = core_wr(end, op, 0, len);

	assert_non_null(wqe);
	wqe->stag = CORE_STAG;
	wqe->to = CORE_IOVA + TARGET;
	if (op == AW_OP_FLUSH)
		wqe->access = RDMAP_FLUSH_GLOBAL;
	aw_qp_post(&end->qp);
}

/* How b, which grants only this, finds a's WR. */
static enum aw_error verdict(uint32_t granted, enum aw_op op, uint32_t len)
{
	struct core_pair *pair = core_pair_ready(1448);
	enum aw_error err;

	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	pair->a.qp.stream.placement = pair->b.qp.stream.placement = true;
	pair->b.qp.remote_access = granted;
	post(&pair->a, op, len);
	core_pump(pair);
	err = pair->b.qp.error;
	if (err) {
		assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_QP_RIGHTS);
		assert_int_equal(pair->b.qp.refusal.access, AW_ACCESS_REMOTE & ~granted);
		assert_int_equal(pair->b.qp.state, AW_QP_TERMINATE);
		assert_int_equal(pair->a.qp.peer_error, err);
		assert_int_equal(pair->b.placed + pair->b.executed, 0);
	} else {
		assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_NONE);
		core_expect_sq(&pair->a, op, AW_WC_SUCCESS);
	}
	core_pair_destroy(pair);
	return err;
}

static void qp_access__each_right_alone(void **state)
{
	static const struct {
		enum aw_op op;
		uint32_t right;
	} kinds[] = {
		{ AW_OP_WRITE, AW_ACCESS_REMOTE_WRITE },
		{ AW_OP_READ, AW_ACCESS_REMOTE_READ },
		{ AW_OP_CMP_SWAP, AW_ACCESS_REMOTE_ATOMIC },
		{ AW_OP_FETCH_ADD, AW_ACCESS_REMOTE_ATOMIC },
		{ AW_OP_ATOMIC_WRITE, AW_ACCESS_REMOTE_WRITE },
		{ AW_OP_FLUSH, AW_ACCESS_FLUSH_GLOBAL },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		assert_int_equal(verdict(kinds[i].right, kinds[i].op, 8), AW_OK);
		assert_int_equal(verdict(AW_ACCESS_REMOTE & ~kinds[i].right, kinds[i].op, 8),
				 AW_E_RDMAP_ACCESS);
	}
}

/* RFC 5041 5.2, RFC 5040 5.2.1: nothing is checked of what has no octets, as an RTR has none. */
static void qp_access__empty_messages_need_none(void **state)
{
	(void)state;
	assert_int_equal(verdict(0, AW_OP_WRITE, 0), AW_OK);
	assert_int_equal(verdict(0, AW_OP_READ, 0), AW_OK);
}

/* Where the STag is wrong that is what the peer hears. */
static void qp_access__after_the_stag(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG ^ 1, CORE_IOVA);

	(void)state;
	end->qp.remote_access = 0;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_E_DDP_TAGGED_STAG);
	core_end_destroy(end);
}

/* What the program takes back while a long Read is being answered ends that too. */
static void qp_access__taken_back_meanwhile(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	post(&pair->a, AW_OP_READ, 3000);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_true(core_tx_one(&pair->b));
	pair->b.qp.remote_access = AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_ATOMIC;
	core_pump(pair);
	assert_int_equal(pair->b.qp.error, AW_E_RDMAP_ACCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

static void qp_init__grants_all(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	assert_int_equal(end->qp.remote_access,
			 AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ | AW_ACCESS_REMOTE_ATOMIC |
				 AW_ACCESS_FLUSH_GLOBAL | AW_ACCESS_FLUSH_PERSISTENT);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_access__each_right_alone),
		cmocka_unit_test(qp_access__empty_messages_need_none),
		cmocka_unit_test(qp_access__after_the_stag),
		cmocka_unit_test(qp_access__taken_back_meanwhile),
		cmocka_unit_test(qp_init__grants_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
