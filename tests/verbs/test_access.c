// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What ibv_modify_qp's qp_access_flags leave a peer, and which event tells of a peer that went too
// far.
#include "pair.h"

#include "verbs/newer.h"

#include <string.h>

enum {
	ALL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
	      (int)VB_ACCESS_FLUSH,
};

static void grant(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = access };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static unsigned int granted(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
	return attr.qp_access_flags;
}

static enum ibv_wc_status try(struct pair *p, enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_sge sge = side_sge(&p->a, 0, 8);
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = (uintptr_t)p->b.memory;
		wr.wr.rdma.rkey = rkey;
	} else {
		wr.wr.atomic.remote_addr = (uintptr_t)p->b.memory;
		wr.wr.atomic.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	return wc_wait(p->a.send_cq).status;
}

/* The next event of qp but COMM_EST; those of other QPs are acknowledged and passed over. */
static enum ibv_event_type event_of(struct fixture *f, struct ibv_qp *qp)
{
	struct ibv_async_event event;

	do {
		event = async_wait(f->context);
		ibv_ack_async_event(&event);
	} while (event.element.qp != qp || event.event_type == IBV_EVENT_COMM_EST);
	return event.event_type;
}

static void modify_qp__access_flags_are_shown(void **state)
{
	struct ibv_qp *qp = qp_make(*state);

	assert_int_equal(granted(qp), ALL);
	grant(qp, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(granted(qp), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	grant(qp, 0);
	assert_int_equal(granted(qp), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(granted(qp), ALL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__access_flags_with_a_move(void **state)
{
	struct ibv_qp *qp = qp_make(*state);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(granted(qp), IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__what_is_not_granted_ends_the_stream(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned int right;
	} kinds[] = {
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	};
	struct pair p;

	for (int i = 0; i < 2; i++) {
		pair_make(&p, *state, NULL);
		grant(p.b.qp, kinds[i].right);
		assert_int_equal(try(&p, kinds[i].opcode, p.b.mr->rkey), IBV_WC_SUCCESS);
		grant(p.b.qp, ALL & ~kinds[i].right);
		assert_int_equal(try(&p, kinds[i].opcode, p.b.mr->rkey), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(event_of(*state, p.b.qp), IBV_EVENT_QP_ACCESS_ERR);
		pair_destroy(&p);
	}
}

/* A Write may be complete at its own end before the other one refuses it. */
static void modify_qp__no_remote_write(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	memset(p.a.memory, 7, 8);
	grant(p.b.qp, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(try(&p, IBV_WR_RDMA_WRITE, p.b.mr->rkey), IBV_WC_SUCCESS);
	grant(p.b.qp, ALL & ~IBV_ACCESS_REMOTE_WRITE);
	memset(p.a.memory, 8, 8);
	try(&p, IBV_WR_RDMA_WRITE, p.b.mr->rkey);
	assert_int_equal(event_of(*state, p.b.qp), IBV_EVENT_QP_ACCESS_ERR);
	assert_true(p.b.memory[0] != 8);
	pair_destroy(&p);
}

/* The end that refused knows why; the one that was refused only that it is over. */
static void get_async_event__access_error(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	assert_int_equal(try(&p, IBV_WR_RDMA_READ, p.b.mr->rkey ^ 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(event_of(*state, p.b.qp), IBV_EVENT_QP_ACCESS_ERR);
	pair_destroy(&p);
	pair_make(&p, *state, NULL);
	assert_int_equal(try(&p, IBV_WR_RDMA_READ, p.b.mr->rkey ^ 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(event_of(*state, p.a.qp), IBV_EVENT_QP_FATAL);
	pair_destroy(&p);
}

/* A Send without a receive cannot be carried out. */
static void get_async_event__request_error(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	try(&p, IBV_WR_SEND, 0);
	assert_int_equal(event_of(*state, p.b.qp), IBV_EVENT_QP_REQ_ERR);
	pair_destroy(&p);
}

/* The end whose own WR was at fault. */
static void get_async_event__local_error(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	p.a.mr->lkey ^= 1;
	assert_int_equal(try(&p, IBV_WR_SEND, 0), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(event_of(*state, p.a.qp), IBV_EVENT_QP_FATAL);
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(modify_qp__access_flags_are_shown),
		WITH(modify_qp__access_flags_with_a_move),
		WITH(modify_qp__what_is_not_granted_ends_the_stream),
		WITH(modify_qp__no_remote_write),
		WITH(get_async_event__access_error),
		WITH(get_async_event__request_error),
		WITH(get_async_event__local_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
