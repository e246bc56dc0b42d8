// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads as they arrive: each check on a Read Request and on a Read Response, and that a bad one
// changes nothing.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static enum aw_error read_request(struct core_end *end, uint32_t msn,
				  const struct rdmap_read_req *req, size_t len)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_READ_REQ, DDP_QN_READ, msn, 0);
	uint8_t p[DDP_UNTAGGED_LEN + 40] = { 0 };

	ddp_put(&hdr, p);
	rdmap_read_req_put(req, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + len);
}

static void aw_rx_read_request__errors(void **state)
{
	static const struct {
		struct rdmap_read_req req;
		enum aw_error err;
	} cases[] = {
		{ { 1, 0, 5, CORE_STAG, CORE_IOVA + CORE_MEM - 5 }, AW_OK },
		{ { 1, 0, 5, 0xbad, CORE_IOVA }, AW_E_RDMAP_STAG },
		{ { 1, 0, 5, 0x99, CORE_IOVA }, AW_E_RDMAP_NOT_ASSOCIATED },
		{ { 1, 0, 5, 0x98, CORE_IOVA }, AW_E_RDMAP_ACCESS },
		{ { 1, 0, 5, CORE_STAG, CORE_IOVA + CORE_MEM - 4 }, AW_E_RDMAP_BOUNDS },
		{ { 1, 0, UINT32_MAX, CORE_STAG, CORE_IOVA }, AW_E_RDMAP_BOUNDS },
		{ { 1, 0, 5, CORE_STAG, UINT64_MAX - 3 }, AW_E_RDMAP_TO_WRAP },
		/* RFC 5040 5.2.1: of size 0 MUST NOT be validated. */
		{ { 1, 0, 0, 0xbad, UINT64_MAX }, AW_OK },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = core_responder();

		core_mr_add(end, 0x99, ~0u, 0, 100)->pd = &core_other_pd;
		core_mr_add(end, 0x98, AW_ACCESS_REMOTE_WRITE, 0, 100);
		assert_int_equal(read_request(end, 1, &cases[i].req, 28), cases[i].err);
		assert_int_equal(end->qp.irq_count, cases[i].err == AW_OK);
		core_end_destroy(end);
	}
}

static void aw_rx_read_request__shape(void **state)
{
	const struct rdmap_read_req req = { 1, 0, 5, CORE_STAG, CORE_IOVA };
	struct ddp_hdr hdr = core_untagged(RDMAP_READ_REQ, DDP_QN_READ, 1, 0);
	struct core_end *end;

	(void)state;
	end = core_responder();
	assert_int_equal(read_request(end, 1, &req, 29), AW_E_DDP_TOO_LONG);
	core_end_destroy(end);
	end = core_responder();
	assert_int_equal(read_request(end, 1, &req, 27), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_responder();
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 28), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_responder();
	hdr.last = true;
	hdr.mo = 28;
	assert_int_equal(core_ulpdu(end, &hdr, 28), AW_E_DDP_MO);
	core_end_destroy(end);
}

static void aw_rx_read_request__irq_full(void **state)
{
	const struct rdmap_read_req req = { 1, 0, 5, CORE_STAG, CORE_IOVA };
	struct core_end *end = core_responder();

	(void)state;
	for (uint32_t msn = 1; msn <= CORE_READS; msn++)
		assert_int_equal(read_request(end, msn, &req, 28), AW_OK);
	assert_int_equal(read_request(end, CORE_READS + 1, &req, 28), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

static void aw_rx_read_request__size_0_is_answered(void **state)
{
	const struct rdmap_read_req req = { 77, 99, 0, 0xbad, 5 };
	struct core_end *end = core_responder();
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	assert_int_equal(read_request(end, 1, &req, 28), AW_OK);
	assert_true(core_tx_one(end));
	core_peek(end, &hdr, &len);
	assert_int_equal(len, 0);
	assert_true(hdr.tagged && hdr.last);
	assert_int_equal(hdr.stag, 77);
	assert_int_equal(hdr.to, 99);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_READ_RESP));
	assert_int_equal(end->qp.irq_count, 0);
	core_end_destroy(end);
}

/* An initiator whose Read of 10 octets, to sink STag 0x7000, has been sent. */
static struct core_end *reader(void)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end = core_end_create(&stream);

	core_post(end, AW_OP_READ, 200, 10, 0);
	core_tx(end);
	end->wire_len = 0;
	return end;
}

static enum aw_error response(uint32_t stag, uint64_t to, size_t len, bool last)
{
	struct core_end *end = reader();
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7000, 0);
	enum aw_error err;

	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 4), AW_OK);
	hdr = core_tagged(RDMAP_READ_RESP, stag, to);
	hdr.last = last;
	err = core_ulpdu(end, &hdr, len);
	assert_int_equal(end->placed, err || len == 0 ? 1 : 2);
	if (err)
		assert_int_equal(end->log[0].cqe.status, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
	return err;
}

static void aw_rx_read_response__second_segment(void **state)
{
	(void)state;
	assert_int_equal(response(0x7000, 4, 6, true), AW_OK);
	assert_int_equal(response(0x7000, 4, 5, false), AW_OK);
	assert_int_equal(response(0x7000, 4, 0, false), AW_OK);
	assert_int_equal(response(0x7001, 4, 6, true), AW_E_DDP_TAGGED_STAG);
	assert_int_equal(response(CORE_STAG, 4, 6, true), AW_E_DDP_TAGGED_STAG);
	assert_int_equal(response(0x7000, 5, 5, true), AW_E_DDP_TAGGED_BOUNDS);
	assert_int_equal(response(0x7000, 0, 4, false), AW_E_DDP_TAGGED_BOUNDS);
	assert_int_equal(response(0x7000, 4, 7, true), AW_E_DDP_TAGGED_BOUNDS);
	assert_int_equal(response(0x7000, 4, 60000, false), AW_E_DDP_TAGGED_BOUNDS);
	assert_int_equal(response(0x7000, 4, 5, true), AW_E_RDMAP_OP_UNSPECIFIED);
	assert_int_equal(response(0x7000, 4, 6, false), AW_E_RDMAP_OP_UNSPECIFIED);
	assert_int_equal(response(0x7000, 4, 0, true), AW_E_RDMAP_OP_UNSPECIFIED);
}

static void aw_rx_read_response__completes_once(void **state)
{
	struct core_end *end = reader();
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7000, 0);

	(void)state;
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_OK);
	assert_int_equal(end->logged, 1);
	assert_int_equal(end->log[0].cqe.byte_len, 10);
	assert_memory_equal(end->mem + 200, core_data, 10);
	/* The STag was good for that one Read only. */
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_E_RDMAP_OPCODE);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);
}

static void aw_rx_read_response__in_request_order(void **state)
{
	struct core_end *end = reader();
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7001, 0);

	(void)state;
	core_post(end, AW_OP_READ, 300, 10, 0);
	core_tx(end);
	assert_int_equal(end->qp.orq_count, 2);
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_E_DDP_TAGGED_STAG);
	core_end_destroy(end);
}

static void aw_rx_read_response__sink_gone(void **state)
{
	struct core_end *end = reader();
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7000, 0);

	(void)state;
	end->mr[0].pd = NULL;
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_E_LOCAL_CATASTROPHIC);
	assert_int_equal(end->log[0].cqe.status, AW_WC_LOC_PROT_ERR);
	assert_int_equal(end->placed, 0);
	core_end_destroy(end);

	end = reader();
	end->mr[0].access &= ~(uint32_t)AW_ACCESS_LOCAL_WRITE;
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_E_LOCAL_CATASTROPHIC);
	assert_int_equal(end->placed, 0);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_read_request__errors),
		cmocka_unit_test(aw_rx_read_request__shape),
		cmocka_unit_test(aw_rx_read_request__irq_full),
		cmocka_unit_test(aw_rx_read_request__size_0_is_answered),
		cmocka_unit_test(aw_rx_read_response__second_segment),
		cmocka_unit_test(aw_rx_read_response__completes_once),
		cmocka_unit_test(aw_rx_read_response__in_request_order),
		cmocka_unit_test(aw_rx_read_response__sink_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
