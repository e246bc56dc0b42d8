// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why a request for memory was refused, as check/model/refusal.h says it: each cause, with MRs that the program has and had.
#include "check/model/refusal.h"

#include <byteswap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define RKEY 0x11223344
#define START UINT64_C(0x7f0000001000)
#define SIZE 0x1000

static const char pd, other_pd;

static struct aw_mr_shadow mr_make(uint32_t rkey, uint64_t start, bool is_gone)
{
	struct aw_mr_shadow mr = { .start = start, .end = start + SIZE, .rkey = rkey, .pd = &pd };

	mr.object.number = rkey;
	atomic_store(&mr.object.is_gone, is_gone);
	return mr;
}

struct row {
	enum anywarp_refusal_cause cause;
	unsigned access;
	uint32_t rkey;
	uint64_t addr, length;
	enum aw_refused_by by;
	const char *why; /* all of it */
};

/* The program has MRs of RKEY, of RKEY + 1 in another PD, and had one of RKEY + 2. */
static const struct row rows[] = {
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_READ, 0x99, 0x4000, 8, AW_REFUSED_BY_NOTHING,
	  "no MR has this rkey, and none of the QP's PD covers the address" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_READ, 0x99, START + SIZE - 8, 9,
	  AW_REFUSED_BY_NOTHING,
	  "no MR has this rkey, and none of the QP's PD covers the address" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_READ, 0x99, START + SIZE - 8, 8,
	  AW_REFUSED_BY_ADDRESS,
	  "no MR has this rkey; the MR that covers the address has rkey 0x11223344 (lkey 0x11223344)" },
	/* The MR of the other PD covers it. */
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_READ, 0x99, START + 0x10000, 8,
	  AW_REFUSED_BY_NOTHING,
	  "no MR has this rkey, and none of the QP's PD covers the address" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_WRITE, 0x44332211, START, 8,
	  AW_REFUSED_BY_SWAPPED,
	  "no MR has this rkey, but with its bytes in the other order, 0x11223344, one has" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_WRITE, 0x44332211, UINT64_C(0x00100000007f0000),
	  8, AW_REFUSED_BY_SWAPPED,
	  "no MR has this rkey, but with its bytes in the other order, 0x11223344, one has; the address with its "
	  "bytes in the other order, 0x7f0000001000, is inside it" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_WRITE, RKEY + 2, START, 8, AW_REFUSED_BY_GONE,
	  "the MR of this rkey, from 0x7f0000021000 to 0x7f0000022000, was deregistered" },
	{ ANYWARP_REFUSAL_RKEY, IBV_ACCESS_REMOTE_WRITE, RKEY, START, 8, AW_REFUSED_BY_RKEY,
	  "the MR of this rkey was not registered yet, or was being deregistered or changed" },
	{ ANYWARP_REFUSAL_PD, IBV_ACCESS_REMOTE_WRITE, RKEY + 1, START, 8, AW_REFUSED_BY_RKEY,
	  "the MR of this rkey belongs to another PD than the QP" },
	{ ANYWARP_REFUSAL_WINDOW, IBV_ACCESS_REMOTE_WRITE, 0x99, 0x4000, 8, AW_REFUSED_BY_NOTHING,
	  "the memory window of this rkey is bound to another QP" },
	{ ANYWARP_REFUSAL_MR_RIGHTS, IBV_ACCESS_REMOTE_READ, RKEY, START, 8, AW_REFUSED_BY_RKEY,
	  "the MR of this rkey was registered without IBV_ACCESS_REMOTE_READ" },
	{ ANYWARP_REFUSAL_MR_RIGHTS, IBV_ACCESS_REMOTE_WRITE, RKEY, START, 8, AW_REFUSED_BY_RKEY,
	  "the MR of this rkey was registered without IBV_ACCESS_REMOTE_WRITE" },
	{ ANYWARP_REFUSAL_MR_RIGHTS, IBV_ACCESS_REMOTE_ATOMIC, 0x99, 0x4000, 8,
	  AW_REFUSED_BY_NOTHING,
	  "the memory window of this rkey was bound without IBV_ACCESS_REMOTE_ATOMIC" },
	{ ANYWARP_REFUSAL_QP_RIGHTS, IBV_ACCESS_REMOTE_ATOMIC, RKEY, START, 8, AW_REFUSED_BY_RKEY,
	  "the QP's qp_access_flags, as ibv_modify_qp set them, are without IBV_ACCESS_REMOTE_ATOMIC" },
	{ ANYWARP_REFUSAL_BOUNDS, IBV_ACCESS_REMOTE_READ, RKEY, START + SIZE - 8, 64,
	  AW_REFUSED_BY_RKEY,
	  "the MR or memory window of this rkey covers 0x7f0000001000 to 0x7f0000002000; the request ends 56 bytes "
	  "behind it" },
	{ ANYWARP_REFUSAL_BOUNDS, IBV_ACCESS_REMOTE_READ, RKEY, START - 1, 8, AW_REFUSED_BY_RKEY,
	  "the MR or memory window of this rkey covers 0x7f0000001000 to 0x7f0000002000" },
	{ ANYWARP_REFUSAL_BOUNDS, IBV_ACCESS_REMOTE_READ, RKEY, UINT64_C(0x00100000007f0000), 8,
	  AW_REFUSED_BY_RKEY,
	  "the MR or memory window of this rkey covers 0x7f0000001000 to 0x7f0000002000; the address with its bytes "
	  "in the other order, 0x7f0000001000, is inside it" },
	{ ANYWARP_REFUSAL_UNMAPPED, IBV_ACCESS_REMOTE_READ, RKEY, START, 8, AW_REFUSED_BY_RKEY,
	  "the MR of this rkey covers it, but the memory there is not mapped, or not writable" },
	{ ANYWARP_REFUSAL_UNALIGNED, IBV_ACCESS_REMOTE_ATOMIC, RKEY, START + 4, 8,
	  AW_REFUSED_BY_RKEY, "the address of an atomic must be a multiple of 8" },
};

static void expect_words(const struct row *row, bool is_backward)
{
	struct aw_mr_shadow mrs[] = { mr_make(RKEY, START, false),
				      mr_make(RKEY + 1, START + 0x10000, false),
				      mr_make(RKEY + 2, START + 0x20000, true) };
	const size_t count = sizeof(mrs) / sizeof(mrs[0]);
	const struct anywarp_refusal refusal = { .cause = row->cause,
						 .access = row->access,
						 .rkey = row->rkey,
						 .addr = row->addr,
						 .length = row->length,
						 .start = START,
						 .size = SIZE };
	struct aw_refused refused = { .refusal = &refusal, .pd = &pd };
	char why[AW_REFUSED_MAX];

	mrs[1].pd = &other_pd;
	for (size_t i = 0; i < count; i++)
		aw_refused_consider(&refused, &mrs[is_backward ? count - 1 - i : i]);
	assert_int_equal(refused.by, row->by);
	assert_true((refused.mr != NULL) == (row->by != AW_REFUSED_BY_NOTHING));
	aw_refused_explain(&refused, why);
	assert_string_equal(why, row->why);
}

static void refused_explain__each_cause(void **state)
{
	(void)state;
	assert_true(bswap_64(UINT64_C(0x00100000007f0000)) == START);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_words(&rows[i], false);
		expect_words(&rows[i], true);
	}
}

/* An rkey that an MR has again is that MR's, whatever was deregistered before; the last one that had it is the one that is told. */
static void refused_consider__the_better_guess(void **state)
{
	const struct anywarp_refusal refusal = {
		.cause = ANYWARP_REFUSAL_RKEY, .rkey = RKEY, .addr = START, .length = 8
	};
	const struct aw_mr_shadow last = mr_make(RKEY, START, true),
				  before = mr_make(RKEY, START, true);
	const struct aw_mr_shadow now = mr_make(RKEY, START, false),
				  near = mr_make(RKEY + 5, START, false);
	struct aw_refused refused = { .refusal = &refusal, .pd = &pd };

	(void)state;
	assert_true(aw_refused_consider(&refused, &near));
	assert_int_equal(refused.by, AW_REFUSED_BY_ADDRESS);
	assert_true(aw_refused_consider(&refused, &last));
	assert_false(aw_refused_consider(&refused, &before));
	assert_ptr_equal(refused.mr, &last);
	assert_true(aw_refused_consider(&refused, &now));
	assert_false(aw_refused_consider(&refused, &near));
	assert_ptr_equal(refused.mr, &now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_explain__each_cause),
		cmocka_unit_test(refused_consider__the_better_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
