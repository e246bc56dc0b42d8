// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs and SRQs of XRC.
#define _GNU_SOURCE // memfd_create

#include "xrc_scene.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
	ALL_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
		  IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	RECEIVE = 512,
};

int xrc_file(void)
{
	int fd = memfd_create("xrc", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct ibv_xrcd *xrcd_open(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(context, &attr);
}

struct ibv_srq *xrc_srq_make(struct fixture *f, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { WR_MAX, SGE_MAX, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = f->pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(f->context, &attr);

	assert_non_null(srq);
	return srq;
}

uint32_t xrc_srq_number(struct ibv_srq *srq)
{
	uint32_t number = 0;

	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	return number;
}

struct ibv_qp *xrc_target_make(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &attr);

	assert_non_null(qp);
	return qp;
}

struct ibv_qp *xrc_initiator_make(struct fixture *f, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.cap = { WR_MAX, 0, SGE_MAX, 0, INLINE_MAX },
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = ALL_OPS,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(f->context, &attr);

	assert_non_null(qp);
	return qp;
}

void xrc_make(struct xrc *x, struct fixture *f)
{
	*x = (struct xrc){ .f = f, .fd = xrc_file() };
	x->xrcd = xrcd_open(f->context, x->fd, O_CREAT);
	assert_non_null(x->xrcd);
	x->send_cq = ibv_create_cq(f->context, CQE_MAX, NULL, NULL, 0);
	assert_non_null(x->send_cq);
	for (int i = 0; i < XRC_SRQS; i++) {
		x->cq[i] = ibv_create_cq(f->context, CQE_MAX, NULL, NULL, 0);
		assert_non_null(x->cq[i]);
		x->srq[i] = xrc_srq_make(f, x->xrcd, x->cq[i]);
		x->srqn[i] = xrc_srq_number(x->srq[i]);
	}
	x->target = xrc_target_make(f->context, x->xrcd);
	x->initiator = xrc_initiator_make(f, x->send_cq);
	x->memory = calloc(1, XRC_MEMORY);
	x->mr = ibv_reg_mr(f->pd, x->memory, XRC_MEMORY, ALL_RIGHTS);
	assert_non_null(x->mr);
	x->rkey = x->mr->rkey;
}

void xrc_connect(struct xrc *x)
{
	xrc_connect_rnr(x, 7, true);
}

void xrc_connect_rnr(struct xrc *x, uint8_t rnr_retry, bool target_to_rts)
{
	struct route route = route_loopback(x->f);
	struct ibv_qp_attr init = walk_attr_init(), rts = walk_attr_rts();
	struct ibv_qp_attr to_target = walk_attr_rtr(&route, x->target->qp_num);
	struct ibv_qp_attr to_initiator = walk_attr_rtr(&route, x->initiator->qp_num);

	assert_int_equal(ibv_modify_qp(x->target, &init, XRC_INIT), 0);
	assert_int_equal(ibv_modify_qp(x->target, &to_initiator, XRC_RTR_TARGET), 0);
	if (target_to_rts)
		assert_int_equal(ibv_modify_qp(x->target, &rts, XRC_RTS_TARGET), 0);
	rts.rnr_retry = rnr_retry;
	assert_int_equal(ibv_modify_qp(x->initiator, &init, XRC_INIT), 0);
	assert_int_equal(ibv_modify_qp(x->initiator, &to_target, XRC_RTR_INITIATOR), 0);
	assert_int_equal(ibv_modify_qp(x->initiator, &rts, XRC_RTS_INITIATOR), 0);
}

void xrc_destroy(struct xrc *x)
{
	if (x->initiator)
		assert_int_equal(ibv_destroy_qp(x->initiator), 0);
	if (x->target)
		assert_int_equal(ibv_destroy_qp(x->target), 0);
	assert_int_equal(ibv_dereg_mr(x->mr), 0);
	free(x->memory);
	for (int i = 0; i < XRC_SRQS; i++) {
		if (x->srq[i])
			assert_int_equal(ibv_destroy_srq(x->srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(x->cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(x->send_cq), 0);
	assert_int_equal(ibv_close_xrcd(x->xrcd), 0);
	close(x->fd);
}

void xrc_recv(struct xrc *x, int srq, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)x->memory + RECEIVE * wr_id, RECEIVE, x->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_srq_recv(x->srq[srq], &wr, &bad), 0);
}

void xrc_post(struct xrc *x, enum ibv_wr_opcode opcode, uint32_t len, uint32_t srqn)
{
	struct ibv_sge sge = { (uintptr_t)x->memory, len, x->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 0x01020304,
		.qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_send_wr *bad;
	uint64_t far = (uintptr_t)x->memory + XRC_FAR;

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = far;
		wr.wr.atomic.rkey = x->rkey;
		wr.wr.atomic.compare_add = 7;
		wr.wr.atomic.swap = 9;
	} else {
		wr.wr.rdma.remote_addr = far;
		wr.wr.rdma.rkey = x->rkey;
	}
	assert_int_equal(ibv_post_send(x->initiator, &wr, &bad), 0);
}

struct ibv_wc xrc_sent(struct xrc *x, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_wait(x->send_cq);

	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, x->initiator->qp_num);
	return wc;
}

struct ibv_wc xrc_received(struct xrc *x, int srq, uint64_t wr_id)
{
	struct ibv_wc wc = wc_wait(x->cq[srq]);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.src_qp, x->initiator->qp_num);
	return wc;
}

void xrc_talk(struct xrc *x, int srq)
{
	static uint8_t mark;

	mark++;
	memset(x->memory, mark, 16);
	xrc_recv(x, srq, 3);
	xrc_post(x, IBV_WR_SEND, 16, x->srqn[srq]);
	xrc_sent(x, IBV_WC_SUCCESS);
	assert_int_equal(xrc_received(x, srq, 3).byte_len, 16);
	assert_int_equal(x->memory[3 * RECEIVE + 15], mark);
}

void xrc_events(struct ibv_context *context, struct ibv_qp *qp, enum ibv_event_type a,
		enum ibv_event_type b)
{
	struct ibv_async_event first = async_wait(context), second = async_wait(context);

	assert_ptr_equal(first.element.qp, qp);
	assert_ptr_equal(second.element.qp, qp);
	assert_true((first.event_type == a && second.event_type == b) ||
		    (first.event_type == b && second.event_type == a));
	ibv_ack_async_event(&first);
	ibv_ack_async_event(&second);
}
