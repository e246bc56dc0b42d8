// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs without a connection: life, limits, states and what may be posted.
#include "fixture.h"

#include <errno.h>
#include <string.h>

static void create_qp__grants_what_was_asked(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f), init;
	struct ibv_qp_attr now;
	struct ibv_qp *qp;

	attr.qp_context = f;
	attr.sq_sig_all = 1;
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_true(qp->qp_num > 1 && qp->qp_num < 1 << 24);
	assert_ptr_equal(qp->qp_context, f);
	assert_int_equal(ibv_query_qp(qp, &now, IBV_QP_CAP, &init), 0);
	assert_true(now.cap.max_send_wr >= WR_MAX);
	assert_memory_equal(&now.cap, &attr.cap, sizeof(now.cap));
	assert_memory_equal(&init.cap, &attr.cap, sizeof(init.cap));
	assert_ptr_equal(init.send_cq, f->cq);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(now.port_num, 1);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void create_qp__limits(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_device_attr dev;
	struct ibv_qp *qp;

	assert_int_equal(ibv_query_device(f->context, &dev), 0);
	attr.cap = (struct ibv_qp_cap){ (uint32_t)dev.max_qp_wr, (uint32_t)dev.max_qp_wr,
					(uint32_t)dev.max_sge, (uint32_t)dev.max_sge, 512 };
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	for (size_t i = 0; i < 5; i++) {
		struct ibv_qp_init_attr over = attr;

		((uint32_t *)&over.cap)[i]++;
		FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &over));
	}
	memset(&attr.cap, 0, sizeof(attr.cap));
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void create_qp__only_rc(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
						  IBV_QPT_XRC_SEND, IBV_QPT_DRIVER };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr attr = qp_attr(f);

		attr.qp_type = types[i];
		FAILS_WITH(EOPNOTSUPP, ibv_create_qp(f->pd, &attr));
	}
}

static void create_qp__needs_cqs_of_its_context(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = device_open();
	struct ibv_cq *cq = ibv_create_cq(other, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = qp_attr(f);

	attr.send_cq = NULL;
	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &attr));
	attr.send_cq = cq;
	FAILS_WITH(EINVAL, ibv_create_qp(f->pd, &attr));
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static struct ibv_qp_init_attr_ex qp_attr_ex(const struct fixture *f, uint64_t ops)
{
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp_init_attr_ex ex = { .pd = f->pd };

	memcpy(&ex, &attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.send_ops_flags = ops;
	return ex;
}

static void create_qp_ex__send_ops(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr_ex attr = qp_attr_ex(
		f, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
			   IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV);
	struct ibv_qp *qp = ibv_create_qp_ex(f->context, &attr);

	assert_non_null(qp);
	assert_ptr_equal(ibv_qp_to_qp_ex(qp), qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr = qp_attr_ex(f, IBV_QP_EX_WITH_TSO);
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));
	attr = qp_attr_ex(f, IBV_QP_EX_WITH_SEND);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
	FAILS_WITH(EOPNOTSUPP, ibv_create_qp_ex(f->context, &attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	FAILS_WITH(EINVAL, ibv_create_qp_ex(f->context, &attr));
}

static void modify_qp__states_without_a_connection(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);

	/* What a program sees before it asks, pyverbs' tests among them. */
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(qp_move(qp, IBV_QPS_INIT), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTS), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_SQD), EINVAL);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_int_equal(qp_state(qp), IBV_QPS_ERR);
	assert_int_equal(qp_move(qp, IBV_QPS_INIT), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(qp_state(qp), IBV_QPS_RESET);
	assert_int_equal(qp_move(qp, IBV_QPS_INIT), 0);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* iWARP has no such state, but programs walk through it as rdma_init_qp_attr's man page says. */
static void modify_qp__rtr_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);

	assert_int_equal(qp_move(qp, IBV_QPS_RTR), 0);
	assert_int_equal(qp_state(qp), IBV_QPS_INIT);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTR), EINVAL);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTR), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__attributes(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .max_rd_atomic = 128, .max_dest_rd_atomic = 3 }, now;

	assert_int_equal(ibv_modify_qp(qp, &attr, 0), 0);
	assert_int_equal(
		ibv_modify_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	assert_int_equal(ibv_query_qp(qp, &now, 0, &init), 0);
	assert_int_equal(now.max_rd_atomic, 128);
	assert_int_equal(now.max_dest_rd_atomic, 3);
	attr.max_rd_atomic = 129;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC), EINVAL);
	attr.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_PORT), EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_CUR_STATE), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_CAP), EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(qp, &attr, 1 << 30), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post_send__refused_before_a_connection(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post_recv__refused_in_reset(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_recv_wr wr = { 0 }, *bad = NULL;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(qp_move(qp, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post_recv__flushed_in_error_after_reset(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_recv_wr wr = { .wr_id = 9 }, *bad;
	struct ibv_wc wc;

	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post_recv__errors(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_sge sge[SGE_MAX + 1] = { { .length = UINT32_MAX }, { .length = 1 } };
	struct ibv_recv_wr wr[WR_MAX + 1] = { 0 };
	struct ibv_recv_wr odd = { .sg_list = sge, .num_sge = SGE_MAX + 1 }, *bad = NULL;

	assert_int_equal(ibv_post_recv(qp, &odd, &bad), EINVAL);
	odd.num_sge = -1;
	assert_int_equal(ibv_post_recv(qp, &odd, &bad), EINVAL);
	odd.num_sge = 2;
	assert_int_equal(ibv_post_recv(qp, &odd, &bad), EINVAL);
	for (int i = 0; i < WR_MAX; i++)
		wr[i].next = &wr[i + 1];
	assert_int_equal(ibv_post_recv(qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[WR_MAX]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__error_flushes_receives_in_order(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_recv_wr wr[3] = { { .wr_id = 1, .next = &wr[1] },
				     { .wr_id = 2, .next = &wr[2] },
				     { .wr_id = 3 } };
	struct ibv_recv_wr *bad;
	struct ibv_wc wc[4];

	assert_int_equal(ibv_post_recv(qp, wr, &bad), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 4, wc), 3);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void modify_qp__reset_forgets_completions(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* In error, a WR is still checked before it is flushed. */
static void post_send__checks_each_wr(void **state)
{
	static const struct {
		struct ibv_send_wr wr;
		int err;
	} cases[] = {
		{ { .opcode = IBV_WR_SEND, .num_sge = SGE_MAX + 1 }, EINVAL },
		{ { .opcode = IBV_WR_SEND, .num_sge = -1 }, EINVAL },
		{ { .opcode = IBV_WR_SEND, .send_flags = 1 << 10 }, EINVAL },
		{ { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM }, EINVAL },
		{ { .opcode = IBV_WR_SEND, .num_sge = 2, .send_flags = IBV_SEND_INLINE }, EINVAL },
		{ { .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_INLINE }, EINVAL },
		{ { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP }, EINVAL },
		{ { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1 }, EINVAL },
		{ { .opcode = IBV_WR_SEND_WITH_IMM }, 0 },
		{ { .opcode = IBV_WR_TSO }, EOPNOTSUPP },
		/* IBV_WR_FLUSH of rdma-core 50 and newer. */
		{ { .opcode = (enum ibv_wr_opcode)14 }, EOPNOTSUPP },
		{ { .opcode = IBV_WR_ATOMIC_WRITE }, EINVAL },
		{ { .opcode = IBV_WR_ATOMIC_WRITE, .num_sge = 1 }, EINVAL },
		{ { .opcode = (enum ibv_wr_opcode)99 }, EINVAL },
		{ { .opcode = IBV_WR_SEND }, 0 },
		{ { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .num_sge = 1 }, 0 },
	};
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	uint8_t octets[INLINE_MAX];
	struct ibv_sge sge[2] = { { (uintptr_t)octets, INLINE_MAX, 0 },
				  { (uintptr_t)octets, 1, 0 } };

	memset(octets, 1, sizeof(octets));
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_send_wr wr = cases[i].wr, *bad = NULL;

		wr.sg_list = sge;
		assert_int_equal(ibv_post_send(qp, &wr, &bad), cases[i].err);
		if (cases[i].err)
			assert_ptr_equal(bad, &wr);
		else
			assert_int_equal(wc_wait(f->cq).status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void post_send__a_message_has_at_most_2_gib(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_sge sge[2] = { { .length = 0x80000000u }, { .length = 1 } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 1 }, *bad;

	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(f->cq).status, IBV_WC_WR_FLUSH_ERR);
	wr.num_sge = 2;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A completion that nobody polled holds its WR's place in the send queue. */
static void post_send__full_queue(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_send_wr wr[WR_MAX + 1], *bad = NULL;
	struct ibv_wc wc;

	memset(wr, 0, sizeof(wr));
	for (uint64_t i = 0; i <= WR_MAX; i++) {
		wr[i].opcode = IBV_WR_SEND;
		wr[i].wr_id = i;
		wr[i].next = i < WR_MAX ? &wr[i + 1] : NULL;
	}
	assert_int_equal(qp_move(qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_post_send(qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[WR_MAX]);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(ibv_post_send(qp, bad, &bad), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static struct ibv_qp_ex *qp_ex_make(struct fixture *f)
{
	struct ibv_qp_init_attr_ex attr =
		qp_attr_ex(f, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
	struct ibv_qp *qp = ibv_create_qp_ex(f->context, &attr);

	assert_non_null(qp);
	return ibv_qp_to_qp_ex(qp);
}

static void wr_complete__refused_before_a_connection(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = qp_ex_make(f);

	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

static void wr_complete__all_or_none(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = qp_ex_make(f);
	uint8_t octets[INLINE_MAX + 1] = { 0 };
	struct ibv_wc wc[WR_MAX];

	assert_int_equal(qp_move(&qp->qp_base, IBV_QPS_ERR), 0);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, octets, INLINE_MAX);
	ibv_wr_rdma_write(qp, 1, 2);
	ibv_wr_set_inline_data(qp, octets, INLINE_MAX + 1);
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_poll_cq(f->cq, WR_MAX, wc), 0);

	ibv_wr_start(qp);
	qp->wr_id = 7;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 0, 0, 0);
	qp->wr_id = 8;
	ibv_wr_rdma_write(qp, 1, 2);
	ibv_wr_set_inline_data(qp, octets, 3);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(ibv_poll_cq(f->cq, WR_MAX, wc), 2);
	assert_int_equal(wc[0].wr_id, 7);
	assert_int_equal(wc[1].wr_id, 8);
	assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

static void wr_complete__full_queue(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = qp_ex_make(f);
	struct ibv_wc wc[WR_MAX];

	assert_int_equal(qp_move(&qp->qp_base, IBV_QPS_ERR), 0);
	ibv_wr_start(qp);
	for (int i = 0; i <= WR_MAX; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);
	ibv_wr_start(qp);
	for (int i = 0; i < WR_MAX; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(ibv_poll_cq(f->cq, WR_MAX, wc), WR_MAX);
	assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

/* A WR has SGEs or inline data. One that is given both must not write past its slot. */
static void wr_set_inline_data__not_beside_sges(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = qp_ex_make(f);
	uint8_t octets[INLINE_MAX] = { 0 };

	assert_int_equal(qp_move(&qp->qp_base, IBV_QPS_ERR), 0);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 0, 0, 1 << 20);
	ibv_wr_set_inline_data(qp, octets, INLINE_MAX);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, octets, INLINE_MAX);
	ibv_wr_set_sge(qp, 0, 0, 1 << 20);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

static void wr_abort__leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = qp_ex_make(f);
	struct ibv_wc wc;

	assert_int_equal(qp_move(&qp->qp_base, IBV_QPS_ERR), 0);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_abort(qp);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	ibv_wr_start(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
}

static void set_ece__unsupported(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp = qp_make(f);
	struct ibv_ece ece = { 0 };

	assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(create_qp__grants_what_was_asked),
		WITH(create_qp__limits),
		WITH(create_qp__only_rc),
		WITH(create_qp__needs_cqs_of_its_context),
		WITH(create_qp_ex__send_ops),
		WITH(modify_qp__states_without_a_connection),
		WITH(modify_qp__rtr_changes_nothing),
		WITH(modify_qp__attributes),
		WITH(post_send__refused_before_a_connection),
		WITH(post_recv__refused_in_reset),
		WITH(post_recv__flushed_in_error_after_reset),
		WITH(post_recv__errors),
		WITH(modify_qp__error_flushes_receives_in_order),
		WITH(modify_qp__reset_forgets_completions),
		WITH(post_send__checks_each_wr),
		WITH(post_send__a_message_has_at_most_2_gib),
		WITH(post_send__full_queue),
		WITH(wr_complete__refused_before_a_connection),
		WITH(wr_complete__all_or_none),
		WITH(wr_complete__full_queue),
		WITH(wr_set_inline_data__not_beside_sges),
		WITH(wr_abort__leaves_nothing),
		WITH(set_ece__unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
