// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a completion says in the roce persona: the peer has it, or has refused it.
#include "walk.h"

#include "../lib/until.h"
#include "net/progress/engine.h"
#include "net/qp/times.h"
#include "newer.h"

#include <errno.h>
#include <string.h>

enum {
	POLLS = 1000,
	ROUNDS = 300,
};

/* A thread that polls in vain for long serves other QPs, the peer's as well; one that arms the CQ begins anew. */
static void nothing_completes(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int i = 0; i < POLLS; i++) {
		if (i % (AW_SPIN_POLLS / 2) == 0)
			assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	}
}

/* The progress thread serves the peer, whose CQs nobody polls; held, it leaves the octets to TCP. */
static void write__completes_when_the_peer_has_it(void **state)
{
	struct two t;

	two_connect(&t, *state);
	memset(t.a.memory, 7, 64);
	aw_engine_fork_prepare();
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	nothing_completes(t.a.send_cq);
	aw_engine_fork_done();
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(t.b.memory[63], 7);
	two_destroy(&t);
}

static void write__each_is_there_when_it_completes(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 1; i <= ROUNDS; i++) {
		memset(t.a.memory, i, WALK_MEMORY);
		walker_post(&t.a, IBV_WR_RDMA_WRITE, WALK_MEMORY, &t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		assert_memory_equal(t.a.memory, t.b.memory, WALK_MEMORY);
	}
	two_destroy(&t);
}

static void write__refused_by_the_peer(void **state)
{
	struct two t;

	two_connect(&t, *state);
	t.b.mr->rkey ^= 0x55;
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_sent(&t.a, IBV_WC_REM_ACCESS_ERR);
	walker_sent(&t.a, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_ERR);
	t.b.mr->rkey ^= 0x55;
	two_destroy(&t);
}

/* The receive that it would have completed fails; the program learns that a peer did what it may not. */
static void write_imm__refused_here(void **state)
{
	struct two t;

	two_connect(&t, *state);
	walker_recv(&t.b, 1);
	walker_recv(&t.b, 2);
	t.b.mr->rkey ^= 0x55;
	walker_post(&t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 64, &t.b);
	walker_sent(&t.a, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(walker_received(&t.b, IBV_WC_LOC_ACCESS_ERR).wr_id, 1);
	assert_int_equal(walker_received(&t.b, IBV_WC_WR_FLUSH_ERR).wr_id, 2);
	t.b.mr->rkey ^= 0x55;
	two_destroy(&t);
}

/* Those before it are there, as they say. */
static void write__refused_behind_good_ones(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 0; i < 5; i++)
		walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	t.b.mr->rkey ^= 0x55;
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	for (int i = 0; i < 5; i++)
		walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_REM_ACCESS_ERR);
	walker_sent(&t.a, IBV_WC_WR_FLUSH_ERR);
	t.b.mr->rkey ^= 0x55;
	two_destroy(&t);
}

static void post_bad_recv(struct walker *w)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, 64, w->mr->lkey ^ 0x55 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(w->qp, &wr, &bad), 0);
}

/* The receiver's own fault is the sixth Send's alone. */
static void send__receive_is_bad(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 0; i < 5; i++)
		walker_recv(&t.b, 1);
	post_bad_recv(&t.b);
	for (int i = 0; i < 7; i++)
		walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	for (int i = 0; i < 5; i++)
		walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_REM_OP_ERR);
	walker_sent(&t.a, IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 5; i++)
		walker_received(&t.b, IBV_WC_SUCCESS);
	walker_received(&t.b, IBV_WC_LOC_PROT_ERR);
	two_destroy(&t);
}

/* The time of a QP's timer and count of retries is over; a second is the least. */
static void send__receive_never_comes(void **state)
{
	struct route route = route_loopback(*state);
	struct ibv_qp_attr attr = walk_attr_rts();
	struct two t;

	attr.rnr_retry = 0;
	two_make(&t, *state);
	walk(&t.a, &route, t.b.qp->qp_num);
	walk_init(&t.b);
	walk_rtr(&t.b, &route, t.a.qp->qp_num);
	assert_int_equal(ibv_modify_qp(t.b.qp, &attr, WALK_RTS), 0);
	walker_recv(&t.b, 1);
	for (int i = 0; i < 3; i++)
		walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_RNR_RETRY_EXC_ERR);
	walker_sent(&t.a, IBV_WC_WR_FLUSH_ERR);
	two_destroy(&t);
}

/* The program that ends its own QP is not told of how the stream ends. */
static void no_failure_of(struct ibv_qp *qp, struct ibv_context *context)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(context, &event) == 0) {
		assert_true(event.element.qp != qp || event.event_type == IBV_EVENT_COMM_EST);
		ibv_ack_async_event(&event);
	}
}

/* The first message has its receive, and a second one waits for one when the peer's program ends its QP. */
static void expect_refused(struct fixture *f, enum ibv_wr_opcode opcode)
{
	static const enum ibv_qp_state ends[] = { IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_UNKNOWN };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct ibv_qp_init_attr again;
		struct two t;

		two_connect(&t, f);
		again = (struct ibv_qp_init_attr){ .send_cq = t.b.send_cq,
						   .recv_cq = t.b.recv_cq,
						   .qp_type = IBV_QPT_RC };
		walker_recv(&t.b, 1);
		for (int n = 0; n < 3; n++)
			walker_post(&t.a, opcode, 16, &t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		if (ends[i] != IBV_QPS_UNKNOWN) {
			assert_int_equal(qp_move(t.b.qp, ends[i]), 0);
		} else {
			assert_int_equal(ibv_destroy_qp(t.b.qp), 0);
			t.b.qp = ibv_create_qp(f->pd, &again);
			assert_non_null(t.b.qp);
		}
		walker_sent(&t.a, IBV_WC_RNR_RETRY_EXC_ERR);
		walker_sent(&t.a, IBV_WC_WR_FLUSH_ERR);
		no_failure_of(t.b.qp, f->context);
		two_destroy(&t);
	}
}

static void send__peer_ends_before_its_receive_comes(void **state)
{
	expect_refused(*state, IBV_WR_SEND);
	expect_refused(*state, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void send__completes_when_it_has_its_receive(void **state)
{
	struct two t;

	two_connect(&t, *state);
	walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	nothing_completes(t.a.send_cq);
	walker_recv(&t.b, 1);
	walker_received(&t.b, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* Its own Send completes though the peer's, which it has no receive for yet, holds its answer up. */
static void send__past_one_that_waits_here(void **state)
{
	struct two t;

	two_connect(&t, *state);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_recv(&t.a, 2);
	walker_received(&t.a, IBV_WC_SUCCESS);
	walker_received(&t.b, IBV_WC_SUCCESS);
	walker_sent(&t.b, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* WRs that nobody signals are acknowledged for the counter's sake, and what it counts is there. */
static void comp_cntr__counts_what_the_peer_has(void **state)
{
	const struct vb_comp_cntr_attach_attr writes = { .op_mask = VB_COUNT_WRITE };
	const struct vb_comp_cntr_init_attr bytes = { .type = VB_COMP_CNTR_BYTES };
	struct fixture *f = *state;
	struct vb_comp_cntr *counter = counter_create(f->context, &bytes);
	struct route route = route_loopback(f);
	struct ibv_send_wr *bad;
	uint64_t counted = 0;
	struct two t;
	struct ibv_wc wc;

	two_make(&t, f);
	assert_int_equal(counter_attach(t.a.qp, counter, &writes), 0);
	two_walk(&t, &route);
	memset(t.a.memory, 7, WALK_MEMORY);
	for (uint32_t i = 0; i < 3; i++) {
		struct ibv_sge sge = { (uintptr_t)t.a.memory + i * 100, 100, t.a.mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = { (uintptr_t)t.b.memory + i * 100, t.b.mr->rkey },
		};

		assert_int_equal(ibv_post_send(t.a.qp, &wr, &bad), 0);
	}
	repeat_until(counted == 300)
	{
		assert_int_equal(ibv_poll_cq(t.a.send_cq, 1, &wc), 0);
		assert_int_equal(counter_read(counter, &counted), 0);
	}
	assert_memory_equal(t.a.memory, t.b.memory, 300);
	assert_int_equal(counter_destroy(counter), EBUSY);
	two_destroy(&t);
	assert_int_equal(counter_destroy(counter), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(write__completes_when_the_peer_has_it),
		WITH(write__each_is_there_when_it_completes),
		WITH(write__refused_by_the_peer),
		WITH(write_imm__refused_here),
		WITH(write__refused_behind_good_ones),
		WITH(send__receive_is_bad),
		WITH(send__receive_never_comes),
		WITH(send__peer_ends_before_its_receive_comes),
		WITH(send__completes_when_it_has_its_receive),
		WITH(send__past_one_that_waits_here),
		WITH(comp_cntr__counts_what_the_peer_has),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
