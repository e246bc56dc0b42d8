// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the core keeps of a peer's request that it refuses (core/refusal.h): each cause, of each kind of request.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define STAG 0x6200
#define AT 4096 /* of the MR in mem */
#define LEN 64
#define IOVA ((uint64_t)CORE_IOVA + AT)

/* What is changed of b's MR, which has all rights, or of its QP. */
enum change {
	NOTHING,
	OTHER_PD,
	OTHER_QP,
	NO_RIGHTS,
	QP_NO_RIGHTS,
	GONE_MEMORY,
};

struct row {
	enum change change;
	uint32_t stag;
	uint64_t to;
	uint32_t len; /* of a Write and a Read */
	enum aw_refusal_cause cause;
};

static const struct row rows[] = {
	{ NOTHING, STAG ^ 1, IOVA, 8, AW_REFUSAL_STAG },
	{ OTHER_PD, STAG, IOVA, 8, AW_REFUSAL_PD },
	{ OTHER_QP, STAG, IOVA, 8, AW_REFUSAL_WINDOW },
	{ NO_RIGHTS, STAG, IOVA, 8, AW_REFUSAL_MR_RIGHTS },
	{ QP_NO_RIGHTS, STAG, IOVA, 8, AW_REFUSAL_QP_RIGHTS },
	{ NOTHING, STAG, IOVA + LEN - 7, 8, AW_REFUSAL_BOUNDS },
	{ NOTHING, STAG, IOVA - 1, 8, AW_REFUSAL_BOUNDS },
	{ NOTHING, STAG, UINT64_MAX - 3, 8, AW_REFUSAL_BOUNDS },
	{ GONE_MEMORY, STAG, IOVA, 8, AW_REFUSAL_UNMAPPED },
};

static void change_make(struct core_end *end, struct aw_mr *mr, enum change change)
{
	static const char other_qp;

	switch (change) {
	case NOTHING:
		break;
	case OTHER_PD:
		mr->pd = &core_other_pd;
		break;
	case OTHER_QP:
		mr->qp = &other_qp;
		break;
	case NO_RIGHTS:
		mr->access = AW_ACCESS_LOCAL_WRITE;
		break;
	case QP_NO_RIGHTS:
		end->qp.remote_access = 0;
		break;
	case GONE_MEMORY:
		end->gone = end->mem + AT;
		break;
	}
}

static void expect_refusal(const struct row *row, enum aw_op op, uint32_t access)
{
	struct core_pair *pair = core_pair_ready(1448);
	const struct aw_access_refusal *refusal = &pair->b.qp.refusal;
	struct aw_swqe *wqe;

	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	pair->a.qp.stream.placement = pair->b.qp.stream.placement = true;
	change_make(&pair->b, core_mr_add(&pair->b, STAG, ~0u, AT, LEN), row->change);
	wqe = core_wr(&pair->a, op, 0, row->len);
	assert_non_null(wqe);
	wqe->stag = row->stag;
	wqe->to = row->to;
	if (op == AW_OP_FLUSH) {
		wqe->access = RDMAP_FLUSH_TYPES;
		wqe->compare_add = row->len;
	}
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_int_equal(pair->b.qp.state, AW_QP_TERMINATE);
	assert_int_equal(refusal->cause, row->cause);
	assert_int_equal(refusal->access, access);
	assert_int_equal(refusal->stag, row->stag);
	assert_int_equal(refusal->to, row->to);
	assert_int_equal(refusal->len, row->len);
	assert_int_equal(refusal->start, row->cause == AW_REFUSAL_STAG ? 0 : IOVA);
	assert_int_equal(refusal->size, row->cause == AW_REFUSAL_STAG ? 0 : LEN);
	core_pair_destroy(pair);
}

static void refusal__each_cause(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_refusal(&rows[i], AW_OP_WRITE, AW_ACCESS_REMOTE_WRITE);
		expect_refusal(&rows[i], AW_OP_READ, AW_ACCESS_REMOTE_READ);
		expect_refusal(&rows[i], AW_OP_FETCH_ADD, AW_ACCESS_REMOTE_ATOMIC);
		expect_refusal(&rows[i], AW_OP_ATOMIC_WRITE, AW_ACCESS_REMOTE_WRITE);
		/* Whether the memory is there is msync's to find. */
		if (rows[i].change != GONE_MEMORY)
			expect_refusal(&rows[i], AW_OP_FLUSH, AW_ACCESS_FLUSH);
	}
}

static void refusal__unaligned_atomic(void **state)
{
	const struct row row = { NOTHING, STAG, IOVA + 4, 8, AW_REFUSAL_UNALIGNED };

	(void)state;
	expect_refusal(&row, AW_OP_CMP_SWAP, AW_ACCESS_REMOTE_ATOMIC);
	expect_refusal(&row, AW_OP_ATOMIC_WRITE, AW_ACCESS_REMOTE_WRITE);
}

/* The MR goes while its bytes are on their way: what is refused is the rest of the Read. */
static void refusal__mr_gone_while_read(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);
	const struct aw_access_refusal *refusal = &pair->b.qp.refusal;
	struct aw_mr *mr = core_mr_add(&pair->b, STAG, ~0u, AT, 4000);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_READ, 0, 3000);

	(void)state;
	wqe->stag = STAG;
	wqe->to = IOVA;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_true(core_tx_one(&pair->b));
	mr->pd = NULL;
	core_pump(pair);
	assert_int_equal(refusal->cause, AW_REFUSAL_STAG);
	assert_int_equal(refusal->access, AW_ACCESS_REMOTE_READ);
	assert_true(refusal->to > IOVA);
	assert_int_equal(refusal->to + refusal->len, IOVA + 3000);
	core_pair_destroy(pair);
}

/* An error that is no refusal of memory: a Send without a receive. */
static void refusal__nothing_else(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_E_DDP_NO_BUFFER);
	assert_int_equal(end->qp.refusal.cause, AW_REFUSAL_NONE);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusal__each_cause),
		cmocka_unit_test(refusal__unaligned_atomic),
		cmocka_unit_test(refusal__mr_gone_while_read),
		cmocka_unit_test(refusal__nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
