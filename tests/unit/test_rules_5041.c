// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 5041 on whole messages: what the segments of one have in common, sequence numbers
// over the wrap, and messages of no octets. docs/rfc/5041.toml says which rule each test holds.
#include "../lib/core_pair.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void post_send_se_inv(struct core_end *end, uint32_t len)
{
	struct aw_swqe *wqe = core_wr(end, AW_OP_SEND_INV, 0, len);

	wqe->flags |= AW_WR_SOLICITED;
	wqe->inv_or_imm = 0xabcd;
	aw_qp_post(&end->qp);
}

/* Sections 4.1 to 4.3 and 5.2: the same but for MO, TO and L; offsets grow, L is on the last. */
static void rules_5041__segments_of_a_message_agree(void **state)
{
	(void)state;
	for (int tagged = 0; tagged < 2; tagged++) {
		struct core_end *end = core_initiator(536);
		uint32_t at = 0, segments = 0;
		struct ddp_hdr hdr;
		size_t len;

		core_post(end, AW_OP_SEND, 0, 1, 0); /* so that the next MSN is 2 */
		core_tx(end);
		if (tagged)
			core_post(end, AW_OP_WRITE, 0, 3000, 40);
		else
			post_send_se_inv(end, 3000);
		for (end->wire_len = 0; core_tx_one(end); end->wire_len = 0) {
			core_peek(end, &hdr, &len);
			assert_int_equal(hdr.tagged, tagged);
			assert_int_equal(hdr.ulp_ctrl, tagged ? 0x40 : 0x46);
			assert_int_equal(hdr.ulp_rsvd, tagged ? 0 : 0xabcd);
			assert_int_equal(hdr.stag, tagged ? CORE_STAG : 0);
			assert_int_equal(hdr.to, tagged ? CORE_IOVA + 40 + at : 0);
			assert_int_equal(hdr.qn, 0);
			assert_int_equal(hdr.msn, tagged ? 0 : 2);
			assert_int_equal(hdr.mo, tagged ? 0 : at);
			at += (uint32_t)len;
			assert_int_equal(hdr.last, at == 3000);
			segments++;
		}
		assert_int_equal(at, 3000);
		assert_int_equal(segments, 6);
		core_end_destroy(end);
	}
}

/* Section 4.3: behind 0xffffffff comes 0, on either side, for each queue. */
static void rules_5041__msn_wraps_to_0(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_READ };
	static const uint32_t msns[] = { UINT32_MAX, 0, 1 };

	(void)state;
	for (uint32_t qn = 0; qn < 2; qn++) {
		struct core_pair *pair = core_pair_ready(1448);

		pair->a.qp.tx_msn[qn] = pair->b.qp.rx_msn[qn] = UINT32_MAX;
		for (unsigned int i = 0; i < 3; i++) {
			struct ddp_hdr hdr;
			size_t len;

			core_recv(&pair->b, i, 0, 10);
			core_post(&pair->a, ops[qn], 0, 5, 0);
			assert_true(core_tx_one(&pair->a));
			core_peek(&pair->a, &hdr, &len);
			assert_int_equal(hdr.msn, msns[i]);
			core_pump(pair);
			core_expect_sq(&pair->a, ops[qn], AW_WC_SUCCESS);
		}
		assert_int_equal(pair->b.qp.state, AW_QP_RTS);
		core_pair_destroy(pair);
	}
}

static void rules_5041__first_msn_is_1(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_READ };
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	for (unsigned int i = 0; i < 2; i++, end->wire_len = 0) {
		core_post(end, ops[i], 0, 5, 0);
		assert_true(core_tx_one(end));
		core_peek(end, &hdr, &len);
		assert_int_equal(hdr.qn, i);
		assert_int_equal(hdr.msn, 1);
		assert_int_equal(hdr.mo, 0);
	}
	core_end_destroy(end);
}

/* Section 5.2: exactly one segment, with L set; nothing of the receiver's memory is touched. */
static void rules_5041__no_octets_are_one_segment(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_SEND_INV, AW_OP_WRITE };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct core_end *end = core_initiator(1448);
		struct ddp_hdr hdr;
		size_t len;

		core_post(end, ops[i], 0, 0, 0);
		assert_true(core_tx_one(end));
		assert_false(core_tx_one(end));
		core_peek(end, &hdr, &len);
		assert_int_equal(len, 0);
		assert_true(hdr.last);
		core_expect_sq(end, ops[i], AW_WC_SUCCESS);
		core_end_destroy(end);
	}
}

/* Section 7.1: a segment that does not fit is not placed in part. */
static void rules_5041__nothing_of_a_bad_segment_is_placed(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	static const uint8_t zeros[20];

	(void)state;
	core_recv(end, 1, 0, 10);
	assert_int_equal(core_ulpdu(end, &hdr, 11), AW_E_DDP_TOO_LONG);
	assert_memory_equal(end->mem, zeros, sizeof(zeros));
	core_end_destroy(end);
	end = core_responder();
	hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA + CORE_MEM - 10);
	assert_int_equal(core_ulpdu(end, &hdr, 11), AW_E_DDP_TAGGED_BOUNDS);
	assert_memory_equal(end->mem + CORE_MEM - 20, zeros, sizeof(zeros));
	core_end_destroy(end);
}

/* Section 7.1: good segments behind a bad one are dropped, and nobody hears of them. */
static void rules_5041__segments_behind_an_error_are_dropped(void **state)
{
	struct ddp_hdr bad = core_tagged(RDMAP_WRITE, 0xbad, 0);
	struct ddp_hdr good = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);
	struct ddp_hdr send = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	struct core_end *end = core_responder();

	(void)state;
	core_recv(end, 1, 0, 100);
	core_inject(end, &bad, "x", 1);
	assert_int_equal(end->logged, 1); /* the receive, flushed */
	core_inject(end, &good, "xyz", 3);
	core_inject(end, &send, "xyz", 3);
	core_inject(end, &bad, "x", 1);
	assert_int_equal(end->placed, 0);
	assert_int_equal(end->logged, 1);
	assert_int_equal(end->qp.error, AW_E_DDP_TAGGED_STAG);
	assert_true(core_tx_one(end));
	assert_false(core_tx_one(end));
	core_end_destroy(end);
}

/* Section 4.1: DV is 1 in all that goes out. */
static void rules_5041__every_segment_has_version_1(void **state)
{
	struct core_pair *pair = core_pair_ready(536);
	struct core_end *ends[] = { &pair->a, &pair->b };

	(void)state;
	core_recv(&pair->b, 1, 0, 2000);
	core_post(&pair->a, AW_OP_SEND, 0, 2000, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 2000, 0);
	core_post(&pair->a, AW_OP_READ, 0, 2000, 0);
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *p = ends[i]->wire;

		core_tx(ends[i]);
		assert_true(ends[i]->wire_len > 2000);
		for (; p < ends[i]->wire + ends[i]->wire_len; p += fpdu_size(get_be16(p)))
			assert_int_equal(p[2] & 0x3f, 1); /* with the reserved bits: zero */
		core_deliver(ends[i], ends[!i]);
	}
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_5041__segments_of_a_message_agree),
		cmocka_unit_test(rules_5041__msn_wraps_to_0),
		cmocka_unit_test(rules_5041__first_msn_is_1),
		cmocka_unit_test(rules_5041__no_octets_are_one_segment),
		cmocka_unit_test(rules_5041__nothing_of_a_bad_segment_is_placed),
		cmocka_unit_test(rules_5041__segments_behind_an_error_are_dropped),
		cmocka_unit_test(rules_5041__every_segment_has_version_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
