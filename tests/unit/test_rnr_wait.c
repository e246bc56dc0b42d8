// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a message waits for a receive, on a virtual clock.
#include "core/rnr_wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LEN(table) (sizeof(table) / sizeof((table)[0]))
#define MS_NS UINT64_C(1000000)

static void rnr_wait_try__each_message_has_the_whole_time(void **state)
{
	static const struct {
		uint32_t at_ms;
		uint32_t msn;
		bool holds; /* behind the try */
		uint32_t retry_ms;
	} tries[] = {
		{ 50, 100, true, 1 },
		{ 51, 100, true, 1 },
		{ 50 + AW_RNR_MS - 1, 100, true, 1 },
		/* that one found its receive: another message */
		{ 50 + AW_RNR_MS, 300, true, 1 },
		{ 50 + 2 * AW_RNR_MS - 1, 300, true, 1 },
		{ 50 + 2 * AW_RNR_MS, 300, false, AW_RNR_RETRY_LATE_MS },
	};
	struct aw_qp qp = { .state = AW_QP_RTS, .rx_held = 20 };
	struct aw_rnr_wait wait;

	(void)state;
	aw_rnr_wait_begin(&wait, &qp);
	for (size_t i = 0; i < LEN(tries); i++) {
		qp.rx_msn[DDP_QN_SEND] = tries[i].msn;
		aw_rnr_wait_try(&wait, &qp, AW_RNR_MS, tries[i].at_ms * MS_NS);
		assert_int_equal(aw_rnr_wait_holds(&qp), tries[i].holds);
		assert_int_equal(aw_rnr_wait_retry_ms(&wait, tries[i].at_ms * MS_NS),
				 tries[i].retry_ms);
	}
}

/* The first message behind MSNs that have wrapped, too, has the whole time. */
static void rnr_wait_try__at_msn_0(void **state)
{
	struct aw_qp qp = { .state = AW_QP_RTS, .rx_held = 20 };
	struct aw_rnr_wait wait = { 0 };

	(void)state;
	aw_rnr_wait_begin(&wait, &qp);
	aw_rnr_wait_try(&wait, &qp, 10, 999 * MS_NS);
	assert_true(aw_rnr_wait_holds(&qp));
	aw_rnr_wait_try(&wait, &qp, 10, 1009 * MS_NS);
	assert_false(aw_rnr_wait_holds(&qp));
}

/* The last try of a message finds its receive: the next message has the whole time as well. But not once the stream ends. */
static void rnr_wait_found__in_the_last_try(void **state)
{
	struct aw_qp qp = { .state = AW_QP_RTS, .rx_held = 20 };
	struct aw_rnr_wait wait;

	(void)state;
	aw_rnr_wait_begin(&wait, &qp);
	aw_rnr_wait_try(&wait, &qp, 10, 0);
	aw_rnr_wait_try(&wait, &qp, 10, 10 * MS_NS);
	assert_false(qp.rnr_holds);
	aw_rnr_wait_found(&qp);
	assert_true(qp.rnr_holds);
	aw_rnr_wait_try(&wait, &qp, 10, 20 * MS_NS);
	assert_false(qp.rnr_holds);
	aw_rnr_wait_end(&qp);
	aw_rnr_wait_found(&qp);
	assert_false(qp.rnr_holds);
}

static void rnr_wait_try__for_ever(void **state)
{
	struct aw_qp qp = { .state = AW_QP_RTS, .rx_held = 20 };
	struct aw_rnr_wait wait;

	(void)state;
	aw_rnr_wait_begin(&wait, &qp);
	for (uint64_t at_ms = 0; at_ms < 1u << 20; at_ms += 1000)
		aw_rnr_wait_try(&wait, &qp, 0, at_ms * MS_NS);
	assert_true(aw_rnr_wait_holds(&qp));
	assert_int_equal(aw_rnr_wait_retry_ms(&wait, (1u << 20) * MS_NS), AW_RNR_RETRY_LATE_MS);
}

static void rnr_wait_holds__table(void **state)
{
	static const struct {
		size_t rx_held;
		bool rnr_holds;
		enum aw_qp_state state;
		bool holds;
	} cases[] = {
		{ 20, true, AW_QP_RTS, true },	      { 0, true, AW_QP_RTS, false },
		{ 20, false, AW_QP_RTS, false },      { 20, true, AW_QP_CLOSING, false },
		{ 20, true, AW_QP_TERMINATE, false }, { 20, true, AW_QP_ERROR, false },
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		const struct aw_qp qp = {
			.rx_held = cases[i].rx_held,
			.rnr_holds = cases[i].rnr_holds,
			.state = cases[i].state,
		};

		assert_int_equal(aw_rnr_wait_holds(&qp), cases[i].holds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_wait_try__each_message_has_the_whole_time),
		cmocka_unit_test(rnr_wait_try__at_msn_0),
		cmocka_unit_test(rnr_wait_found__in_the_last_try),
		cmocka_unit_test(rnr_wait_try__for_ever),
		cmocka_unit_test(rnr_wait_holds__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
