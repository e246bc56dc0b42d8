// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Extended reliable connections: messages of one connection for several SRQs.
#include "xrc_scene.h"

#include "core/rnr_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

static void device__has_xrc(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_XRC);
}

static void send__takes_a_receive_of_the_srq_it_names(void **state)
{
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	for (int i = 0; i < 10; i++)
		xrc_talk(&x, i % XRC_SRQS);
	/* Both at once, the second one first. */
	xrc_recv(&x, 0, 1);
	xrc_recv(&x, 1, 2);
	xrc_post(&x, IBV_WR_SEND, 7, x.srqn[1]);
	xrc_post(&x, IBV_WR_SEND, 8, x.srqn[0]);
	assert_int_equal(xrc_received(&x, 0, 1).byte_len, 8);
	assert_int_equal(xrc_received(&x, 1, 2).byte_len, 7);
	assert_int_equal(xrc_sent(&x, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

static void completion__names_both_qps(void **state)
{
	struct ibv_wc wc;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	xrc_recv(&x, 1, 5);
	xrc_post(&x, IBV_WR_SEND_WITH_IMM, 16, x.srqn[1]);
	wc = xrc_received(&x, 1, 5);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.qp_num, x.target->qp_num);
	assert_int_equal(wc.src_qp, x.initiator->qp_num);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x01020304);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

static void write_imm__takes_a_receive_of_the_srq_it_names(void **state)
{
	struct ibv_wc wc;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	memset(x.memory, 0x5a, 64);
	xrc_recv(&x, 1, 6);
	xrc_post(&x, IBV_WR_RDMA_WRITE_WITH_IMM, 64, x.srqn[1]);
	wc = xrc_received(&x, 1, 6);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 64);
	assert_int_equal(wc.imm_data, 0x01020304);
	assert_memory_equal(x.memory + XRC_FAR, x.memory, 64);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

static void one_sided__as_on_rc(void **state)
{
	struct xrc x;
	uint64_t there, before;

	xrc_make(&x, *state);
	xrc_connect(&x);
	memset(x.memory, 0x66, 32);
	xrc_post(&x, IBV_WR_RDMA_WRITE, 32, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	assert_memory_equal(x.memory + XRC_FAR, x.memory, 32);
	memset(x.memory + XRC_FAR, 0x77, 32);
	xrc_post(&x, IBV_WR_RDMA_READ, 32, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	assert_int_equal(x.memory[31], 0x77);

	there = 7;
	memcpy(x.memory + XRC_FAR, &there, sizeof(there));
	xrc_post(&x, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	memcpy(&before, x.memory, sizeof(before));
	assert_int_equal(before, 7);
	xrc_post(&x, IBV_WR_ATOMIC_CMP_AND_SWP, 8, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	memcpy(&before, x.memory, sizeof(before));
	memcpy(&there, x.memory + XRC_FAR, sizeof(there));
	assert_int_equal(before, 14);
	assert_int_equal(there, 14);
	xrc_destroy(&x);
}

static void long_send__in_many_segments(void **state)
{
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	for (int i = 0; i < 200; i++) {
		struct ibv_sge sge = { (uintptr_t)x.memory + XRC_FAR, XRC_FAR, x.mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 }, *bad;

		memset(x.memory, i, XRC_FAR);
		assert_int_equal(ibv_post_srq_recv(x.srq[i % 2], &wr, &bad), 0);
		xrc_post(&x, IBV_WR_SEND, XRC_FAR, x.srqn[i % 2]);
		assert_int_equal(xrc_received(&x, i % 2, 8).byte_len, XRC_FAR);
		assert_memory_equal(x.memory + XRC_FAR, x.memory, XRC_FAR);
		xrc_sent(&x, IBV_WC_SUCCESS);
	}
	xrc_destroy(&x);
}

static void wr_set_xrc_srqn__names_the_srq(void **state)
{
	struct ibv_qp_ex *qp;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	xrc_recv(&x, 0, 1);
	xrc_recv(&x, 1, 2);
	qp = ibv_qp_to_qp_ex(x.initiator);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_xrc_srqn(qp, x.srqn[1]);
	ibv_wr_set_sge(qp, x.mr->lkey, (uintptr_t)x.memory, 9);
	ibv_wr_rdma_write_imm(qp, x.mr->rkey, (uintptr_t)x.memory + XRC_FAR, 3);
	ibv_wr_set_xrc_srqn(qp, x.srqn[0]);
	ibv_wr_set_sge(qp, x.mr->lkey, (uintptr_t)x.memory, 10);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(xrc_received(&x, 1, 2).byte_len, 9);
	assert_int_equal(xrc_received(&x, 0, 1).byte_len, 10);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

/* A receive of an SRQ is there, but not of the one that is named. */
static void refused(struct xrc *x, enum ibv_wr_opcode opcode, uint32_t srqn)
{
	struct ibv_wc wc;

	xrc_recv(x, 0, 1);
	xrc_post(x, opcode, 16, srqn);
	xrc_post(x, IBV_WR_SEND, 16, x->srqn[0]);
	xrc_sent(x, IBV_WC_REM_INV_REQ_ERR);
	xrc_sent(x, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(x->cq[0], 1, &wc), 0);
	xrc_events(x->f->context, x->target, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(qp_state(x->target), IBV_QPS_ERR);
	assert_int_equal(qp_state(x->initiator), IBV_QPS_ERR);
}

static void unknown_srq__is_refused(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						      IBV_WR_RDMA_WRITE_WITH_IMM };

	for (int i = 0; i < 3; i++) {
		struct xrc x;

		xrc_make(&x, *state);
		xrc_connect(&x);
		refused(&x, opcodes[i], i == 1 ? 0 : x.target->qp_num);
		xrc_destroy(&x);
	}
}

static void srq_of_another_domain__is_refused(void **state)
{
	struct xrc x, other;

	xrc_make(&x, *state);
	xrc_make(&other, *state);
	xrc_connect(&x);
	xrc_connect(&other);
	xrc_recv(&other, 0, 1);
	refused(&x, IBV_WR_SEND, other.srqn[0]);
	/* Its receive is still there. */
	memset(other.memory, 1, 16);
	xrc_post(&other, IBV_WR_SEND, 16, other.srqn[0]);
	xrc_received(&other, 0, 1);
	xrc_sent(&other, IBV_WC_SUCCESS);
	xrc_destroy(&other);
	xrc_destroy(&x);
}

static void srq_that_was_destroyed__is_refused(void **state)
{
	struct xrc x;
	struct ibv_wc wc;

	xrc_make(&x, *state);
	xrc_connect(&x);
	xrc_recv(&x, 1, 2);
	xrc_post(&x, IBV_WR_SEND, 16, x.srqn[1]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_cq(x.cq[1]), EBUSY);
	/* The completion that nobody has polled goes with its SRQ. */
	assert_int_equal(ibv_destroy_srq(x.srq[1]), 0);
	x.srq[1] = NULL;
	assert_int_equal(ibv_poll_cq(x.cq[1], 1, &wc), 0);
	refused(&x, IBV_WR_SEND, x.srqn[1]);
	xrc_destroy(&x);
}

/* What was sent before is received or refused, by no means placed once the SRQ's program may have freed the memory. */
static void srq_destroyed__while_messages_come(void **state)
{
	enum {
		LONG = XRC_MEMORY / 2,
		SENDS = 4
	};

	for (int round = 0; round < 20; round++) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;
		struct xrc x;

		xrc_make(&x, *state);
		xrc_connect(&x);
		xrc_talk(&x, 0);
		for (int i = 0; i < SENDS; i++) {
			struct ibv_sge sge = { (uintptr_t)x.memory + LONG, LONG, x.mr->lkey };
			struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

			assert_int_equal(ibv_post_srq_recv(x.srq[1], &wr, &bad), 0);
		}
		for (int i = 0; i < SENDS; i++)
			xrc_post(&x, IBV_WR_SEND, LONG, x.srqn[1]);
		if (round % 2)
			wc_wait(x.cq[1]);
		assert_int_equal(ibv_destroy_srq(x.srq[1]), 0);
		x.srq[1] = NULL;
		for (int i = 0; i < SENDS; i++) {
			struct ibv_wc wc = wc_wait(x.send_cq);

			if (status == IBV_WC_SUCCESS && wc.status != IBV_WC_SUCCESS)
				assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
			else if (status != IBV_WC_SUCCESS)
				assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
			status = wc.status;
		}
		assert_int_equal(ibv_poll_cq(x.cq[1], 1, &(struct ibv_wc){ 0 }), 0);
		if (status != IBV_WC_SUCCESS)
			xrc_events(x.f->context, x.target, IBV_EVENT_QP_REQ_ERR,
				   IBV_EVENT_QP_LAST_WQE_REACHED);
		xrc_destroy(&x);
	}
}

static void target_that_was_destroyed__leaves_completions(void **state)
{
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	xrc_recv(&x, 0, 4);
	xrc_post(&x, IBV_WR_SEND, 16, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(x.target), 0);
	x.target = NULL;
	xrc_received(&x, 0, 4);
	xrc_destroy(&x);
}

/* On InfiniBand the rights to an MR are judged by the PD of the SRQ that a Write names. */
static void mr_of_a_pd_without_srqs__is_refused(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_mr *other;
	struct xrc x;

	xrc_make(&x, f);
	xrc_connect(&x);
	other = ibv_reg_mr(pd, x.memory, XRC_MEMORY,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(other);
	xrc_post(&x, IBV_WR_RDMA_WRITE, 16, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	x.rkey = other->rkey;
	xrc_post(&x, IBV_WR_RDMA_WRITE, 16, x.srqn[0]);
	xrc_sent(&x, IBV_WC_REM_ACCESS_ERR);
	xrc_events(f->context, x.target, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	xrc_destroy(&x);
}

static void srq_without_receives__is_waited_for(void **state)
{
	struct ibv_wc wc;
	struct xrc x;

	xrc_make(&x, *state);
	xrc_connect(&x);
	xrc_talk(&x, 0);
	xrc_recv(&x, 0, 1);
	xrc_post(&x, IBV_WR_SEND, 16, x.srqn[1]);
	/* Polled often enough for the message to have come. */
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ibv_poll_cq(x.cq[1], 1, &wc), 0);
		assert_int_equal(ibv_poll_cq(x.cq[0], 1, &wc), 0);
	}
	xrc_recv(&x, 1, 2);
	assert_int_equal(xrc_received(&x, 1, 2).byte_len, 16);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The initiator's rnr_retry, of which the target is not told by its own program. */
static void srq_without_receives__for_too_long(void **state)
{
	for (int to_rts = 0; to_rts < 2; to_rts++) {
		uint64_t start;
		struct xrc x;

		xrc_make(&x, *state);
		xrc_connect_rnr(&x, 0, to_rts);
		xrc_talk(&x, 0);
		start = now_ns();
		xrc_post(&x, IBV_WR_SEND, 16, x.srqn[1]);
		xrc_post(&x, IBV_WR_SEND, 16, x.srqn[1]);
		xrc_sent(&x, IBV_WC_RNR_RETRY_EXC_ERR);
		xrc_sent(&x, IBV_WC_WR_FLUSH_ERR);
		assert_true(now_ns() - start >= UINT64_C(1000000) * AW_RNR_MS);
		xrc_destroy(&x);
	}
}

/* Two connections, one each way. */
struct both_ways {
	struct xrc x;
	struct ibv_comp_channel *channel; /* of the CQ below */
	struct ibv_cq *send_cq; /* of x.initiator */
	struct ibv_qp *back, *back_target;
};

static void both_ways_make(struct both_ways *b, struct fixture *f)
{
	struct xrc *x = &b->x, back;

	xrc_make(x, f);
	b->channel = ibv_create_comp_channel(f->context);
	assert_non_null(b->channel);
	assert_int_equal(fcntl(b->channel->fd, F_SETFL, O_NONBLOCK), 0);
	b->send_cq = ibv_create_cq(f->context, CQE_MAX, NULL, b->channel, 0);
	assert_non_null(b->send_cq);
	assert_int_equal(ibv_destroy_qp(x->initiator), 0);
	x->initiator = xrc_initiator_make(f, b->send_cq);
	xrc_connect(x);
	back = *x;
	back.initiator = b->back = xrc_initiator_make(f, x->send_cq);
	back.target = b->back_target = xrc_target_make(f->context, x->xrcd);
	xrc_connect(&back);
}

static void both_ways_destroy(struct both_ways *b)
{
	assert_int_equal(ibv_destroy_qp(b->back), 0);
	assert_int_equal(ibv_destroy_qp(b->back_target), 0);
	assert_int_equal(ibv_destroy_qp(b->x.initiator), 0);
	b->x.initiator = NULL;
	assert_int_equal(ibv_destroy_cq(b->send_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(b->channel), 0);
	xrc_destroy(&b->x);
}

/* As from an adapter: who has the answer to a message has had the acknowledgement of the message before. */
static void answer__comes_behind_the_acknowledgement(void **state)
{
	struct both_ways b;
	struct xrc *x = &b.x;

	both_ways_make(&b, *state);
	for (int i = 0; i < 2000; i++) {
		struct ibv_qp *initiator = x->initiator;
		struct ibv_wc wc;
		struct ibv_cq *cq;
		void *context;

		assert_int_equal(ibv_req_notify_cq(b.send_cq, 0), 0);
		xrc_recv(x, 0, 1);
		xrc_recv(x, 1, 2);
		xrc_post(x, IBV_WR_SEND, 16, x->srqn[0]);
		wc_wait(x->cq[0]);
		x->initiator = b.back;
		xrc_post(x, IBV_WR_SEND, 16, x->srqn[1]);
		x->initiator = initiator;
		wc_wait(x->cq[1]);
		assert_int_equal(ibv_get_cq_event(b.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_poll_cq(b.send_cq, 1, &wc), 1);
		wc_wait(x->send_cq);
	}
	both_ways_destroy(&b);
}

static void srq_limit__raises_its_event(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event event;
	struct xrc x;

	xrc_make(&x, f);
	xrc_connect(&x);
	xrc_recv(&x, 1, 1);
	xrc_recv(&x, 1, 2);
	assert_int_equal(ibv_modify_srq(x.srq[1], &attr, IBV_SRQ_LIMIT), 0);
	xrc_post(&x, IBV_WR_SEND, 16, x.srqn[1]);
	xrc_received(&x, 1, 1);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, x.srq[1]);
	ibv_ack_async_event(&event);
	xrc_sent(&x, IBV_WC_SUCCESS);
	xrc_destroy(&x);
}

static void target_in_error__raises_last_wqe_reached(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	struct xrc x;

	xrc_make(&x, f);
	xrc_connect(&x);
	xrc_talk(&x, 0);
	assert_int_equal(qp_move(x.target, IBV_QPS_ERR), 0);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, x.target);
	ibv_ack_async_event(&event);
	xrc_destroy(&x);
}

static void cq_of_an_srq__wakes_its_channel(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq = NULL;
	struct ibv_wc wc;
	void *context;
	struct xrc x;

	xrc_make(&x, f);
	assert_int_equal(ibv_destroy_srq(x.srq[0]), 0);
	x.srq[0] = xrc_srq_make(f, x.xrcd, f->cq);
	x.srqn[0] = xrc_srq_number(x.srq[0]);
	xrc_connect(&x);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	xrc_recv(&x, 0, 1);
	xrc_post(&x, IBV_WR_SEND, 16, x.srqn[0]);
	xrc_sent(&x, IBV_WC_SUCCESS);
	wc = wc_wait(f->cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
	assert_ptr_equal(cq, f->cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_srq(x.srq[0]), 0);
	x.srq[0] = NULL;
	xrc_destroy(&x);
}

static void reset__connects_anew(void **state)
{
	struct xrc x;

	xrc_make(&x, *state);
	for (int i = 0; i < 5; i++) {
		xrc_connect(&x);
		xrc_talk(&x, i % XRC_SRQS);
		assert_int_equal(qp_move(x.initiator, IBV_QPS_RESET), 0);
		assert_int_equal(qp_move(x.target, IBV_QPS_RESET), 0);
	}
	xrc_destroy(&x);
}

static void rc_qp__does_not_talk_to_a_target(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts(), rtr;
	struct walker w;
	struct xrc x;
	struct ibv_wc wc;

	xrc_make(&x, f);
	walker_make(&w, f);
	rtr = walk_attr_rtr(&route, w.qp->qp_num);
	assert_int_equal(ibv_modify_qp(x.target, &init, XRC_INIT), 0);
	assert_int_equal(ibv_modify_qp(x.target, &rtr, XRC_RTR_TARGET), 0);
	assert_int_equal(ibv_modify_qp(x.target, &rts, XRC_RTS_TARGET), 0);
	walk(&w, &route, x.target->qp_num);
	xrc_recv(&x, 0, 1);
	walker_post(&w, IBV_WR_SEND, 16, NULL);
	wc = walker_sent(&w, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.qp_num, w.qp->qp_num);
	assert_int_equal(ibv_poll_cq(x.cq[0], 1, &wc), 0);
	walker_destroy(&w);
	xrc_destroy(&x);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(device__has_xrc),
		TEST(send__takes_a_receive_of_the_srq_it_names),
		TEST(completion__names_both_qps),
		TEST(write_imm__takes_a_receive_of_the_srq_it_names),
		TEST(one_sided__as_on_rc),
		TEST(long_send__in_many_segments),
		TEST(wr_set_xrc_srqn__names_the_srq),
		TEST(unknown_srq__is_refused),
		TEST(srq_of_another_domain__is_refused),
		TEST(srq_that_was_destroyed__is_refused),
		TEST(srq_destroyed__while_messages_come),
		TEST(target_that_was_destroyed__leaves_completions),
		TEST(mr_of_a_pd_without_srqs__is_refused),
		TEST(srq_without_receives__is_waited_for),
		TEST(srq_without_receives__for_too_long),
		TEST(answer__comes_behind_the_acknowledgement),
		TEST(srq_limit__raises_its_event),
		TEST(target_in_error__raises_last_wqe_reached),
		TEST(cq_of_an_srq__wakes_its_channel),
		TEST(reset__connects_anew),
		TEST(rc_qp__does_not_talk_to_a_target),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
