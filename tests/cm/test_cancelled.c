// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that another one has cancelled (pthreads(7)) posts, polls, disconnects, makes objects and destroys them: calls that do not wait are no cancellation
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

static void make_verbs(struct work *work, struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
	struct ibv_srq_init_attr srq_attr = { .attr = { 16, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	struct ibv_mr *mr = ibv_reg_mr(pd, to, sizeof(to), IBV_ACCESS_LOCAL_WRITE);

	expect(work, pd && channel && cq && srq && qp && mr);
	expect(work, ibv_dereg_mr(mr) == 0 && ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0);
	expect(work, ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0 &&
			     ibv_dealloc_pd(pd) == 0);
}

static void make_ids(struct work *work)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_id *resolved = work->ends.client, *listener;

	expect(work, rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	expect(work, rdma_bind_addr(listener, (struct sockaddr *)&ss) == 0);
	expect(work, rdma_listen(listener, 1) == 0);
	rdma_destroy_qp(resolved);
	expect(work, rdma_create_qp(resolved, NULL, &attr) == 0);
	make_verbs(work, resolved->verbs);
	expect(work, rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(channel);
}

static void make_all(struct work *work)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context = ibv_open_device(list[0]);
		union ibv_gid gid;

		expect(work, ibv_query_gid(context, 1, 0, &gid) == 0);
		make_verbs(work, context);
		make_ids(work);
		expect(work, ibv_close_device(context) == 0);
		ibv_free_device_list(list);
	}
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

/* A thread that is cancelled half way would take objects with it, or leave locks taken. */
static void making_calls__are_no_cancellation_points(void **state)
{
	struct work work = { 0 };

	(void)state;
	cm_ends_open(&work.ends, "127.0.0.1");
	run(&work, make_all);
	run(&work, make_all);
	cm_ends_close(&work.ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_calls__are_no_cancellation_points),
		cmocka_unit_test(disconnect__is_no_cancellation_point),
		cmocka_unit_test(making_calls__are_no_cancellation_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
