// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that another one has cancelled (pthreads(7)) posts, polls and disconnects: calls that do not wait are no cancellation
// points, since the thread would leave locks of the library taken.
#include "cm.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	LONG = 300000, /* octets: several FPDUs and several turns of the sender */
	ROUNDS = 50,
};

static uint8_t from[LONG], to[LONG];

struct work {
	struct cm_ends ends;
	struct ibv_mr *from_mr, *to_mr;
	void (*run)(struct work *work);
	bool failed, done;
};

/* No completion: 0 is polled again, and sched_yield(2) is no cancellation point. */
static enum ibv_wc_status polled(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		sched_yield();
	return n == 1 ? wc.status : IBV_WC_GENERAL_ERR;
}

static void expect(struct work *work, bool as_due)
{
	work->failed |= !as_due;
}

static void post_recv(struct work *work, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)to, len, work->to_mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	expect(work, ibv_post_recv(work->ends.server->qp, &wr, &bad) == 0);
}

static void post(struct work *work, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)from, len, work->from_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = work->to_mr->rkey;
	expect(work, ibv_post_send(work->ends.client->qp, &wr, &bad) == 0);
}

static void move_data(struct work *work)
{
	const uint32_t len[] = { 4, LONG };
	struct cm_ends *ends = &work->ends;

	for (int i = 0; i < ROUNDS; i++) {
		expect(work, ibv_req_notify_cq(ends->server->recv_cq, 0) == 0);
		post_recv(work, LONG);
		post(work, IBV_WR_SEND, len[i % 2]);
		expect(work, polled(ends->server->recv_cq) == IBV_WC_SUCCESS);
		expect(work, polled(ends->client->send_cq) == IBV_WC_SUCCESS);
		post(work, IBV_WR_RDMA_READ, len[i % 2]);
		expect(work, polled(ends->client->send_cq) == IBV_WC_SUCCESS);
		post(work, IBV_WR_RDMA_WRITE, len[i % 2]);
		expect(work, polled(ends->client->send_cq) == IBV_WC_SUCCESS);
	}
}

static void end(struct work *work)
{
	post_recv(work, LONG);
	expect(work, rdma_disconnect(work->ends.client) == 0);
	expect(work, polled(work->ends.server->recv_cq) == IBV_WC_WR_FLUSH_ERR);
}

static void *run_cancelled(void *arg)
{
	struct work *work = arg;

	pthread_cancel(pthread_self());
	work->run(work);
	work->done = true;
	pthread_testcancel();
	return NULL;
}

static void begin(struct work *work)
{
	cm_ends_open(&work->ends, "127.0.0.1");
	cm_ends_connect(&work->ends);
	work->from_mr =
		ibv_reg_mr(work->ends.client->pd, from, sizeof(from), IBV_ACCESS_LOCAL_WRITE);
	work->to_mr = ibv_reg_mr(work->ends.server->pd, to, sizeof(to),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ);
	assert_true(work->from_mr && work->to_mr);
}

static void run(struct work *work, void (*what)(struct work *))
{
	pthread_t thread;
	void *result;

	work->run = what;
	assert_int_equal(pthread_create(&thread, NULL, run_cancelled, work), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_true(work->done);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_false(work->failed);
}

static void data_calls__are_no_cancellation_points(void **state)
{
	struct work work = { 0 };

	(void)state;
	begin(&work);
	run(&work, move_data);
	cm_ends_disconnect(&work.ends);
	assert_int_equal(ibv_dereg_mr(work.from_mr), 0);
	assert_int_equal(ibv_dereg_mr(work.to_mr), 0);
	cm_ends_close(&work.ends);
}

static void disconnect__is_no_cancellation_point(void **state)
{
	struct work work = { 0 };

	(void)state;
	begin(&work);
	run(&work, end);
	cm_expect_ack(work.ends.active, RDMA_CM_EVENT_DISCONNECTED, 0);
	cm_expect_ack(work.ends.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(ibv_dereg_mr(work.from_mr), 0);
	assert_int_equal(ibv_dereg_mr(work.to_mr), 0);
	cm_ends_close(&work.ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_calls__are_no_cancellation_points),
		cmocka_unit_test(disconnect__is_no_cancellation_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
