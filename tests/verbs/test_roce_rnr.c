// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message that waits for its receive stops the requests behind it and nothing else: programs that post the receive only once
// their own Read, atomic or Send is complete, as InfiniBand lets them.
#include "walk.h"

#include "net/progress/engine.h"

#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 50,
	FLOOD = 512 *
		1024, /* octets of a Write: a few are more than what a stash takes before its peer is told */
	WRITES = 6,
	WORD_AT = 1024, /* of an atomic, and where its result goes */
};

static void read_of(struct walker *w, const struct walker *peer)
{
	walker_post(w, IBV_WR_RDMA_READ, 64, peer);
	assert_int_equal(walker_sent(w, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	assert_int_equal(w->memory[63], peer->memory[63]);
}

static void read__before_the_receive_is_posted(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 1; i <= ROUNDS; i++) {
		memset(t.b.memory, i, 64);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		read_of(&t.a, &t.b);
		walker_recv(&t.a, (uint64_t)i);
		assert_int_equal(walker_received(&t.a, IBV_WC_SUCCESS).wr_id, i);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	two_destroy(&t);
}

/* The same of a Write with immediate data, whose octets are there before it waits. */
static void read__before_the_receive_of_a_write(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 1; i <= ROUNDS; i++) {
		memset(t.b.memory, i, 64);
		walker_post(&t.b, IBV_WR_RDMA_WRITE_WITH_IMM, 16, &t.a);
		read_of(&t.a, &t.b);
		walker_recv(&t.a, (uint64_t)i);
		assert_int_equal(walker_received(&t.a, IBV_WC_SUCCESS).opcode,
				 IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(t.a.memory[15], i);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	two_destroy(&t);
}

static void post_atomic(struct walker *w, const struct walker *peer)
{
	struct ibv_sge sge = { (uintptr_t)w->memory + WORD_AT, 8, w->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)peer->memory + WORD_AT,
			       .compare_add = 1,
			       .rkey = peer->mr->rkey },
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(w->qp, &wr, &bad), 0);
}

static void atomic__before_the_receive_is_posted(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t word;

		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		post_atomic(&t.a, &t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		memcpy(&word, t.a.memory + WORD_AT, sizeof(word));
		assert_int_equal(word, i);
		walker_recv(&t.a, i);
		walker_received(&t.a, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	two_destroy(&t);
}

/* What its own completion says is what it says elsewhere: the peer has received it, not only its TCP. */
static void send__completes_when_the_peer_has_it(void **state)
{
	struct ibv_wc wc;
	struct two t;

	two_connect(&t, *state);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	read_of(&t.a, &t.b); /* b's Send waits at a by now */
	walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ibv_poll_cq(t.a.send_cq, 1, &wc), 0);
	walker_recv(&t.b, 1);
	walker_received(&t.b, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_recv(&t.a, 2);
	walker_received(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.b, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* Each end's answer comes behind its Send: the progress thread, which serves both, is held until all is posted. */
static void both__wait_with_a_read_under_way(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 1; i <= ROUNDS; i++) {
		aw_engine_fork_prepare();
		walker_post(&t.a, IBV_WR_RDMA_READ, 64, &t.b);
		walker_post(&t.b, IBV_WR_RDMA_READ, 64, &t.a);
		walker_post(&t.a, IBV_WR_SEND, 16, NULL);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		aw_engine_fork_done();
		assert_int_equal(walker_sent(&t.a, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
		assert_int_equal(walker_sent(&t.b, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
		walker_recv(&t.a, 1);
		walker_recv(&t.b, 1);
		walker_received(&t.a, IBV_WC_SUCCESS);
		walker_received(&t.b, IBV_WC_SUCCESS);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	two_destroy(&t);
}

/* b's later requests are seen in their order, and not before its Send. */
static void write__is_not_seen_before_the_send(void **state)
{
	struct two t;

	two_connect(&t, *state);
	for (int i = 1; i <= ROUNDS; i++) {
		memset(t.a.memory, 0, 64);
		memset(t.b.memory, i, 64);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		walker_post(&t.b, IBV_WR_RDMA_WRITE, 64, &t.a);
		/* Two of its own that have come back behind what b has sent. */
		post_atomic(&t.a, &t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		post_atomic(&t.a, &t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		assert_int_equal(t.a.memory[63], 0);
		walker_recv(&t.a, 1);
		walker_received(&t.a, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
		assert_int_equal(t.a.memory[63], i);
	}
	two_destroy(&t);
}

static void post_flood(struct walker *w, const struct ibv_mr *from, const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, FLOOD, from->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)to->addr, .rkey = to->rkey },
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(w->qp, &wr, &bad), 0);
}

/* More than TCP has room for is behind it: the peer waits, and still answers. */
static void read__past_many_writes(void **state)
{
	struct fixture *f = *state;
	uint8_t *memory[2];
	struct ibv_mr *mr[2];
	struct two t;

	two_connect(&t, f);
	for (int i = 0; i < 2; i++) {
		memory[i] = calloc(1, FLOOD);
		mr[i] = ibv_reg_mr(f->pd, memory[i], FLOOD,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		assert_non_null(mr[i]);
	}
	for (int i = 1; i <= ROUNDS / 5; i++) {
		memset(memory[1], i, FLOOD);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		for (int n = 0; n < WRITES; n++)
			post_flood(&t.b, mr[1], mr[0]);
		for (int n = 0; n < 10; n++)
			read_of(&t.a, &t.b);
		assert_int_equal(memory[0][FLOOD - 1], i - 1);
		walker_recv(&t.a, 1);
		walker_received(&t.a, IBV_WC_SUCCESS);
		for (int n = 0; n < 1 + WRITES; n++)
			walker_sent(&t.b, IBV_WC_SUCCESS);
		assert_memory_equal(memory[0], memory[1], FLOOD);
	}
	two_destroy(&t);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
		free(memory[i]);
	}
}

/* Replaces a's QP by one whose receives are an SRQ's. */
static struct ibv_srq *share_receives(struct walker *w, struct fixture *f)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = WR_MAX, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &init);
	struct ibv_qp_init_attr attr = qp_attr(f);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_qp(w->qp), 0);
	attr.send_cq = w->send_cq;
	attr.recv_cq = w->recv_cq;
	attr.srq = srq;
	w->qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(w->qp);
	return srq;
}

static void srq_recv(struct ibv_srq *srq, const struct walker *w, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, WALK_MEMORY, w->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void read__before_the_receive_of_an_srq(void **state)
{
	struct route route = route_loopback(*state);
	struct ibv_srq *srq;
	struct two t;

	two_make(&t, *state);
	srq = share_receives(&t.a, *state);
	two_walk(&t, &route);
	for (int i = 1; i <= ROUNDS; i++) {
		memset(t.b.memory, i, 64);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		read_of(&t.a, &t.b);
		srq_recv(srq, &t.a, 1);
		assert_int_equal(walker_received(&t.a, IBV_WC_SUCCESS).wr_id, 1);
		srq_recv(srq, &t.a, 2);
		assert_int_equal(walker_received(&t.a, IBV_WC_SUCCESS).wr_id, 2);
		walker_sent(&t.b, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	two_destroy(&t);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* The peer ends its QP, and the program still gets its answer and, later, the message. */
static void peer__leaves_behind_its_answer(void **state)
{
	struct ibv_wc wc;

	for (int i = 1; i <= ROUNDS / 5; i++) {
		struct two t;

		two_connect(&t, *state);
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		read_of(&t.a, &t.b);
		walk_reset(&t.b);
		assert_int_equal(ibv_poll_cq(t.a.recv_cq, 1, &wc), 0);
		walker_recv(&t.a, 1);
		walker_received(&t.a, IBV_WC_SUCCESS);
		two_destroy(&t);
	}
}

/* The program ends its QP with messages that wait; the peer learns which one. */
static void own__qp_ends_with_messages_that_wait(void **state)
{
	static const enum ibv_qp_state ends[] = { IBV_QPS_ERR, IBV_QPS_RESET };

	for (int i = 0; i < ROUNDS / 5; i++) {
		struct two t;

		two_connect(&t, *state);
		for (int n = 0; n < 3; n++)
			walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		read_of(&t.a, &t.b);
		assert_int_equal(qp_move(t.a.qp, ends[i % 2]), 0);
		walker_sent(&t.b, IBV_WC_RNR_RETRY_EXC_ERR);
		walker_sent(&t.b, IBV_WC_WR_FLUSH_ERR);
		walker_sent(&t.b, IBV_WC_WR_FLUSH_ERR);
		two_destroy(&t);
	}
}

/* A send queue that drains waits for the message that waits at the peer. */
static void drained__when_the_peer_has_its_receive(void **state)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct two t;

	two_connect(&t, f);
	while (ibv_get_async_event(f->context, &event) == 0)
		ibv_ack_async_event(&event);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	read_of(&t.a, &t.b);
	assert_int_equal(ibv_modify_qp(t.b.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	read_of(&t.a, &t.b);
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	walker_recv(&t.a, 1);
	walker_received(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.b, IBV_WC_SUCCESS);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	ibv_ack_async_event(&event);
	assert_int_equal(qp_move(t.b.qp, IBV_QPS_RTS), 0);
	walker_talk(&t.b, &t.a);
	two_destroy(&t);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(read__before_the_receive_is_posted),
		WITH(read__before_the_receive_of_a_write),
		WITH(atomic__before_the_receive_is_posted),
		WITH(send__completes_when_the_peer_has_it),
		WITH(both__wait_with_a_read_under_way),
		WITH(write__is_not_seen_before_the_send),
		WITH(read__past_many_writes),
		WITH(read__before_the_receive_of_an_srq),
		WITH(peer__leaves_behind_its_answer),
		WITH(own__qp_ends_with_messages_that_wait),
		WITH(drained__when_the_peer_has_its_receive),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
