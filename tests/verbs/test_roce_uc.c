// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UC QPs of the roce persona: their attributes, what they carry, and what they drop without a word.
#include "walk.h"

#include "../lib/until.h"
#include "net/qp/carrier.h"
#include "net/roce/qpn.h"
#include "ring/lock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TALKS = 100, /* enough for a stream to move into memory */
	BURST = 2000,
	AHEAD = 10 * WR_MAX, /* many times the receives that are posted */
	LONG = 3000,
	IMM = 0x01020304,
};

static bool wants_memory; /* the stream is to move into shared memory */

static uint32_t dropped(const struct walker *w)
{
	struct aw_uqp *uqp = aw_qpn_get(w->qp->qp_num);
	uint32_t count;

	aw_lock(&uqp->lock);
	count = uqp->core.rx_drop.count;
	aw_unlock(&uqp->lock);
	aw_uqp_put(uqp);
	return count;
}

static bool is_in_memory(const struct walker *w)
{
	struct aw_uqp *uqp = aw_qpn_get(w->qp->qp_num);
	bool moved;

	aw_lock(&uqp->lock);
	moved = !uqp->in->is_socket && !uqp->out->is_socket;
	aw_unlock(&uqp->lock);
	aw_uqp_put(uqp);
	return moved;
}

/* Sends or writes; the sender hears success, the receiver nothing. */
static void drops(struct two *t, enum ibv_wr_opcode opcode, uint32_t len)
{
	uint32_t before = dropped(&t->b);

	walker_post(&t->a, opcode, len, &t->b);
	walker_sent(&t->a, IBV_WC_SUCCESS);
	until(dropped(&t->b) == before + 1);
	walker_hears_nothing(&t->b);
	assert_int_equal(qp_state(t->a.qp), IBV_QPS_RTS);
}

/* Attributes. */

static void check_mask(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const int foreign[] = { IBV_QP_TIMEOUT,	    IBV_QP_RETRY_CNT,
				       IBV_QP_RNR_RETRY,    IBV_QP_MAX_QP_RD_ATOMIC,
				       IBV_QP_QKEY,	    IBV_QP_MAX_DEST_RD_ATOMIC,
				       IBV_QP_MIN_RNR_TIMER };

	for (int bit = 1; bit < 1 << 21; bit <<= 1)
		if (mask & bit && bit != IBV_QP_STATE)
			assert_int_equal(ibv_modify_qp(qp, attr, mask & ~bit), EINVAL);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_int_equal(ibv_modify_qp(qp, attr, mask | foreign[i]), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, attr, mask), 0);
	assert_int_equal(qp_state(qp), attr->qp_state);
}

/* Those of ibv_modify_qp(3), and none that only a reliable connection has. */
static void modify_qp__masks(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts(), rtr, got;
	struct ibv_qp_init_attr init_attr;
	struct walker w;

	walker_make_type(&w, f, IBV_QPT_UC, NULL);
	rtr = walk_attr_rtr(&route, w.qp->qp_num);
	check_mask(w.qp, &init, WALK_INIT);
	check_mask(w.qp, &rtr, WALK_UC_RTR);
	check_mask(w.qp, &rts, WALK_UC_RTS);
	assert_int_equal(ibv_query_qp(w.qp, &got, IBV_QP_STATE, &init_attr), 0);
	assert_int_equal(init_attr.qp_type, IBV_QPT_UC);
	assert_int_equal(got.dest_qp_num, w.qp->qp_num);
	assert_int_equal(got.max_rd_atomic, 0);
	assert_int_equal(qp_move(w.qp, IBV_QPS_SQD), 0);
	assert_int_equal(qp_move(w.qp, IBV_QPS_RTS), 0);
	assert_int_equal(qp_move(w.qp, IBV_QPS_ERR), 0);
	walker_destroy(&w);
}

static int post_opcode(struct walker *w, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, 8, w->mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 }, *bad;

	wr.wr.atomic.remote_addr = (uintptr_t)w->memory;
	return ibv_post_send(w->qp, &wr, &bad);
}

static void post_send__refuses_what_is_answered(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker w;

	walker_make_type(&w, f, IBV_QPT_UC, NULL);
	walk(&w, &route, w.qp->qp_num);
	assert_int_equal(post_opcode(&w, IBV_WR_RDMA_READ), EINVAL);
	assert_int_equal(post_opcode(&w, IBV_WR_ATOMIC_CMP_AND_SWP), EINVAL);
	assert_int_equal(post_opcode(&w, IBV_WR_ATOMIC_FETCH_AND_ADD), EINVAL);
	walker_destroy(&w);
}

static struct ibv_qp_init_attr_ex attr_ex(struct fixture *f, uint64_t ops)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { WR_MAX, WR_MAX, 1, 1, INLINE_MAX },
		.qp_type = IBV_QPT_UC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = ops,
	};
}

static void create_qp_ex__operations(void **state)
{
	static const uint64_t refused[] = { IBV_QP_EX_WITH_RDMA_READ,
					    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
					    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD };
	struct ibv_device_attr_ex dev;
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct ibv_qp_init_attr_ex attr = attr_ex(f, IBV_QP_EX_WITH_SEND | refused[i]);

		FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));
	}
	assert_int_equal(ibv_query_device_ex(f->context, NULL, &dev), 0);
	if (dev.odp_caps.general_caps)
		assert_true(dev.odp_caps.per_transport_caps.uc_odp_caps & IBV_ODP_SUPPORT_WRITE);
}

/* Sends and Writes, with immediate data, by the functions that build them; the QP is its own peer. */
static void wr_complete__builds_each_operation(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_init_attr_ex attr =
		attr_ex(f, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				   IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
	struct walker w, self;
	struct ibv_qp_ex *qp;

	walker_make(&w, f); /* its memory and its CQs */
	self = w;
	attr.send_cq = w.send_cq;
	attr.recv_cq = w.recv_cq;
	self.qp = ibv_create_qp_ex(f->context, &attr);
	assert_non_null(self.qp);
	walk(&self, &route, self.qp->qp_num);
	for (uint64_t i = 0; i < 3; i++)
		walker_recv(&self, i);
	qp = ibv_qp_to_qp_ex(self.qp);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, "send", 4);
	ibv_wr_send_imm(qp, htonl(IMM));
	ibv_wr_set_inline_data(qp, "send", 4);
	ibv_wr_rdma_write(qp, w.mr->rkey, (uintptr_t)w.memory + 100);
	ibv_wr_set_inline_data(qp, "write", 5);
	ibv_wr_rdma_write_imm(qp, w.mr->rkey, (uintptr_t)w.memory + 105, htonl(IMM));
	ibv_wr_set_inline_data(qp, "again", 5);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (int i = 0; i < 4; i++)
		walker_sent(&self, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(&self, IBV_WC_SUCCESS).opcode, IBV_WC_RECV);
	assert_int_equal(walker_received(&self, IBV_WC_SUCCESS).imm_data, htonl(IMM));
	assert_int_equal(walker_received(&self, IBV_WC_SUCCESS).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_memory_equal(w.memory + 100, "writeagain", 10);
	ibv_wr_start(qp);
	ibv_wr_rdma_read(qp, w.mr->rkey, (uintptr_t)w.memory);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_destroy_qp(self.qp), 0);
	walker_destroy(&w);
}

/* Messages that arrive. */

static void connect__in_any_way(void **state)
{
	struct fixture *f = *state;
	struct route routes[] = { route_loopback(f), route_by(f, "::1"), route_by_lid() };

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		struct two t;

		two_make_uc(&t, f);
		two_walk(&t, &routes[i]);
		two_talk(&t);
		two_destroy(&t);
	}
}

static void write_imm__and_talk(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	for (int i = 0; i < TALKS; i++)
		two_talk(&t);
	memset(t.a.memory, 7, LONG);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_RDMA_WRITE, LONG, &t.b);
	walker_post(&t.a, IBV_WR_RDMA_WRITE_WITH_IMM, LONG, &t.b);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(&t.b, IBV_WC_SUCCESS).byte_len, LONG);
	assert_int_equal(t.b.memory[LONG - 1], 7);
	assert_int_equal(is_in_memory(&t.a), wants_memory);
	two_destroy(&t);
}

/* Sent at once after RTS: nothing of it may be lost, though there is no connection yet. */
static void post__before_the_peer_is_told(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make_uc(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	memset(t.a.memory, 7, 64);
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walk_init(&t.b);
	walker_recv(&t.b, 1);
	walk_rtr(&t.b, &route, t.a.qp->qp_num);
	walker_received(&t.b, IBV_WC_SUCCESS);
	assert_int_equal(t.b.memory[63], 7);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* The sender is ahead of the receiver's program, which has few receives, posts each again, and loses nothing. */
static void send__a_burst_over_few_receives(void **state)
{
	uint32_t posted = 0, received = 0;
	struct ibv_wc wc;
	struct two t;

	two_connect_uc(&t, *state);
	for (int i = 0; i < WR_MAX; i++)
		walker_recv(&t.b, 0);
	repeat_until(received == BURST)
	{
		for (; posted < BURST && posted - received < AHEAD; posted++) {
			walker_post(&t.a, IBV_WR_SEND, 8, NULL);
			walker_sent(&t.a, IBV_WC_SUCCESS);
		}
		for (int i = 0; i < WR_MAX && ibv_poll_cq(t.b.recv_cq, 1, &wc) > 0; i++) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			walker_recv(&t.b, 0);
			received++;
		}
	}
	assert_int_equal(dropped(&t.b), 0);
	two_destroy(&t);
}

/* What is dropped. */

static void send__without_a_receive(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	for (int i = 0; i < 3; i++)
		drops(&t, IBV_WR_SEND, 16);
	two_talk(&t);
	drops(&t, IBV_WR_SEND_WITH_IMM, LONG);
	two_talk(&t);
	two_destroy(&t);
}

/* Only the first one waits for a moment: many of them take no longer than one. */
static void send__many_without_a_receive(void **state)
{
	uint32_t before;
	struct two t;

	two_connect_uc(&t, *state);
	drops(&t, IBV_WR_SEND, 16);
	before = dropped(&t.b);
	for (int i = 0; i < 1000; i++) {
		walker_post(&t.a, IBV_WR_SEND, 16, NULL);
		walker_sent(&t.a, IBV_WC_SUCCESS);
	}
	until(dropped(&t.b) == before + 1000);
	two_talk(&t);
	two_destroy(&t);
}

static void send__longer_than_its_receive(void **state)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 77, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct two t;

	two_connect_uc(&t, *state);
	sge = (struct ibv_sge){ (uintptr_t)t.b.memory, 10, t.b.mr->lkey };
	assert_int_equal(ibv_post_recv(t.b.qp, &wr, &bad), 0);
	drops(&t, IBV_WR_SEND, 11);
	drops(&t, IBV_WR_SEND, LONG);
	walker_post(&t.a, IBV_WR_SEND, 10, NULL);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(&t.b, IBV_WC_SUCCESS).wr_id, 77);
	two_destroy(&t);
}

/* Its receive cannot be kept for this QP. */
static void send__longer_than_a_receive_of_an_srq(void **state)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = WR_MAX, .max_sge = 1 } };
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_srq *srq = ibv_create_srq(f->pd, &srq_attr);
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct two t;

	assert_non_null(srq);
	walker_make_type(&t.a, f, IBV_QPT_UC, NULL);
	walker_make_type(&t.b, f, IBV_QPT_UC, srq);
	two_walk(&t, &route);
	wr.sg_list = &sge;
	sge = (struct ibv_sge){ (uintptr_t)t.b.memory, 10, t.b.mr->lkey };
	for (wr.wr_id = 1; wr.wr_id <= 2; wr.wr_id++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	walker_post(&t.a, IBV_WR_SEND, LONG, NULL);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(&t.b, IBV_WC_REM_INV_REQ_ERR).wr_id, 1);
	assert_int_equal(qp_state(t.b.qp), IBV_QPS_RTS);
	walker_post(&t.a, IBV_WR_SEND, 10, NULL);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(&t.b, IBV_WC_SUCCESS).wr_id, 2);
	two_destroy(&t);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void write__with_a_bad_key(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	walker_recv(&t.b, 1);
	t.b.mr->rkey ^= 0x55;
	drops(&t, IBV_WR_RDMA_WRITE, 16);
	drops(&t, IBV_WR_RDMA_WRITE, LONG);
	drops(&t, IBV_WR_RDMA_WRITE_WITH_IMM, LONG);
	t.b.mr->rkey ^= 0x55;
	walker_post(&t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 16, &t.b);
	assert_int_equal(walker_received(&t.b, IBV_WC_SUCCESS).wr_id, 1);
	two_destroy(&t);
}

/* One octet too far; the rest of the memory, and a QP without the right. */
static void write__that_is_not_allowed(void **state)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct two t;

	two_connect_uc(&t, *state);
	t.b.memory += 1;
	drops(&t, IBV_WR_RDMA_WRITE, WALK_MEMORY);
	t.b.memory -= 1;
	assert_int_equal(ibv_modify_qp(t.b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	drops(&t, IBV_WR_RDMA_WRITE, 16);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_modify_qp(t.b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	memset(t.a.memory, 9, 16);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_RDMA_WRITE_WITH_IMM, 16, &t.b);
	walker_received(&t.b, IBV_WC_SUCCESS);
	assert_int_equal(t.b.memory[15], 9);
	two_destroy(&t);
}

static void write_imm__without_a_receive(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	memset(t.a.memory, 9, LONG);
	drops(&t, IBV_WR_RDMA_WRITE_WITH_IMM, LONG);
	assert_int_equal(t.b.memory[LONG - 1], 9);
	two_talk(&t);
	two_destroy(&t);
}

/* A fault of this end's own ends its QP; the peer's does not notice, and is there for the next walk. */
static void send__with_a_bad_lkey(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_connect_uc(&t, f);
	t.a.mr->lkey ^= 0x55;
	walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	walker_sent(&t.a, IBV_WC_LOC_PROT_ERR);
	t.a.mr->lkey ^= 0x55;
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_ERR);
	walk_reset(&t.a);
	walk(&t.a, &route, t.b.qp->qp_num);
	walker_talk(&t.a, &t.b);
	walker_talk(&t.b, &t.a);
	assert_int_equal(qp_state(t.b.qp), IBV_QPS_RTS);
	two_destroy(&t);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(modify_qp__masks),
		WITH(post_send__refuses_what_is_answered),
		WITH(create_qp_ex__operations),
		WITH(wr_complete__builds_each_operation),
		WITH(connect__in_any_way),
		WITH(write_imm__and_talk),
		WITH(post__before_the_peer_is_told),
		WITH(send__a_burst_over_few_receives),
		WITH(send__without_a_receive),
		WITH(send__many_without_a_receive),
		WITH(send__longer_than_its_receive),
		WITH(send__longer_than_a_receive_of_an_srq),
		WITH(write__with_a_bad_key),
		WITH(write__that_is_not_allowed),
		WITH(write_imm__without_a_receive),
		WITH(send__with_a_bad_lkey),
	};
	const char *host_path = getenv("ANYWARP_HOST_PATH");

	wants_memory = host_path && !strcmp(host_path, "on");
	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
