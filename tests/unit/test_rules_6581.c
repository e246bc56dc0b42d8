// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 6581 on what an end answers, and what it takes an answer for.
// docs/rfc/6581.toml says which rule each test holds.
#include "core/startup.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ANY_RTR (MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ)

static const struct aw_mpa_local usual = {
	.revision = 2,
	.crc = true,
	.p2p = true,
	.rtr = ANY_RTR,
	.ird = 16,
	.ord = 8,
};

/* What a responder makes of an enhanced Request; its Reply goes to reply. */
static struct aw_mpa_result answer(const struct aw_mpa_local *local, const struct mpa_enhanced *enh,
				   bool reject, uint8_t *reply)
{
	uint8_t pd[MPA_ENH_LEN];
	const struct mpa_frame request = {
		.kind = MPA_REQUEST,
		.flags = MPA_FLAG_ENHANCED,
		.revision = 2,
		.pd = pd,
		.pd_len = sizeof(pd),
	};
	struct aw_mpa_result result;

	mpa_enhanced_put(enh, pd);
	assert_int_equal(aw_mpa_on_request(local, &request, &result), AW_SETUP_OK);
	assert_int_equal(aw_mpa_reply(local, &result, reject, NULL, 0, reply),
			 MPA_HDR_LEN + MPA_ENH_LEN);
	return result;
}

static struct mpa_enhanced answered(const uint8_t *reply)
{
	return mpa_enhanced_get(reply + MPA_HDR_LEN);
}

/* Sections 6 and 10: S and revision 2, whether it accepts or rejects. */
static void rules_6581__enhanced_is_answered_enhanced(void **state)
{
	const struct mpa_enhanced enh = { .ird = 4, .ord = 4 };
	uint8_t reply[MPA_FRAME_MAX];

	(void)state;
	for (int reject = 0; reject < 2; reject++) {
		answer(&usual, &enh, reject, reply);
		assert_true(reply[16] & MPA_FLAG_ENHANCED);
		assert_int_equal(!!(reply[16] & MPA_FLAG_REJECT), reject);
		assert_int_equal(reply[17], 2);
		assert_int_equal(get_be16(reply + 18), MPA_ENH_LEN);
	}
}

/* Section 9.2: the answer has A as the Request had it, whatever this end would like. */
static void rules_6581__responder_follows_a(void **state)
{
	uint8_t reply[MPA_FRAME_MAX];

	(void)state;
	for (int p2p = 0; p2p < 2; p2p++) {
		const struct mpa_enhanced enh = { .p2p = p2p, .rtr = ANY_RTR, .ird = 4 };
		struct aw_mpa_local local = usual;
		struct aw_mpa_result result;

		local.p2p = !p2p;
		result = answer(&local, &enh, false, reply);
		assert_int_equal(result.p2p, p2p);
		assert_int_equal(result.rtr, p2p ? ANY_RTR : 0);
		assert_int_equal(result.ird, p2p); /* for a Read RTR, and for nothing else */
		assert_int_equal(answered(reply).p2p, p2p);
		/* With A 0, B, C and D are ignored, and answered with 0. */
		assert_int_equal(answered(reply).rtr, p2p ? ANY_RTR : 0);
	}
}

/* Section 9.2: there is always one RTR in the answer, if only one that was not asked for. */
static void rules_6581__at_least_one_rtr_is_offered(void **state)
{
	uint8_t reply[MPA_FRAME_MAX];

	(void)state;
	for (uint8_t asked = 0; asked <= ANY_RTR; asked++) {
		for (uint8_t takes = 1; takes <= ANY_RTR; takes++) {
			const struct mpa_enhanced enh = { .p2p = true, .rtr = asked, .ord = 1 };
			struct aw_mpa_local local = usual;

			local.rtr = takes;
			local.ird = takes & 1; /* with and without one for a Read */
			answer(&local, &enh, false, reply);
			assert_int_not_equal(answered(reply).rtr, 0);
			assert_int_equal(answered(reply).rtr & ~takes, 0);
			if (answered(reply).rtr & MPA_RTR_READ)
				assert_true(answered(reply).ird >= 1);
		}
	}
}

/* Section 9.1. */
static void rules_6581__responder_ord_is_within_the_initiators_ird(void **state)
{
	uint8_t reply[MPA_FRAME_MAX];

	(void)state;
	for (uint16_t ird = 0; ird < 12; ird++) {
		const struct mpa_enhanced enh = { .ird = ird, .ord = 4 };
		uint16_t least = ird < usual.ord ? ird : usual.ord;

		assert_int_equal(answer(&usual, &enh, false, reply).ord, least);
		assert_int_equal(answered(reply).ord, least);
	}
}

/*
 * Section 9.1 gives the example: an initiator that reads nothing has an ORD of 0, and a responder
 * that takes only the Read RTR answers with an IRD of 1. Section 9.2: so that RTR is sent.
 */
static void rules_6581__read_rtr_of_who_reads_nothing(void **state)
{
	static const uint8_t pd[] = { 0x80, 1, 0x40, 0 };
	struct mpa_frame reply = {
		.kind = MPA_REPLY,
		.flags = MPA_FLAG_ENHANCED,
		.revision = 2,
		.pd = pd,
		.pd_len = sizeof(pd),
	};
	struct aw_mpa_local local = usual;
	struct aw_mpa_result result;

	(void)state;
	local.ord = 0;
	assert_int_equal(aw_mpa_on_reply(&local, &reply, &result), AW_SETUP_OK);
	assert_int_equal(result.rtr, MPA_RTR_READ);
	assert_int_equal(result.ord, 1); /* one may be outstanding: this one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_6581__enhanced_is_answered_enhanced),
		cmocka_unit_test(rules_6581__responder_follows_a),
		cmocka_unit_test(rules_6581__at_least_one_rtr_is_offered),
		cmocka_unit_test(rules_6581__responder_ord_is_within_the_initiators_ird),
		cmocka_unit_test(rules_6581__read_rtr_of_who_reads_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
