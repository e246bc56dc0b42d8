// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Flush as it arrives: each check on a Flush Request and on a Flush Response, and that nothing
// is flushed for a bad one.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const struct rdmap_flush_req usual = {
	.type = RDMAP_FLUSH_GLOBAL,
	.level = RDMAP_FLUSH_RANGE,
	.request_id = 77,
	.stag = CORE_STAG,
	.to = CORE_IOVA,
	.len = 100,
};

static struct core_end *placing_responder(void)
{
	struct core_end *end = core_responder();

	end->qp.stream.extensions = end->qp.stream.placement = true;
	return end;
}

static enum aw_error request_of_len(struct core_end *end, uint32_t msn,
				    const struct rdmap_flush_req *req, size_t len)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_FLUSH_REQ, DDP_QN_READ, msn, 0);
	uint8_t p[DDP_UNTAGGED_LEN + 60] = { 0 };

	ddp_put(&hdr, p);
	rdmap_flush_req_put(req, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + len);
}

static enum aw_error request(struct core_end *end, uint32_t msn, const struct rdmap_flush_req *req)
{
	return request_of_len(end, msn, req, RDMAP_FLUSH_REQ_LEN);
}

static void aw_rx_flush_request__is_answered(void **state)
{
	struct core_end *end = placing_responder();
	struct ddp_hdr hdr;
	const uint8_t *p;
	size_t len;

	(void)state;
	assert_int_equal(request(end, 1, &usual), AW_OK);
	end->wire_len = 0;
	assert_true(core_tx_one(end));
	p = core_peek(end, &hdr, &len);
	assert_int_equal(hdr.ulp_ctrl, 0x4d);
	assert_int_equal(hdr.qn, DDP_QN_ATOMIC);
	assert_int_equal(hdr.msn, 1);
	assert_true(hdr.last && !hdr.tagged);
	assert_int_equal(len, RDMAP_FLUSH_RESP_LEN);
	assert_int_equal(rdmap_flush_resp_get(p), 77);
	core_end_destroy(end);
}

static void aw_rx_flush_request__not_agreed_on(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	end->qp.stream.extensions = true;
	assert_int_equal(request(end, 1, &usual), AW_E_RDMAP_OPCODE);
	assert_int_equal(end->write_backs, 0);
	core_end_destroy(end);
}

/* Types 1 to 3 and two levels; nothing else is known. */
static void aw_rx_flush_request__kinds(void **state)
{
	(void)state;
	for (unsigned int type = 0; type < 256; type++) {
		for (uint8_t level = 0; level < 3; level++) {
			struct core_end *end = placing_responder();
			struct rdmap_flush_req req = usual;
			bool known = type >= 1 && type <= 3 && level <= 1;

			req.type = (uint8_t)type;
			req.level = level;
			assert_int_equal(request(end, 1, &req),
					 known ? AW_OK : AW_E_RDMAP_OP_UNSPECIFIED);
			core_end_destroy(end);
		}
	}
}

static void aw_rx_flush_request__shape(void **state)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_FLUSH_REQ, DDP_QN_READ, 1, 0);
	struct core_end *end = placing_responder();

	(void)state;
	assert_int_equal(request_of_len(end, 1, &usual, 29), AW_E_DDP_TOO_LONG);
	core_end_destroy(end);
	end = placing_responder();
	assert_int_equal(request_of_len(end, 1, &usual, 27), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = placing_responder();
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 28), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = placing_responder();
	assert_int_equal(request(end, 2, &usual), AW_E_DDP_MSN_RANGE);
	core_end_destroy(end);
}

/* ORD and IRD bound Reads, atomics and Flushes together. */
static void aw_rx_flush_request__irq_full(void **state)
{
	struct core_end *end = placing_responder();

	(void)state;
	for (uint32_t msn = 1; msn <= CORE_READS; msn++)
		assert_int_equal(request(end, msn, &usual), AW_OK);
	assert_int_equal(request(end, CORE_READS + 1, &usual), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

static void aw_rx_flush_request__errors(void **state)
{
	static const struct {
		uint32_t stag;
		uint64_t to, len;
		enum aw_error err;
	} cases[] = {
		{ CORE_STAG, CORE_IOVA + CORE_MEM, 0, AW_OK },
		{ CORE_STAG, CORE_IOVA + CORE_MEM, 1, AW_E_RDMAP_BOUNDS },
		{ CORE_STAG, CORE_IOVA - 1, 1, AW_E_RDMAP_BOUNDS },
		{ CORE_STAG, UINT64_MAX, 2, AW_E_RDMAP_TO_WRAP },
		{ 0xbad, CORE_IOVA, 1, AW_E_RDMAP_STAG },
		{ 0x97, 0, 1, AW_E_RDMAP_NOT_ASSOCIATED },
		{ 0x98, 0, 1, AW_E_RDMAP_ACCESS },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = placing_responder();
		struct rdmap_flush_req req = usual;

		core_mr_add(end, 0x97, ~0u, 0, 100)->pd = &core_other_pd;
		core_mr_add(end, 0x98, ~(uint32_t)AW_ACCESS_FLUSH_GLOBAL, 0, 100);
		req.stag = cases[i].stag;
		req.to = cases[i].to;
		req.len = cases[i].len;
		assert_int_equal(request(end, 1, &req), cases[i].err);
		assert_int_equal(end->qp.irq_count, cases[i].err == AW_OK);
		core_end_destroy(end);
	}
}

/* An initiator whose Flush has gone out as message 1. */
static struct core_end *flusher(void)
{
	struct core_end *end = core_initiator(1448);

	end->qp.stream.extensions = end->qp.stream.placement = true;
	core_wr(end, AW_OP_FLUSH, 0, 0)->access = RDMAP_FLUSH_GLOBAL;
	aw_qp_post(&end->qp);
	core_tx(end);
	return end;
}

static enum aw_error response_of_len(struct core_end *end, uint32_t msn, uint32_t id, size_t len)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_FLUSH_RESP, DDP_QN_ATOMIC, msn, 0);
	uint8_t p[DDP_UNTAGGED_LEN + 20] = { 0 };

	ddp_put(&hdr, p);
	rdmap_flush_resp_put(id, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + len);
}

static void aw_rx_flush_response__errors(void **state)
{
	static const struct {
		uint32_t msn, id;
		size_t len;
		enum aw_error err;
	} cases[] = {
		{ 1, 0x7000, 4, AW_OK },
		{ 2, 0x7000, 4, AW_E_DDP_MSN_RANGE },
		{ 1, 0x7001, 4, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 1, 0x7000, 3, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 1, 0x7000, 5, AW_E_DDP_TOO_LONG },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = flusher();

		assert_int_equal(response_of_len(end, cases[i].msn, cases[i].id, cases[i].len),
				 cases[i].err);
		core_expect_sq(end, AW_OP_FLUSH, cases[i].err ? AW_WC_WR_FLUSH_ERR : AW_WC_SUCCESS);
		core_end_destroy(end);
	}
}

/* Requests are answered in order and each by its own kind; and nothing is asked for after the last. */
static void aw_rx_flush_response__out_of_turn(void **state)
{
	struct ddp_hdr read = core_tagged(RDMAP_READ_RESP, 0x7000, 0);
	struct ddp_hdr atomic = core_untagged(RDMAP_ATOMIC_RESP, DDP_QN_ATOMIC, 1, 0);
	struct core_end *end = flusher();

	(void)state;
	assert_int_equal(core_ulpdu(end, &read, 0), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
	end = flusher();
	assert_int_equal(core_ulpdu(end, &atomic, 12), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
	end = flusher();
	assert_int_equal(response_of_len(end, 1, 0x7000, 4), AW_OK);
	assert_int_equal(response_of_len(end, 2, 0x7001, 4), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
	end = core_initiator(1448);
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_tx(end);
	end->qp.stream.extensions = true;
	assert_int_equal(response_of_len(end, 1, 0x7000, 4), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_flush_request__is_answered),
		cmocka_unit_test(aw_rx_flush_request__not_agreed_on),
		cmocka_unit_test(aw_rx_flush_request__kinds),
		cmocka_unit_test(aw_rx_flush_request__shape),
		cmocka_unit_test(aw_rx_flush_request__irq_full),
		cmocka_unit_test(aw_rx_flush_request__errors),
		cmocka_unit_test(aw_rx_flush_response__errors),
		cmocka_unit_test(aw_rx_flush_response__out_of_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
