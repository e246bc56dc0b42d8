// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends as they arrive: receives, segments, scatter, invalidation, and what is wrong with them.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void aw_rx_send__no_receive(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

static void aw_rx_send__segments(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND_SE, DDP_QN_SEND, 1, 0);

	(void)state;
	core_recv(end, 5, 0, 10);
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 4), AW_OK);
	hdr.mo = 4;
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	assert_int_equal(core_ulpdu(end, &hdr, 5), AW_OK);
	assert_int_equal(end->logged, 0);
	hdr.mo = 9;
	hdr.last = true;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_OK);
	assert_int_equal(end->log[0].cqe.byte_len, 10);
	assert_int_equal(end->log[0].cqe.flags, AW_WC_SOLICITED);
	assert_memory_equal(end->mem, "\1\2\3\4\1\2\3\4\5\1", 10);
	core_end_destroy(end);
}

/* The second segment of a message against what the first one began. */
static enum aw_error second(enum rdmap_opcode op, uint32_t msn, uint32_t mo, size_t len,
			    enum aw_wc_status status)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	enum aw_error err;

	core_recv(end, 5, 0, 10);
	core_recv(end, 6, 0, 10);
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 4), AW_OK);
	hdr = core_untagged(op, DDP_QN_SEND, msn, mo);
	err = core_ulpdu(end, &hdr, len);
	assert_int_equal(end->placed, err ? 1 : 2);
	if (err) {
		assert_int_equal(end->logged, 2);
		assert_int_equal(end->log[0].cqe.wr_id, 5);
		assert_int_equal(end->log[0].cqe.status, status);
		assert_int_equal(end->log[0].cqe.vendor_err, err);
		assert_int_equal(end->log[1].cqe.wr_id, 6);
		assert_int_equal(end->log[1].cqe.status, AW_WC_WR_FLUSH_ERR);
	}
	core_end_destroy(end);
	return err;
}

static void aw_rx_send__second_segment(void **state)
{
	const enum aw_wc_status flush = AW_WC_WR_FLUSH_ERR;

	(void)state;
	assert_int_equal(second(RDMAP_SEND, 1, 4, 6, flush), AW_OK);
	assert_int_equal(second(RDMAP_SEND, 1, 4, 7, AW_WC_LOC_LEN_ERR), AW_E_DDP_TOO_LONG);
	assert_int_equal(second(RDMAP_SEND, 2, 4, 1, flush), AW_E_DDP_MSN_RANGE);
	assert_int_equal(second(RDMAP_SEND, 1, 3, 1, flush), AW_E_DDP_MO);
	assert_int_equal(second(RDMAP_SEND, 1, 0, 1, flush), AW_E_DDP_MO);
	assert_int_equal(second(RDMAP_SEND, 1, UINT32_MAX, 1, flush), AW_E_DDP_MO);
	assert_int_equal(second(RDMAP_SEND_SE, 1, 4, 1, flush), AW_E_RDMAP_OPCODE);
}

static void aw_rx_send__scatters(void **state)
{
	struct core_end *end = core_responder();
	struct aw_sge sge[3] = { { CORE_IOVA + 50, 3, CORE_STAG },
				 { 0, 0, 0xbad },
				 { CORE_IOVA + 90, 5, CORE_STAG } };
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	assert_true(aw_rq_post(&end->rq, 1, sge, 3));
	assert_int_equal(core_ulpdu(end, &hdr, 8), AW_OK);
	assert_memory_equal(end->mem + 50, core_data, 3);
	assert_memory_equal(end->mem + 90, core_data + 3, 5);
	core_end_destroy(end);
}

/* Local mistakes of the receiving program: nothing is placed, not even in the good SGE. */
static void aw_rx_send__bad_receive_sge(void **state)
{
	static const struct aw_sge bad[] = { { CORE_IOVA, 5, 0xbad },
					     { CORE_IOVA + CORE_MEM - 1, 5, CORE_STAG },
					     { UINT64_MAX, 5, CORE_STAG },
					     { CORE_IOVA, 5, 0x99 } };
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct core_end *end = core_responder();
		struct aw_sge sge[2] = { { CORE_IOVA, 5, CORE_STAG }, bad[i] };

		core_mr_add(end, 0x99, AW_ACCESS_REMOTE_WRITE, 0, 100);
		assert_true(aw_rq_post(&end->rq, 1, sge, 2));
		assert_int_equal(core_ulpdu(end, &hdr, 10), AW_E_LOCAL_CATASTROPHIC);
		assert_int_equal(end->placed, 0);
		assert_int_equal(end->log[0].cqe.status, AW_WC_LOC_PROT_ERR);
		assert_true(core_tx_one(end));
		assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x02\x07\xc0\0", 4);
		core_end_destroy(end);
	}
}

static void aw_rx_send__invalidate(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND_SE_INV, DDP_QN_SEND, 1, 0);

	(void)state;
	core_mr_add(end, 0x99, 0, 0, 1);
	core_recv(end, 5, 0, 10);
	hdr.ulp_rsvd = 0x99;
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_OK);
	assert_int_equal(end->invalidated, 0);
	hdr.last = true;
	hdr.mo = 1;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_OK);
	assert_int_equal(end->invalidated, 0x99);
	assert_true(end->invalidated_by_peer);
	assert_int_equal(end->log[0].cqe.op, AW_OP_SEND_INV);
	assert_int_equal(end->log[0].cqe.flags, AW_WC_WITH_INV | AW_WC_SOLICITED);
	assert_int_equal(end->log[0].cqe.inv_or_imm, 0x99);
	core_end_destroy(end);
}

static void aw_rx_send__invalidate_errors(void **state)
{
	static const struct {
		uint32_t stag;
		enum aw_error err;
	} cases[] = { { 0xbad, AW_E_RDMAP_STAG },
		      { 0x99, AW_E_RDMAP_PROT_CANNOT_INVALIDATE },
		      { CORE_STAG, AW_E_RDMAP_CANNOT_INVALIDATE } };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct core_end *end = core_responder();
		struct ddp_hdr hdr = core_untagged(RDMAP_SEND_INV, DDP_QN_SEND, 1, 0);

		core_mr_add(end, 0x99, 0, 0, 1)->pd = &core_other_pd;
		core_recv(end, 5, 0, 10);
		hdr.ulp_rsvd = cases[i].stag;
		assert_int_equal(core_ulpdu(end, &hdr, 1), cases[i].err);
		assert_int_equal(end->log[0].cqe.status, AW_WC_REM_INV_REQ_ERR);
		core_end_destroy(end);
	}
}

static void aw_rx_send__first_with_payload_is_no_rtr(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	struct core_end *end;

	(void)state;
	stream.p2p = true;
	stream.rtr = MPA_RTR_SEND;
	end = core_end_create(&stream);
	core_recv(end, 5, 0, 10);
	assert_int_equal(core_ulpdu(end, &hdr, 3), AW_OK);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);
}

/* RFC 6581 9.2: a Send that is the RTR has an MSN, and takes no receive. */
static void aw_rx_send__rtr(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	struct core_end *end;

	(void)state;
	stream.p2p = true;
	stream.rtr = MPA_RTR_SEND | MPA_RTR_WRITE;
	end = core_end_create(&stream);
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	hdr.msn = 2;
	core_recv(end, 5, 0, 10);
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);

	end = core_end_create(&stream);
	core_recv(end, 5, 0, 10);
	hdr = core_tagged(RDMAP_WRITE, 1, 0);
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1,
			    0); /* the Write was it: this one is a Send */
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_send__no_receive),
		cmocka_unit_test(aw_rx_send__segments),
		cmocka_unit_test(aw_rx_send__second_segment),
		cmocka_unit_test(aw_rx_send__scatters),
		cmocka_unit_test(aw_rx_send__bad_receive_sge),
		cmocka_unit_test(aw_rx_send__invalidate),
		cmocka_unit_test(aw_rx_send__invalidate_errors),
		cmocka_unit_test(aw_rx_send__first_with_payload_is_no_rtr),
		cmocka_unit_test(aw_rx_send__rtr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
