// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows of a pair.
#include "window.h"

#include <string.h>

struct ibv_mw_bind_info window_info(const struct side *s, size_t length)
{
	return (struct ibv_mw_bind_info){ s->mr, (uintptr_t)s->memory + AT, length, RW };
}

int window_bind_type1(struct side *s, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { 51, IBV_SEND_SIGNALED, info };

	return ibv_bind_mw(s->qp, mw, &bind);
}

int window_bind_type2(struct side *s, struct ibv_mw *mw, uint32_t rkey,
		      struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {
		.wr_id = 52,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey, info },
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(s->qp, &wr, &bad);
}

void window_expect_bound(struct side *s)
{
	struct ibv_wc wc = wc_wait(s->send_cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_true(wc.wr_id == 51 || wc.wr_id == 52);
}

/* b's window of this type, bound to LEN octets at AT. */
struct ibv_mw *window_make(struct pair *p, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(p->b.mr->pd, type);

	assert_non_null(mw);
	assert_int_equal(mw->type, type);
	if (type == IBV_MW_TYPE_1)
		assert_int_equal(window_bind_type1(&p->b, mw, window_info(&p->b, LEN)), 0);
	else
		assert_int_equal(window_bind_type2(&p->b, mw, mw->rkey, window_info(&p->b, LEN)),
				 0);
	window_expect_bound(&p->b);
	return mw;
}

void side_post(struct side *s, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t to,
	       uint32_t length)
{
	struct ibv_sge sge = side_sge(s, 0, length);
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = opcode == IBV_WR_LOCAL_INV ? 0 : 1,
		.invalidate_rkey = rkey,
		.wr.rdma = { to, rkey },
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(s->qp, &wr, &bad), 0);
}

/* A Read through b's window tells, since its completion does, how b finds the rkey. */
enum ibv_wc_status window_read(struct pair *p, uint32_t rkey, size_t offset, uint32_t length)
{
	side_post(&p->a, IBV_WR_RDMA_READ, rkey, (uintptr_t)p->b.memory + offset, length);
	return wc_wait(p->a.send_cq).status;
}

void window_expect_works(struct pair *p, uint32_t rkey)
{
	memset(p->a.memory, 0x11, LEN);
	side_post(&p->a, IBV_WR_RDMA_WRITE, rkey, (uintptr_t)p->b.memory + AT, LEN);
	assert_int_equal(wc_wait(p->a.send_cq).status, IBV_WC_SUCCESS);
	memset(p->a.memory, 0, LEN);
	assert_int_equal(window_read(p, rkey, AT, LEN), IBV_WC_SUCCESS);
	assert_int_equal(p->a.memory[0], 0x11);
	assert_int_equal(p->a.memory[LEN - 1], 0x11);
	assert_int_equal(p->b.memory[AT - 1] | p->b.memory[AT + LEN], 0);
	memset(p->b.memory + AT, 0, LEN);
}

void window_each_type(void **state, void (*test)(struct pair *p, struct ibv_mw *mw))
{
	enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };
	struct ibv_mw *mw;
	struct pair p;

	for (int i = 0; i < 2; i++) {
		pair_make(&p, *state, NULL);
		mw = window_make(&p, types[i]);
		test(&p, mw);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		pair_destroy(&p);
	}
}
