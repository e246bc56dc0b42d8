// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ibv_wr_* calls, and what goes on between them.
#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static void wr_complete__builds_every_operation(void **state)
{
	struct pair p;
	struct ibv_qp_ex *qp;
	struct ibv_sge list[2];
	char text[] = "text";

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	side_recv(&p.b, 1, 1000, 100);
	memcpy(p.a.memory, "abcdef", 6);
	list[0] = side_sge(&p.a, 3, 3);
	list[1] = side_sge(&p.a, 0, 3);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	qp->wr_id = 1;
	ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.memory);
	ibv_wr_set_sge_list(qp, 2, list);
	qp->wr_id = 2;
	ibv_wr_rdma_read(qp, p.b.mr->rkey, (uintptr_t)p.b.memory + 1);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory + 100, 5);
	qp->wr_id = 3;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, text, sizeof(text));
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		struct ibv_wc wc = wc_wait(p.a.send_cq);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, sizeof(text));
	assert_string_equal((char *)p.b.memory + 1000, "text");
	assert_memory_equal(p.b.memory, "defabc", 6);
	assert_memory_equal(p.a.memory + 100, "efabc", 5);
	pair_destroy(&p);
}

static void text_build(struct ibv_qp_ex *qp, char *text, size_t len)
{
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, text, len);
}

/* Between the calls the thread posts receives, polls, and has what arrives: it holds up nothing but other posts. */
static void wr_start__all_else_goes_on(void **state)
{
	struct pair p;
	struct ibv_qp_ex *qp, *peer;
	char text[] = "text";
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.b.qp);
	peer = ibv_qp_to_qp_ex(p.a.qp); /* the initiator, which may send first */
	text_build(qp, text, sizeof(text));
	side_recv(&p.a, 1, 0, 100);
	side_recv(&p.b, 2, 0, 100);
	assert_int_equal(ibv_poll_cq(p.b.send_cq, 1, &wc), 0);
	assert_int_equal(ibv_req_notify_cq(p.b.recv_cq, 0), 0);
	assert_int_equal(qp_state(p.b.qp), IBV_QPS_RTS);
	text_build(peer, text, sizeof(text));
	assert_int_equal(ibv_wr_complete(peer), 0);
	assert_int_equal(wc_wait(p.b.recv_cq).wr_id, 2);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(p.a.recv_cq, 1, &wc), 0);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_wait(p.a.recv_cq).wr_id, 1);
	assert_int_equal(wc_wait(p.b.send_cq).status, IBV_WC_SUCCESS);
	assert_string_equal((char *)p.a.memory, text);
	pair_destroy(&p);
}

static void wr_complete__of_a_qp_that_was_reset(void **state)
{
	struct pair p;
	struct ibv_qp_ex *qp;
	char text[] = "text";
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	side_recv(&p.b, 1, 0, 100);
	for (int i = 0; i < 2; i++) {
		text_build(qp, text, sizeof(text));
		if (i == 1)
			assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
		assert_int_equal(ibv_wr_complete(qp), i == 0 ? 0 : EINVAL);
		if (i == 0)
			assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_poll_cq(p.a.send_cq, 1, &wc), 0);
	pair_destroy(&p);
}

struct poster {
	struct ibv_qp *qp;
	_Atomic bool posted;
};

static void *post_text(void *arg)
{
	struct ibv_sge sge = { (uintptr_t) "text", 5, 0 };
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	struct poster *poster = arg;
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(poster->qp, &wr, &bad), 0);
	atomic_store(&poster->posted, true);
	return NULL;
}

/* A post of another thread comes behind the WRs that this one builds, and overwrites none. */
static void wr_start__a_post_of_another_thread_waits(void **state)
{
	struct pair p;
	struct ibv_qp_ex *qp;
	struct poster poster = { 0 };
	char text[] = "longer";
	pthread_t thread;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	side_recv(&p.b, 1, 0, 100);
	side_recv(&p.b, 2, 100, 100);
	poster.qp = p.a.qp;
	qp->wr_id = 7;
	text_build(qp, text, sizeof(text));
	assert_int_equal(pthread_create(&thread, NULL, post_text, &poster), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ibv_poll_cq(p.a.send_cq, 1, &wc), 0);
	assert_false(atomic_load(&poster.posted));
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_wait(p.a.send_cq).wr_id, 7);
	assert_int_equal(wc_wait(p.a.send_cq).wr_id, 1);
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, sizeof(text));
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, 5);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(wr_complete__builds_every_operation),
		WITH(wr_start__all_else_goes_on),
		WITH(wr_complete__of_a_qp_that_was_reset),
		WITH(wr_start__a_post_of_another_thread_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
