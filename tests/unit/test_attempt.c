// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What an initiator does next.
#include "core/attempt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LEN(table) (sizeof(table) / sizeof((table)[0]))

/* A listener that is back at some time is found by the first try behind it, and one that never comes ends the tries. */
static void attempt_pause__on_a_clock(void **state)
{
	static const struct {
		uint32_t back_ms, found_ms;
	} cases[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 3 }, { 3, 3 }, { 64, 127 }, { 127, 127 }, { 128, 0 }
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		uint32_t now_ms = 0, refusals = 0, pause_ms = 1;

		while (now_ms < cases[i].back_ms && pause_ms > 0) {
			pause_ms = aw_attempt_pause_ms(refusals++);
			now_ms += pause_ms;
		}
		assert_int_equal(pause_ms > 0 ? now_ms : 0, cases[i].found_ms);
		assert_true(now_ms < AW_ATTEMPT_WAIT_MS);
	}
	assert_int_equal(aw_attempt_pause_ms(AW_ATTEMPT_REFUSALS_MAX - 1), 64);
	assert_int_equal(aw_attempt_pause_ms(AW_ATTEMPT_REFUSALS_MAX), 0);
	assert_int_equal(aw_attempt_pause_ms(UINT32_MAX), 0);
}

static void attempt_closed__table(void **state)
{
	static const struct {
		uint8_t asked;
		bool again;
		size_t received;
		enum aw_attempt_next next;
	} cases[] = {
		{ 2, false, 0, AW_ATTEMPT_REPEAT }, { 2, true, 0, AW_ATTEMPT_PLAIN },
		{ 2, false, 1, AW_ATTEMPT_FAILED }, { 2, true, 19, AW_ATTEMPT_FAILED },
		{ 1, false, 0, AW_ATTEMPT_FAILED }, { 1, true, 0, AW_ATTEMPT_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++)
		assert_int_equal(aw_attempt_closed(cases[i].asked, cases[i].again,
						   cases[i].received),
				 cases[i].next);
}

static void attempt_replied__table(void **state)
{
	static const struct {
		uint8_t asked, revision;
		bool rejected;
		enum aw_attempt_next next;
	} cases[] = {
		{ 1, 1, false, AW_ATTEMPT_STREAM },  { 2, 2, false, AW_ATTEMPT_STREAM },
		{ 2, 1, false, AW_ATTEMPT_PLAIN },   { 1, 1, true, AW_ATTEMPT_REJECTED },
		{ 2, 2, true, AW_ATTEMPT_REJECTED }, { 2, 1, true, AW_ATTEMPT_REJECTED },
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		const struct aw_mpa_result result = {
			.revision = cases[i].revision,
			.rejected = cases[i].rejected,
		};

		assert_int_equal(aw_attempt_replied(cases[i].asked, &result), cases[i].next);
	}
}

static void attempt_terminate__two_errors_have_one(void **state)
{
	(void)state;
	assert_int_equal(aw_attempt_terminate(AW_SETUP_NO_RTR), AW_E_MPA_NO_MATCHING_RTR);
	assert_int_equal(aw_attempt_terminate(AW_SETUP_IRD), AW_E_MPA_INSUFFICIENT_IRD);
	assert_int_equal(aw_attempt_terminate(AW_SETUP_OK), AW_OK);
	assert_int_equal(aw_attempt_terminate(AW_SETUP_WRONG_KIND), AW_OK);
	assert_int_equal(aw_attempt_terminate(AW_SETUP_REVISION), AW_OK);
	assert_int_equal(aw_attempt_terminate(AW_SETUP_SHORT_PD), AW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempt_pause__on_a_clock),
		cmocka_unit_test(attempt_closed__table),
		cmocka_unit_test(attempt_replied__table),
		cmocka_unit_test(attempt_terminate__two_errors_have_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
