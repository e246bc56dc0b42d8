// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message that waits for its receive, and what the peer sends behind it: InfiniBand's order, octet by octet between two cores.
#include "../lib/core_pair.h"

#include "core/atomic.h"
#include "wire/fpdu.h"
#include "wire/octets.h"
#include "wire/rnr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define SENT 100 /* octets of a Send */
#define AT_SEND 0 /* where its octets are, */
#define AT_RECV 1000 /* and where they go */
#define AT_READ 2000 /* where a Read's octets go */
#define AT_WRITE 3000 /* where a Write's go */
#define BIG 90000

static void may_wait(struct core_end *end)
{
	end->qp.keeps = true;
	end->qp.rnr_holds = true;
}

/* Ends that have agreed, as the roce persona's. */
static struct core_pair *keeping(void)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	may_wait(&pair->a);
	may_wait(&pair->b);
	return pair;
}

/* A Send whose octets begin with first. */
static void post_send(struct core_end *from, uint8_t first)
{
	from->mem[AT_SEND] = first;
	core_post(from, AW_OP_SEND, AT_SEND, SENT, 0);
	core_tx(from);
}

static void expect_receive(struct core_end *end, uint64_t wr_id, uint32_t len)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.wr_id, wr_id);
	assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
	assert_int_equal(c->cqe.byte_len, len);
}

/* The program posts the receive, and the driver tries again. */
static void receive(struct core_end *end, uint64_t wr_id)
{
	core_recv(end, wr_id, AT_RECV, SENT);
	aw_rx_stashed(&end->qp);
}

/* b's Send waits at a. */
static struct core_pair *with_one_waiting(void)
{
	struct core_pair *pair = keeping();

	post_send(&pair->b, 7);
	core_pump(pair);
	assert_true(aw_qp_has_waiting(&pair->a.qp));
	assert_int_equal(pair->a.qp.rx_held, 0);
	return pair;
}

static void answer__of_a_read_overtakes(void **state)
{
	struct core_pair *pair = with_one_waiting();

	(void)state;
	memset(pair->b.mem + AT_WRITE, 0x33, SENT);
	core_post(&pair->a, AW_OP_READ, AT_READ, SENT, AT_WRITE);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	assert_memory_equal(pair->a.mem + AT_READ, pair->b.mem + AT_WRITE, SENT);
	assert_null(core_cqe(&pair->b));

	receive(&pair->a, 50);
	expect_receive(&pair->a, 50, SENT);
	assert_int_equal(pair->a.mem[AT_RECV], 7);
	assert_false(aw_qp_has_waiting(&pair->a.qp));
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void answer__of_an_atomic_overtakes(void **state)
{
	struct core_pair *pair = with_one_waiting();
	struct aw_swqe *wqe;
	uint64_t before = 40, after, got;

	(void)state;
	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	memcpy(pair->b.mem + AT_WRITE, &before, sizeof(before));
	wqe = core_wr(&pair->a, AW_OP_FETCH_ADD, AT_READ, AW_ATOMIC_LEN);
	wqe->to = CORE_IOVA + AT_WRITE;
	wqe->compare_add = 2;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	memcpy(&got, pair->a.mem + AT_READ, sizeof(got));
	memcpy(&after, pair->b.mem + AT_WRITE, sizeof(after));
	assert_int_equal(got, 40);
	assert_int_equal(after, 42);
	receive(&pair->a, 50);
	expect_receive(&pair->a, 50, SENT);
	core_pair_destroy(pair);
}

/* The acknowledgement of a's own Send, and no earlier than the peer has it. */
static void answer__that_acknowledges_overtakes(void **state)
{
	struct core_pair *pair = with_one_waiting();

	(void)state;
	post_send(&pair->a, 9);
	core_pump(pair);
	assert_null(core_cqe(&pair->a)); /* it waits at b, whose TCP has it */
	receive(&pair->b, 60);
	expect_receive(&pair->b, 60, SENT);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* Each end waits for its Read before it posts the receive. */
static void both__wait_with_a_read_under_way(void **state)
{
	struct core_pair *pair = keeping();
	struct core_end *ends[] = { &pair->a, &pair->b };

	(void)state;
	for (int i = 0; i < 2; i++) {
		core_post(ends[i], AW_OP_READ, AT_READ, SENT, AT_WRITE);
		post_send(ends[i], (uint8_t)i);
	}
	core_pump(pair);
	for (int i = 0; i < 2; i++) {
		assert_true(aw_qp_has_waiting(&ends[i]->qp));
		core_expect_sq(ends[i], AW_OP_READ, AW_WC_SUCCESS);
		assert_null(core_cqe(ends[i]));
	}
	for (int i = 0; i < 2; i++) {
		receive(ends[i], 70);
		expect_receive(ends[i], 70, SENT);
	}
	core_pump(pair);
	for (int i = 0; i < 2; i++)
		core_expect_sq(ends[i], AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* A Write behind it is not seen before, a Read behind it sees it, and a second Send waits in its turn. */
static void requests__keep_their_order(void **state)
{
	struct core_pair *pair = with_one_waiting();

	(void)state;
	pair->b.mem[AT_SEND + 500] = 0x44;
	core_post(&pair->b, AW_OP_WRITE, AT_SEND + 500, 1, AT_WRITE);
	core_post(&pair->b, AW_OP_READ, AT_READ, 1, AT_RECV);
	core_post(&pair->b, AW_OP_SEND, AT_SEND, SENT, 0);
	core_pump(pair);
	assert_int_equal(pair->a.mem[AT_WRITE], 0);
	assert_null(core_cqe(&pair->b));

	receive(&pair->a, 50);
	expect_receive(&pair->a, 50, SENT);
	assert_int_equal(pair->a.mem[AT_WRITE], 0x44);
	assert_true(aw_qp_has_waiting(&pair->a.qp)); /* the second Send */
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_READ, AW_WC_SUCCESS);
	assert_int_equal(pair->b.mem[AT_READ], 7);
	assert_null(core_cqe(&pair->b));
	receive(&pair->a, 51);
	expect_receive(&pair->a, 51, SENT);
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* The peer's requests stop between two FPDUs, and it still answers. */
static void peer__stops_until_this_end_is_ready(void **state)
{
	struct core_pair *pair = keeping();
	unsigned int fpdus = 0;

	(void)state;
	/* Some FPDUs at a time, so that the peer is told in the middle of its message. */
	core_post(&pair->b, AW_OP_SEND, AT_SEND, BIG, 0);
	core_post(&pair->b, AW_OP_SEND, AT_SEND, SENT, 0);
	while (!pair->b.qp.peer_not_ready) {
		assert_true(core_tx_one(&pair->b));
		fpdus++;
		core_deliver(&pair->b, &pair->a);
		core_tx(&pair->a);
		core_deliver(&pair->a, &pair->b);
	}
	assert_true(pair->b.qp.tx_begun);
	assert_false(core_tx_one(&pair->b));
	assert_true(fpdus > AW_STASH_TELL / 2 / 1448);

	core_post(&pair->a, AW_OP_READ, AT_READ, SENT, AT_WRITE);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	assert_true(pair->b.qp.tx_begun);

	core_recv(&pair->a, 50, AT_RECV, BIG);
	aw_rx_stashed(&pair->a.qp);
	assert_true(aw_stash_is_empty(&pair->a.qp.stash));
	core_pump(pair);
	assert_false(pair->b.qp.peer_not_ready);
	expect_receive(&pair->a, 50, BIG);
	receive(&pair->a, 51);
	expect_receive(&pair->a, 51, SENT);
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* An end that was ready again before it could say that it was not says nothing. */
static void peer__is_not_told_what_is_over(void **state)
{
	struct core_pair *pair = keeping();

	(void)state;
	core_post(&pair->b, AW_OP_SEND, AT_SEND, BIG, 0);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	assert_true(pair->a.qp.not_ready);
	core_recv(&pair->a, 50, AT_RECV, BIG);
	aw_rx_stashed(&pair->a.qp);
	expect_receive(&pair->a, 50, BIG);
	assert_int_equal(pair->a.wire_len, 0);
	assert_false(core_tx_one(&pair->a) && pair->a.wire[2] == 0);
	core_pair_destroy(pair);
}

/* The answers of one end and the held requests of the other, through markers. */
static void peer__is_told_through_markers(void **state)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);
	struct core_pair *pair;

	(void)state;
	a.markers_tx = a.markers_rx = b.markers_tx = b.markers_rx = true;
	pair = core_pair_create(&a, &b);
	pair->b.qp.peer_ready = true;
	may_wait(&pair->a);
	may_wait(&pair->b);
	for (int i = 0; i < 3; i++)
		core_post(&pair->b, AW_OP_SEND, AT_SEND, BIG, 0);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	core_tx(&pair->a);
	assert_true(pair->a.wire_len > 0);
	core_deliver(&pair->a, &pair->b);
	assert_true(pair->b.qp.peer_not_ready);
	for (uint64_t i = 0; i < 3; i++) {
		core_recv(&pair->a, i, AT_RECV, BIG);
		aw_rx_stashed(&pair->a.qp);
		expect_receive(&pair->a, i, BIG);
	}
	core_pump(pair);
	assert_false(pair->b.qp.peer_not_ready);
	core_pair_destroy(pair);
}

/* Its patience is over: the Terminate names the Send as before, and nothing stays. */
static void rnr__ends_as_before(void **state)
{
	struct core_pair *pair = with_one_waiting();

	(void)state;
	core_post(&pair->b, AW_OP_WRITE, AT_SEND, 10, AT_WRITE);
	core_pump(pair);
	pair->a.qp.rnr_holds = false;
	aw_rx_stashed(&pair->a.qp);
	assert_int_equal(pair->a.qp.error, AW_E_DDP_NO_BUFFER);
	assert_int_equal(pair->a.stashed, 0);
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_RNR_RETRY_EXC_ERR);
	core_expect_sq(&pair->b, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

/* What is kept is checked as it is taken: the first that is wrong ends the stream with its own error. */
static void requests__are_refused_in_their_turn(void **state)
{
	struct core_pair *pair = with_one_waiting();
	struct aw_swqe *wqe = core_wr(&pair->b, AW_OP_WRITE, AT_SEND, 10);

	(void)state;
	wqe->stag = 0xbad;
	aw_qp_post(&pair->b.qp);
	core_post(&pair->b, AW_OP_SEND, AT_SEND, SENT, 0);
	core_pump(pair);
	assert_int_equal(pair->a.qp.state, AW_QP_RTS);
	receive(&pair->a, 50);
	expect_receive(&pair->a, 50, SENT);
	assert_int_equal(pair->a.qp.error, AW_E_DDP_TAGGED_STAG);
	assert_int_equal(pair->a.stashed, 0);
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_WRITE, AW_WC_REM_ACCESS_ERR);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

static void terminate__overtakes(void **state)
{
	struct core_pair *pair = with_one_waiting();
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_READ, AT_READ, 10);

	(void)state;
	wqe->stag = 0xbad;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_int_equal(pair->a.qp.state, AW_QP_ERROR);
	assert_int_equal(pair->a.stashed, 0);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

/* As they come without memory: the driver keeps the first FPDU that does not fit, and reads no more. */
static void without_memory(bool from_the_first)
{
	struct core_pair *pair = keeping();
	struct core_end *a = &pair->a, *b = &pair->b;
	size_t used;

	if (!from_the_first) {
		post_send(b, 1);
		core_deliver(b, a);
	}
	a->stash_none = true;
	core_post(b, AW_OP_SEND, AT_SEND, BIG, 0);
	core_tx(b);
	used = aw_rx_octets(&a->qp, b->wire, b->wire_len);
	assert_true(used < b->wire_len);
	assert_true(a->qp.rx_held > 0);
	assert_int_equal(aw_rx_octets(&a->qp, b->wire + used, b->wire_len - used), 0);
	a->stash_none = false;
	assert_int_equal(aw_rx_octets(&a->qp, b->wire + used, b->wire_len - used),
			 b->wire_len - used);
	assert_int_equal(a->qp.rx_held, 0);
	b->wire_len = 0;
	if (!from_the_first) {
		receive(a, 50);
		expect_receive(a, 50, SENT);
	}
	core_recv(a, 51, AT_RECV, BIG);
	aw_rx_stashed(&a->qp);
	expect_receive(a, 51, BIG);
	core_pair_destroy(pair);
}

static void memory__is_out_from_the_first(void **state)
{
	(void)state;
	without_memory(true);
}

static void memory__is_out_later(void **state)
{
	(void)state;
	without_memory(false);
}

/* What stays in the driver's buffer is taken behind what is kept, once the receives are there. */
static void memory__never_comes(void **state)
{
	struct core_pair *pair = keeping();
	struct core_end *a = &pair->a, *b = &pair->b;
	size_t used;

	(void)state;
	post_send(b, 1);
	core_deliver(b, a);
	a->stash_none = true;
	core_post(b, AW_OP_SEND, AT_SEND, BIG, 0);
	core_tx(b);
	used = aw_rx_octets(&a->qp, b->wire, b->wire_len);
	assert_true(a->qp.rx_held > 0);
	receive(a, 50);
	core_recv(a, 51, AT_RECV, BIG);
	aw_rx_stashed(&a->qp);
	assert_int_equal(aw_rx_octets(&a->qp, b->wire + used, b->wire_len - used),
			 b->wire_len - used);
	expect_receive(a, 50, SENT);
	expect_receive(a, 51, BIG);
	core_pair_destroy(pair);
}

static size_t rnr_fpdu(uint8_t *p, enum rnr_kind kind)
{
	size_t size = fpdu_size(RNR_LEN);

	memset(p, 0, size);
	put_be16(p, RNR_LEN);
	rnr_put(kind, p + FPDU_LEN_FIELD);
	put_le32(p + size - 4, crc32c_final(crc32c_update(CRC32C_INIT, p, size - 4)));
	return size;
}

/* Nobody may send these messages who has not agreed: to others they are no DDP segments. */
static void rnr_message__is_refused_unless_agreed(void **state)
{
	(void)state;
	for (enum rnr_kind kind = RNR_NOT_READY; kind <= RNR_READY; kind++) {
		for (int agreed = 0; agreed < 2; agreed++) {
			struct core_end *end = core_responder();
			uint8_t p[64];
			size_t size = rnr_fpdu(p, kind);

			end->qp.keeps = agreed;
			assert_int_equal(aw_rx_octets(&end->qp, p, size), size);
			assert_int_equal(end->qp.state, agreed ? AW_QP_RTS : AW_QP_TERMINATE);
			assert_int_equal(end->qp.error, agreed ? AW_OK : AW_E_DDP_CATASTROPHIC);
			assert_int_equal(end->qp.peer_not_ready, agreed && kind == RNR_NOT_READY);
			core_end_destroy(end);
		}
	}
}

/* Where nothing was agreed the FPDU waits in the driver's buffer, and what is behind it as well. */
static void nothing_agreed__stops_the_stream(void **state)
{
	struct core_pair *pair = keeping();

	(void)state;
	pair->a.qp.keeps = false;
	post_send(&pair->b, 1);
	assert_int_equal(aw_rx_octets(&pair->a.qp, pair->b.wire, pair->b.wire_len), 0);
	assert_true(pair->a.qp.rx_held > 0);
	assert_int_equal(pair->a.stashed, 0);
	core_pair_destroy(pair);
}

/* A peer that does not stop: the stash ends at its bound, and reading with it. */
static void flood__ends_at_the_bound(void **state)
{
	struct core_end *end = core_responder();
	uint8_t *fpdu = malloc(FPDU_MAX);
	size_t size, kept = 0;

	(void)state;
	assert_non_null(fpdu);
	may_wait(end);
	for (uint32_t msn = 1; !end->qp.rx_held; msn++) {
		struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, msn, 0);
		size_t used;

		size = core_fpdu(fpdu, &hdr, core_data, 60000);
		used = aw_rx_octets(&end->qp, fpdu, size);
		assert_true(used == size || (used == 0 && end->qp.rx_held == size));
		kept += used;
		assert_true(kept <= AW_STASH_MAX);
	}
	assert_true(kept > AW_STASH_MAX / 2);
	assert_true(end->qp.stash.octets <= AW_STASH_MAX);
	free(fpdu);
	core_end_destroy(end);
}

/* Of octets that another process may write to nothing is kept: the driver copies them first. */
static void lent__is_taken_only_while_nothing_waits(void **state)
{
	struct core_pair *pair = with_one_waiting();

	(void)state;
	core_post(&pair->b, AW_OP_WRITE, AT_SEND, 10, AT_WRITE);
	core_tx(&pair->b);
	assert_int_equal(aw_rx_lent(&pair->a.qp, pair->b.wire, pair->b.wire_len), 0);
	receive(&pair->a, 50);
	assert_int_equal(aw_rx_lent(&pair->a.qp, pair->b.wire, pair->b.wire_len), pair->b.wire_len);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer__of_a_read_overtakes),
		cmocka_unit_test(answer__of_an_atomic_overtakes),
		cmocka_unit_test(answer__that_acknowledges_overtakes),
		cmocka_unit_test(both__wait_with_a_read_under_way),
		cmocka_unit_test(requests__keep_their_order),
		cmocka_unit_test(peer__stops_until_this_end_is_ready),
		cmocka_unit_test(peer__is_not_told_what_is_over),
		cmocka_unit_test(peer__is_told_through_markers),
		cmocka_unit_test(rnr__ends_as_before),
		cmocka_unit_test(requests__are_refused_in_their_turn),
		cmocka_unit_test(terminate__overtakes),
		cmocka_unit_test(memory__is_out_from_the_first),
		cmocka_unit_test(memory__is_out_later),
		cmocka_unit_test(memory__never_comes),
		cmocka_unit_test(rnr_message__is_refused_unless_agreed),
		cmocka_unit_test(nothing_agreed__stops_the_stream),
		cmocka_unit_test(flood__ends_at_the_bound),
		cmocka_unit_test(lent__is_taken_only_while_nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
