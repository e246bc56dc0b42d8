// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MR checks at each bound and one past it.
#include "core/mr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char pd, other, qp, other_qp;
static uint8_t memory[100];

static struct aw_mr mr_at(uint64_t iova)
{
	return (struct aw_mr){
		.stag = 7,
		.access = AW_ACCESS_REMOTE_WRITE | AW_ACCESS_LOCAL_WRITE,
		.iova = iova,
		.len = sizeof(memory),
		.host = memory,
		.pd = &pd,
	};
}

static enum aw_error check(const struct aw_mr *mr, uint64_t to, uint64_t len)
{
	return aw_mr_check(mr, &pd, &qp, AW_ACCESS_REMOTE_WRITE, to, len);
}

static void aw_mr_check__bounds(void **state)
{
	struct aw_mr mr = mr_at(1000);

	(void)state;
	assert_int_equal(check(&mr, 1000, 100), AW_OK);
	assert_int_equal(check(&mr, 1099, 1), AW_OK);
	assert_int_equal(check(&mr, 1100, 0), AW_OK);
	assert_int_equal(check(&mr, 1000, 101), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 1099, 2), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 1100, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 999, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 1101, 0), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 1101, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 0, 1), AW_E_RDMAP_BOUNDS);
	assert_int_equal(check(&mr, 999, 102), AW_E_RDMAP_BOUNDS);
}

static void aw_mr_check__top_of_address_space(void **state)
{
	struct aw_mr mr = mr_at(UINT64_MAX - 99);

	(void)state;
	assert_int_equal(check(&mr, UINT64_MAX - 99, 100), AW_OK);
	assert_int_equal(check(&mr, UINT64_MAX, 1), AW_OK);
	assert_int_equal(check(&mr, UINT64_MAX, 2), AW_E_RDMAP_TO_WRAP);
	assert_int_equal(check(&mr, UINT64_MAX - 99, 101), AW_E_RDMAP_TO_WRAP);
	assert_int_equal(check(&mr, 5, UINT64_MAX), AW_E_RDMAP_TO_WRAP);
}

static void aw_mr_check__who_may(void **state)
{
	struct aw_mr mr = mr_at(0);

	(void)state;
	assert_int_equal(check(NULL, 0, 1), AW_E_RDMAP_STAG);
	assert_int_equal(aw_mr_check(&mr, &other, &qp, 0, 0, 1), AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, AW_ACCESS_REMOTE_READ, 0, 1),
			 AW_E_RDMAP_ACCESS);
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, AW_ACCESS_REMOTE_WRITE | AW_ACCESS_REMOTE_READ,
				     0, 1),
			 AW_E_RDMAP_ACCESS);
	mr.qp = &other_qp;
	assert_int_equal(check(&mr, 0, 1), AW_E_RDMAP_NOT_ASSOCIATED);
	mr.qp = &qp;
	assert_int_equal(check(&mr, 0, 1), AW_OK);
}

/* Without a remote right the access is an SGE's, which no window is for. */
static void aw_mr_check__window_is_for_the_peer_alone(void **state)
{
	struct aw_mr mr = mr_at(0);

	(void)state;
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, 0, 0, 1), AW_OK);
	mr.window = true;
	assert_int_equal(check(&mr, 0, 1), AW_OK);
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, 0, 0, 1), AW_E_RDMAP_ACCESS);
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, AW_ACCESS_LOCAL_WRITE, 0, 1),
			 AW_E_RDMAP_ACCESS);
}

static void aw_mr_check__order_of_errors(void **state)
{
	struct aw_mr mr = mr_at(0);

	(void)state;
	assert_int_equal(aw_mr_check(&mr, &other, &qp, AW_ACCESS_REMOTE_READ, UINT64_MAX, 9),
			 AW_E_RDMAP_NOT_ASSOCIATED);
	assert_int_equal(aw_mr_check(&mr, &pd, &qp, AW_ACCESS_REMOTE_READ, UINT64_MAX, 9),
			 AW_E_RDMAP_ACCESS);
	assert_int_equal(check(&mr, UINT64_MAX, 9), AW_E_RDMAP_TO_WRAP);
}

static void aw_mr_at__offset(void **state)
{
	struct aw_mr mr = mr_at(1000);

	(void)state;
	assert_ptr_equal(aw_mr_at(&mr, 1042), memory + 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_mr_check__bounds),
		cmocka_unit_test(aw_mr_check__top_of_address_space),
		cmocka_unit_test(aw_mr_check__who_may),
		cmocka_unit_test(aw_mr_check__window_is_for_the_peer_alone),
		cmocka_unit_test(aw_mr_check__order_of_errors),
		cmocka_unit_test(aw_mr_at__offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
