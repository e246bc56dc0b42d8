// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics (RFC 7306 5) as they arrive: each check on an Atomic Request and on an Atomic Response,
// and that a bad one changes nothing.
#include "../lib/core_pair.h"

#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define COUNTER 800 /* where in mem */

static const struct rdmap_atomic_req add_5 = {
	.op = RDMAP_FETCH_ADD,
	.request_id = 77,
	.stag = CORE_STAG,
	.to = CORE_IOVA + COUNTER,
	.add_swap_data = 5,
};

static enum aw_error request_of_len(struct core_end *end, uint32_t msn,
				    const struct rdmap_atomic_req *req, size_t len)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_REQ, DDP_QN_READ, msn, 0);
	uint8_t p[DDP_UNTAGGED_LEN + 60] = { 0 };

	ddp_put(&hdr, p);
	rdmap_atomic_req_put(req, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + len);
}

static enum aw_error request(struct core_end *end, uint32_t msn, const struct rdmap_atomic_req *req)
{
	return request_of_len(end, msn, req, RDMAP_ATOMIC_REQ_LEN);
}

static uint64_t value(const struct core_end *end, uint32_t at)
{
	uint64_t v;

	memcpy(&v, end->mem + at, sizeof(v));
	return v;
}

static void set(struct core_end *end, uint32_t at, uint64_t v)
{
	memcpy(end->mem + at, &v, sizeof(v));
}

static void expect_response(struct core_end *end, uint32_t msn, uint32_t id, uint64_t original)
{
	struct rdmap_atomic_resp resp;
	struct ddp_hdr hdr;
	const uint8_t *p;
	size_t len;

	end->wire_len = 0;
	assert_true(core_tx_one(end));
	p = core_peek(end, &hdr, &len);
	assert_int_equal(len, RDMAP_ATOMIC_RESP_LEN);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_ATOMIC_RESP));
	assert_int_equal(hdr.qn, DDP_QN_ATOMIC);
	assert_int_equal(hdr.msn, msn);
	assert_int_equal(hdr.mo, 0);
	assert_true(hdr.last && !hdr.tagged);
	resp = rdmap_atomic_resp_get(p);
	assert_int_equal(resp.request_id, id);
	assert_int_equal(resp.original, original);
}

/* The next that goes out, with so many octets of payload: its DDP header but no RDMA header. */
static void expect_terminate(struct core_end *end, const char *ctrl, uint32_t msn)
{
	struct ddp_hdr hdr, about;
	const uint8_t *p;
	size_t len;

	end->wire_len = 0;
	assert_true(core_tx_one(end));
	p = core_peek(end, &hdr, &len);
	assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
	assert_int_equal(len, 4 + 2 + DDP_UNTAGGED_LEN);
	assert_memory_equal(p, ctrl, 4);
	assert_int_equal(get_be16(p + 4), DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQ_LEN);
	assert_int_equal(ddp_get(p + 6, DDP_UNTAGGED_LEN, &about), AW_OK);
	assert_int_equal(about.ulp_ctrl, rdmap_ctrl(RDMAP_ATOMIC_REQ));
	assert_int_equal(about.qn, DDP_QN_READ);
	assert_int_equal(about.msn, msn);
}

/* Any peer may ask, as RFC 7306 1.1 has it: no agreement is needed. */
static void aw_rx_atomic_request__is_answered(void **state)
{
	struct rdmap_atomic_req swap = {
		.op = RDMAP_CMP_SWAP,
		.request_id = 78,
		.stag = CORE_STAG,
		.to = CORE_IOVA + COUNTER,
		.add_swap_data = 0x9999,
		.add_swap_mask = UINT64_MAX,
		.compare_data = 42,
		.compare_mask = UINT64_MAX,
	};
	struct core_end *end = core_responder();

	(void)state;
	set(end, COUNTER, 37);
	assert_int_equal(request(end, 1, &add_5), AW_OK);
	assert_int_equal(value(end, COUNTER), 37); /* its turn has not come */
	expect_response(end, 1, 77, 37);
	assert_int_equal(value(end, COUNTER), 42);
	assert_int_equal(request(end, 2, &swap), AW_OK);
	expect_response(end, 2, 78, 42);
	assert_int_equal(value(end, COUNTER), 0x9999);
	assert_int_equal(request(end, 3, &swap), AW_OK);
	expect_response(end, 3, 78, 0x9999);
	assert_int_equal(value(end, COUNTER), 0x9999);
	assert_int_equal(end->executed, 3);
	core_end_destroy(end);
}

static void aw_rx_atomic_request__errors(void **state)
{
	static const struct {
		uint32_t stag;
		uint64_t to;
		enum aw_error err;
	} cases[] = {
		{ CORE_STAG, CORE_IOVA + CORE_MEM - 8, AW_OK },
		{ 0xbad, CORE_IOVA, AW_E_RDMAP_STAG },
		{ 0x99, CORE_IOVA, AW_E_RDMAP_NOT_ASSOCIATED },
		{ 0x98, CORE_IOVA, AW_E_RDMAP_ACCESS },
		{ CORE_STAG, CORE_IOVA + CORE_MEM - 7, AW_E_RDMAP_BOUNDS },
		{ CORE_STAG, CORE_IOVA + CORE_MEM, AW_E_RDMAP_BOUNDS },
		{ CORE_STAG, CORE_IOVA - 8, AW_E_RDMAP_BOUNDS },
		{ CORE_STAG, UINT64_MAX - 6, AW_E_RDMAP_TO_WRAP },
		{ CORE_STAG, CORE_IOVA + 4, AW_E_RDMAP_STREAM_CATASTROPHIC },
		{ CORE_STAG, CORE_IOVA + 1, AW_E_RDMAP_STREAM_CATASTROPHIC },
		/* What counts is the address here, not the offset that the peer sees. */
		{ 0x97, CORE_IOVA + 3, AW_OK },
		{ 0x97, CORE_IOVA, AW_E_RDMAP_STREAM_CATASTROPHIC },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = core_responder();
		struct rdmap_atomic_req req = add_5;

		core_mr_add(end, 0x99, ~0u, 0, 100)->pd = &core_other_pd;
		core_mr_add(end, 0x98, ~(uint32_t)AW_ACCESS_REMOTE_ATOMIC, 0, 100);
		core_mr_add(end, 0x97, ~0u, 0, 100)->host += 5;
		req.stag = cases[i].stag;
		req.to = cases[i].to;
		assert_int_equal(request(end, 1, &req), cases[i].err);
		assert_int_equal(end->qp.irq_count, cases[i].err == AW_OK);
		core_tx(end);
		assert_int_equal(end->executed, cases[i].err == AW_OK);
		core_end_destroy(end);
	}
}

/* ibv_modify_qp may take the right away from all peers of the QP, whatever their STags grant. */
static void aw_rx_atomic_request__qp_grants_none(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	end->qp.remote_access &= ~(uint32_t)AW_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(request(end, 1, &add_5), AW_E_RDMAP_ACCESS);
	core_end_destroy(end);
}

/* RFC 7306 8.1 rule 2, and 8.2's code for an address that is not aligned. */
static void aw_rx_atomic_request__terminates(void **state)
{
	struct rdmap_atomic_req req = add_5;
	struct core_end *end = core_responder();

	(void)state;
	req.to++;
	assert_int_equal(request(end, 1, &req), AW_E_RDMAP_STREAM_CATASTROPHIC);
	expect_terminate(end, "\x02\x07\xc0", 1);
	core_end_destroy(end);
	end = core_responder();
	req.stag = 0xbad;
	assert_int_equal(request(end, 1, &req), AW_E_RDMAP_STAG);
	expect_terminate(end, "\x01\x00\xc0", 1);
	core_end_destroy(end);
}

static void aw_rx_atomic_request__unknown_operation(void **state)
{
	(void)state;
	for (uint8_t op = 0; op < 16; op++) {
		struct rdmap_atomic_req req = add_5;
		struct core_end *end = core_responder();
		bool known = op == 0 || op == 2;

		req.op = op;
		assert_int_equal(request(end, 1, &req), known ? AW_OK : AW_E_RDMAP_OPCODE);
		core_end_destroy(end);
	}
}

static void aw_rx_atomic_request__shape(void **state)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_REQ, DDP_QN_READ, 1, 0);
	struct core_end *end = core_responder();

	(void)state;
	assert_int_equal(request_of_len(end, 1, &add_5, 53), AW_E_DDP_TOO_LONG);
	core_end_destroy(end);
	end = core_responder();
	assert_int_equal(request_of_len(end, 1, &add_5, 51), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_responder();
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 52), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_responder();
	assert_int_equal(request(end, 2, &add_5), AW_E_DDP_MSN_RANGE);
	core_end_destroy(end);
}

/* docs/extensions.md: only where it was agreed on; by the right to write, which grants no look. */
static void aw_rx_atomic_request__write(void **state)
{
	const struct rdmap_atomic_req write = {
		.op = RDMAP_ATOMIC_WRITE,
		.request_id = 79,
		.stag = 0x98,
		.to = 0,
		.add_swap_data = 0x0102030405060708,
	};
	struct rdmap_atomic_req unaligned = write;
	struct core_end *end = core_responder();

	(void)state;
	end->qp.stream.extensions = true;
	core_mr_add(end, 0x98, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE, COUNTER, 100);
	assert_int_equal(request(end, 1, &write), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);

	end = core_responder();
	end->qp.stream.extensions = end->qp.stream.placement = true;
	core_mr_add(end, 0x98, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE, COUNTER, 100)->iova =
		0;
	set(end, COUNTER, 42);
	assert_int_equal(request(end, 1, &write), AW_OK);
	/* Before its answer: a Send that follows tells the program of it. */
	assert_memory_equal(end->mem + COUNTER, "\1\2\3\4\5\6\7\10", 8);
	expect_response(end, 1, 79, 0);
	assert_int_equal(end->executed, 1);
	unaligned.to = 1;
	assert_int_equal(request(end, 2, &unaligned), AW_E_RDMAP_STREAM_CATASTROPHIC);
	core_end_destroy(end);

	end = core_responder();
	end->qp.stream.extensions = end->qp.stream.placement = true;
	core_mr_add(end, 0x98, ~(uint32_t)AW_ACCESS_REMOTE_WRITE, COUNTER, 100)->iova = 0;
	assert_int_equal(request(end, 1, &write), AW_E_RDMAP_ACCESS);
	core_end_destroy(end);
}

/* It passes Reads that are not answered yet, but no atomic that is not executed. */
static void aw_rx_atomic_request__write_keeps_order(void **state)
{
	struct rdmap_atomic_req write = {
		.op = RDMAP_ATOMIC_WRITE,
		.request_id = 79,
		.stag = CORE_STAG,
		.to = CORE_IOVA + COUNTER,
	};
	struct core_end *end = core_responder();

	(void)state;
	end->qp.stream.extensions = end->qp.stream.placement = true;
	set(end, COUNTER, 42);
	assert_int_equal(request(end, 1, &add_5), AW_OK);
	assert_int_equal(value(end, COUNTER), 42);
	assert_int_equal(request(end, 2, &write), AW_OK);
	assert_int_equal(value(end, COUNTER), 0);
	expect_response(end, 1, add_5.request_id, 42);
	expect_response(end, 2, 79, 0);
	assert_int_equal(end->executed, 2);
	core_end_destroy(end);
}

/* RFC 7306 5.2: ORD and IRD bound Reads and atomics together. */
static void aw_rx_atomic_request__irq_full(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	for (uint32_t msn = 1; msn <= CORE_READS; msn++)
		assert_int_equal(request(end, msn, &add_5), AW_OK);
	assert_int_equal(request(end, CORE_READS + 1, &add_5), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

/* An initiator whose FetchAdd has gone out as message 1; its result goes to mem[200]. */
static struct core_end *adder(void)
{
	struct core_end *end = core_initiator(1448);
	struct aw_swqe *wqe;

	end->qp.stream.extensions = true;
	wqe = core_wr(end, AW_OP_FETCH_ADD, 200, 8);
	wqe->compare_add = 5;
	aw_qp_post(&end->qp);
	core_tx(end);
	return end;
}

static enum aw_error response_of_len(struct core_end *end, uint32_t msn, uint32_t id, size_t len)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_RESP, DDP_QN_ATOMIC, msn, 0);
	const struct rdmap_atomic_resp resp = { id, 0x0102030405060708 };
	uint8_t p[DDP_UNTAGGED_LEN + 20] = { 0 };

	ddp_put(&hdr, p);
	rdmap_atomic_resp_put(&resp, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + len);
}

static enum aw_error response(struct core_end *end, uint32_t msn, uint32_t id)
{
	return response_of_len(end, msn, id, RDMAP_ATOMIC_RESP_LEN);
}

static void aw_rx_atomic_response__completes(void **state)
{
	struct core_end *end = adder();

	(void)state;
	assert_int_equal(end->logged, 0);
	assert_int_equal(response(end, 1, 0x7000), AW_OK);
	core_expect_sq(end, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	assert_int_equal(end->log[0].cqe.byte_len, 8);
	assert_int_equal(value(end, 200), 0x0102030405060708);
	assert_int_equal(end->qp.orq_count, 0);
	/* Nothing more is asked for. */
	assert_int_equal(response(end, 2, 0x7001), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
}

static void aw_rx_atomic_response__errors(void **state)
{
	static const struct {
		uint32_t msn, id;
		size_t len;
		enum aw_error err;
	} cases[] = {
		{ 1, 0x7000, 12, AW_OK },
		{ 2, 0x7000, 12, AW_E_DDP_MSN_RANGE },
		{ 0, 0x7000, 12, AW_E_DDP_MSN_RANGE },
		{ 1, 0x7001, 12, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 1, 0x7000, 11, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 1, 0x7000, 13, AW_E_DDP_TOO_LONG },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = adder();

		assert_int_equal(response_of_len(end, cases[i].msn, cases[i].id, cases[i].len),
				 cases[i].err);
		assert_int_equal(end->placed, cases[i].err == AW_OK);
		core_expect_sq(end, AW_OP_FETCH_ADD,
			       cases[i].err ? AW_WC_WR_FLUSH_ERR : AW_WC_SUCCESS);
		core_end_destroy(end);
	}
}

static void aw_rx_atomic_response__more_segments(void **state)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_RESP, DDP_QN_ATOMIC, 1, 0);
	struct core_end *end = adder();

	(void)state;
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 12), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
}

/* Requests are answered in order, so the oldest one is what a response must be of. */
static void aw_rx_atomic_response__out_of_turn(void **state)
{
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7000, 0);
	struct core_end *end = core_initiator(1448);

	(void)state;
	end->qp.stream.extensions = true;
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_post(end, AW_OP_FETCH_ADD, 200, 8, 0);
	core_tx(end);
	assert_int_equal(response(end, 1, 0x7001), AW_E_RDMAP_OPCODE);
	assert_int_equal(value(end, 200), 0);
	core_end_destroy(end);
	end = adder();
	assert_int_equal(core_ulpdu(end, &hdr, 8), AW_E_RDMAP_OPCODE);
	assert_int_equal(value(end, 200), 0);
	core_end_destroy(end);
}

/* Queue 3 is there only for who may have asked. */
static void aw_rx_atomic_response__not_agreed_on(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	assert_int_equal(response(end, 1, 0), AW_E_DDP_QN);
	core_end_destroy(end);
}

/* Another opcode on queue 3, and an Atomic Response on another queue. */
static void aw_rx_atomic_response__queues(void **state)
{
	(void)state;
	for (uint32_t qn = 0; qn < 5; qn++) {
		struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_RESP, qn, 1, 0);
		struct core_end *end = adder();
		enum aw_error err = qn < 3 ? AW_E_RDMAP_OPCODE : qn > 3 ? AW_E_DDP_QN : AW_OK;

		if (err)
			assert_int_equal(core_ulpdu(end, &hdr, 12), err);
		core_end_destroy(end);
		end = adder();
		hdr = core_untagged(RDMAP_SEND, DDP_QN_ATOMIC, 1, 0);
		assert_int_equal(core_ulpdu(end, &hdr, 12), AW_E_RDMAP_OPCODE);
		core_end_destroy(end);
	}
}

/* The sink went away while the request was out. */
static void aw_rx_atomic_response__sink_gone(void **state)
{
	struct core_end *end = adder();

	(void)state;
	end->mr[0].pd = NULL;
	assert_int_equal(response(end, 1, 0x7000), AW_E_LOCAL_CATASTROPHIC);
	core_expect_sq(end, AW_OP_FETCH_ADD, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_atomic_request__is_answered),
		cmocka_unit_test(aw_rx_atomic_request__errors),
		cmocka_unit_test(aw_rx_atomic_request__qp_grants_none),
		cmocka_unit_test(aw_rx_atomic_request__terminates),
		cmocka_unit_test(aw_rx_atomic_request__unknown_operation),
		cmocka_unit_test(aw_rx_atomic_request__shape),
		cmocka_unit_test(aw_rx_atomic_request__write),
		cmocka_unit_test(aw_rx_atomic_request__write_keeps_order),
		cmocka_unit_test(aw_rx_atomic_request__irq_full),
		cmocka_unit_test(aw_rx_atomic_response__completes),
		cmocka_unit_test(aw_rx_atomic_response__errors),
		cmocka_unit_test(aw_rx_atomic_response__more_segments),
		cmocka_unit_test(aw_rx_atomic_response__out_of_turn),
		cmocka_unit_test(aw_rx_atomic_response__not_agreed_on),
		cmocka_unit_test(aw_rx_atomic_response__queues),
		cmocka_unit_test(aw_rx_atomic_response__sink_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
