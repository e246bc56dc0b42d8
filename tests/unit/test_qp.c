// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's states: start, close from either side, abort, and what is flushed in which order.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void expect(struct core_end *end, enum aw_queue queue, uint64_t wr_id,
		   enum aw_wc_status status)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, queue);
	assert_int_equal(c->cqe.wr_id, wr_id);
	assert_int_equal(c->cqe.status, status);
	if (status != AW_WC_SUCCESS)
		assert_true(c->cqe.flags & AW_WC_SOLICITED);
}

static void aw_qp_start__cuts_ird_and_ord_to_memory(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.ird = stream.ord = MPA_IRD_ORD_NONE;
	end = core_end_create(&stream);
	assert_int_equal(end->qp.stream.ird, CORE_READS);
	assert_int_equal(end->qp.stream.ord, CORE_READS);
	assert_int_equal(end->qp.state, AW_QP_RTS);
	core_end_destroy(end);
}

static void aw_qp_close__nothing_posted(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_qp_close(&end->qp);
	assert_int_equal(end->qp.state, AW_QP_CLOSING);
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

static void aw_qp_close__what_was_posted_goes_out(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_recv(&pair->b, 1, 0, 10);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	aw_qp_close(&pair->a.qp);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	assert_int_equal(pair->a.logged, 0); /* in order: not before the older ones */
	assert_false(aw_qp_tx_finished(&pair->a.qp));
	core_tx(&pair->a);
	assert_false(aw_qp_tx_finished(&pair->a.qp)); /* a Read of ours is outstanding */
	core_pump(pair);
	expect(&pair->a, AW_SQ, AW_OP_READ, AW_WC_SUCCESS);
	expect(&pair->a, AW_SQ, AW_OP_SEND, AW_WC_SUCCESS);
	expect(&pair->a, AW_SQ, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	expect(&pair->b, AW_RQ, 1, AW_WC_SUCCESS);
	assert_true(aw_qp_tx_finished(&pair->a.qp));
	assert_int_equal(pair->a.qp.state, AW_QP_CLOSING);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	expect(&pair->a, AW_SQ, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	assert_true(aw_qp_tx_finished(&pair->a.qp));
	core_pair_destroy(pair);
}

static void aw_qp_tx_finished__only_once_sent(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct aw_tx_out out = { .arena = end->arena,
				 .arena_len = AW_TX_ARENA_MIN,
				 .iov = end->iov,
				 .iov_max = AW_TX_IOV_MIN };

	(void)state;
	core_post(end, AW_OP_SEND, 0, 1, 0);
	aw_qp_close(&end->qp);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_tx_sent(&end->qp, out.octets - 1);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_tx_sent(&end->qp, 1);
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

static void aw_qp_close__peer_is_still_served(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	aw_qp_close(&pair->b.qp);
	core_recv(&pair->b, 1, 0, 10);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_false(aw_qp_tx_finished(&pair->b.qp));
	core_pump(pair);
	expect(&pair->a, AW_SQ, AW_OP_READ, AW_WC_SUCCESS);
	expect(&pair->b, AW_RQ, 1, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* RFC 5041 6.2.1: after the peer's FIN outbound requests are processed normally. */
static void aw_qp_peer_closed__half_close(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 3000, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	aw_qp_peer_closed(&pair->b.qp, 0);
	assert_int_equal(pair->b.qp.state, AW_QP_CLOSING);
	core_post(&pair->b, AW_OP_WRITE, 0, 10, 0);
	core_pump(pair);
	expect(&pair->a, AW_SQ, AW_OP_READ, AW_WC_SUCCESS);
	expect(&pair->b, AW_SQ, AW_OP_WRITE, AW_WC_SUCCESS);
	assert_true(aw_qp_tx_finished(&pair->b.qp));
	core_pair_destroy(pair);
}

static void aw_qp_peer_closed__reads_flush_in_the_end(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_tx(end);
	core_post(end, AW_OP_WRITE, 0, 10, 0);
	core_post(end, AW_OP_READ, 0, 10, 0); /* cannot be answered: never starts */
	aw_qp_peer_closed(&end->qp, 0);
	assert_false(aw_qp_tx_finished(&end->qp));
	core_tx(end);
	assert_int_equal(end->wire_len, 52 + 32); /* one Read Request and the Write */
	assert_true(aw_qp_tx_finished(&end->qp));
	assert_int_equal(end->logged, 0);
	aw_qp_abort(&end->qp, AW_OK);
	expect(end, AW_SQ, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_SQ, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR); /* none is good behind a bad one */
	expect(end, AW_SQ, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(end->qp.error, AW_OK);
	core_end_destroy(end);
}

static void aw_qp_peer_closed__inside_an_fpdu(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_recv(end, 1, 0, 10);
	aw_qp_peer_closed(&end->qp, 1);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->qp.error, AW_E_MPA_CLOSED);
	expect(end, AW_RQ, 1, AW_WC_WR_FLUSH_ERR);
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

static void aw_qp_peer_closed__in_idle(void **state)
{
	struct core_end *end = core_end_create(NULL);

	(void)state;
	aw_qp_peer_closed(&end->qp, 0);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	core_end_destroy(end);
}

/* A responder that never heard an FPDU may send nothing; after FIN it never will. */
static void aw_qp_peer_closed__before_the_first_fpdu(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end = core_end_create(&stream);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 10, 0);
	aw_qp_close(&end->qp);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_qp_peer_closed(&end->qp, 0);
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

static void aw_qp_abort__flushes_in_order(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr = { .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = 1 };

	(void)state;
	core_recv(end, 1, 0, 10);
	core_recv(end, 2, 0, 10);
	core_inject(end, &hdr, "ab", 2); /* half of a Send */
	core_post(end, AW_OP_WRITE, 0, 1, 0);
	core_tx(end);
	core_post(end, AW_OP_SEND, 0, 1, 0);
	core_wr(end, AW_OP_READ, 0, 1)->flags = 0; /* flushed WRs are heard of even so */
	aw_qp_post(&end->qp);
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	expect(end, AW_SQ, AW_OP_WRITE, AW_WC_SUCCESS);
	expect(end, AW_SQ, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_SQ, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_RQ, 1, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_RQ, 2, AW_WC_WR_FLUSH_ERR);
	assert_null(core_cqe(end));
	assert_int_equal(end->log[1].cqe.vendor_err, AW_E_MPA_CLOSED);
	aw_qp_abort(&end->qp, AW_OK);
	assert_int_equal(end->qp.error, AW_E_MPA_CLOSED);
	assert_int_equal(end->logged, 5);
	core_end_destroy(end);
}

/* Given out is not sent: after an abort the octets never go. */
static void aw_qp_abort__unsent_is_flushed(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct aw_tx_out out = { .arena = end->arena,
				 .arena_len = AW_TX_ARENA_MIN,
				 .iov = end->iov,
				 .iov_max = AW_TX_IOV_MIN };

	(void)state;
	core_post(end, AW_OP_SEND, 0, 1, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	expect(end, AW_SQ, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_NONE);
	core_end_destroy(end);
}

/* The one whose octets were next fails, behind a Read that waits and a WR that TCP has. */
static void aw_qp_payload_gone__fails_the_wr(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;
	struct aw_tx_out out = { .arena_len = AW_TX_ARENA_MIN, .iov_max = AW_TX_IOV_MIN };

	(void)state;
	stream.crc = false;
	end = core_end_create(&stream);
	out.arena = end->arena;
	out.iov = end->iov;
	core_post(end, AW_OP_WRITE, 0, 1000, 0);
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_post(end, AW_OP_SEND, 0, 2000, 0);
	core_post(end, AW_OP_WRITE, 0, 2000, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	aw_tx_sent(&end->qp, out.octets - 1);
	aw_qp_payload_gone(&end->qp);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	expect(end, AW_SQ, AW_OP_WRITE, AW_WC_SUCCESS);
	expect(end, AW_SQ, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_SQ, AW_OP_SEND, AW_WC_LOC_PROT_ERR);
	expect(end, AW_SQ, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void aw_qp_abort__in_idle(void **state)
{
	struct core_end *end = core_end_create(NULL);

	(void)state;
	core_recv(end, 1, 0, 10);
	assert_int_equal(end->logged, 0);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	expect(end, AW_RQ, 1, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void aw_qp_post__in_error_flushes_at_once(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	for (unsigned int i = 0; i < 3 * CORE_SQ; i++) {
		core_post(end, AW_OP_SEND, 0, 1, 0);
		expect(end, AW_SQ, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	}
	core_recv(end, 9, 0, 1);
	expect(end, AW_RQ, 9, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void aw_qp_post__in_terminate_flushes_at_once(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	aw_qp_terminate(&end->qp, AW_E_LOCAL_CATASTROPHIC);
	core_post(end, AW_OP_SEND, 0, 1, 0);
	expect(end, AW_SQ, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_recv(end, 9, 0, 1);
	expect(end, AW_RQ, 9, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_end_destroy(end);
}

/* Other QPs live off an SRQ: only the receive that was taken is this one's to flush. */
static void aw_qp_abort__leaves_the_srq(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr = { .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = 1 };

	(void)state;
	end->qp.srq = true;
	core_recv(end, 1, 0, 10);
	core_recv(end, 2, 0, 10);
	core_inject(end, &hdr, "ab", 2);
	aw_qp_abort(&end->qp, AW_OK);
	expect(end, AW_RQ, 1, AW_WC_WR_FLUSH_ERR);
	assert_null(core_cqe(end));
	aw_qp_recv_posted(&end->qp);
	assert_int_equal(aw_rq_count(&end->rq), 1);
	core_end_destroy(end);
}

static void aw_qp_terminate__is_the_last_message(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 1, 0);
	aw_qp_terminate(&end->qp, AW_E_MPA_INSUFFICIENT_IRD);
	assert_false(aw_qp_tx_finished(&end->qp));
	assert_true(core_tx_one(end));
	assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x20\x06\0\0", 4);
	assert_false(core_tx_one(end));
	assert_true(aw_qp_tx_finished(&end->qp));
	aw_qp_terminate(&end->qp, AW_E_LOCAL_CATASTROPHIC);
	assert_int_equal(end->qp.error, AW_E_MPA_INSUFFICIENT_IRD);
	aw_qp_peer_closed(&end->qp, 3);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->qp.error, AW_E_MPA_INSUFFICIENT_IRD);
	core_end_destroy(end);
}

/* RFC 6581 9.2: the RTR is due, but a Terminate goes before all. */
static void aw_qp_terminate__before_the_rtr(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.p2p = true;
	stream.rtr = MPA_RTR_WRITE;
	end = core_end_create(&stream);
	aw_qp_terminate(&end->qp, AW_E_MPA_NO_MATCHING_RTR);
	core_tx(end);
	assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x20\x07\0\0", 4);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_qp_start__cuts_ird_and_ord_to_memory),
		cmocka_unit_test(aw_qp_close__nothing_posted),
		cmocka_unit_test(aw_qp_close__what_was_posted_goes_out),
		cmocka_unit_test(aw_qp_tx_finished__only_once_sent),
		cmocka_unit_test(aw_qp_close__peer_is_still_served),
		cmocka_unit_test(aw_qp_peer_closed__half_close),
		cmocka_unit_test(aw_qp_peer_closed__reads_flush_in_the_end),
		cmocka_unit_test(aw_qp_peer_closed__inside_an_fpdu),
		cmocka_unit_test(aw_qp_peer_closed__in_idle),
		cmocka_unit_test(aw_qp_peer_closed__before_the_first_fpdu),
		cmocka_unit_test(aw_qp_abort__flushes_in_order),
		cmocka_unit_test(aw_qp_abort__unsent_is_flushed),
		cmocka_unit_test(aw_qp_payload_gone__fails_the_wr),
		cmocka_unit_test(aw_qp_abort__in_idle),
		cmocka_unit_test(aw_qp_post__in_error_flushes_at_once),
		cmocka_unit_test(aw_qp_post__in_terminate_flushes_at_once),
		cmocka_unit_test(aw_qp_abort__leaves_the_srq),
		cmocka_unit_test(aw_qp_terminate__is_the_last_message),
		cmocka_unit_test(aw_qp_terminate__before_the_rtr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
