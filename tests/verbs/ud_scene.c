// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The scene of tests of UD QPs.
#include "ud_scene.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

static uint8_t loopback_index(struct ibv_context *context)
{
	union ibv_gid gid;

	for (int i = 0; ibv_query_gid(context, 1, i, &gid) == 0; i++)
		if (memcmp(gid.raw, loopback, sizeof(loopback)) == 0)
			return (uint8_t)i;
	fail_msg("this host has no loopback address");
	return 0;
}

struct ibv_qp *ud_qp_make(const struct ud_scene *s, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = qp_attr(s->f);
	struct ibv_qp *qp;

	attr.qp_type = IBV_QPT_UD;
	attr.srq = srq;
	attr.send_cq = s->sends;
	qp = ibv_create_qp(s->f->pd, &attr);
	assert_non_null(qp);
	return qp;
}

int ud_to_init(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

int ud_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .sq_psn = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void ud_walk(struct ibv_qp *qp, uint32_t qkey)
{
	assert_int_equal(ud_to_init(qp, qkey), 0);
	assert_int_equal(qp_move(qp, IBV_QPS_RTR), 0);
	assert_int_equal(ud_to_rts(qp), 0);
}

void ud_end_open(struct ud_scene *s, struct ud_end *end)
{
	end->qp = ud_qp_make(s, NULL);
	ud_walk(end->qp, UD_QKEY);
	end->buf = calloc(2, UD_ROOM);
	assert_non_null(end->buf);
	end->mr = ibv_reg_mr(s->f->pd, end->buf, 2 * UD_ROOM, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(end->mr);
}

void ud_end_close(struct ud_end *end)
{
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	free(end->buf);
}

struct ibv_ah_attr ud_address(const struct ud_scene *s)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .sgid_index = s->sgid_index, .hop_limit = 1 },
	};

	memcpy(attr.grh.dgid.raw, loopback, sizeof(loopback));
	return attr;
}

int ud_setup(void **state)
{
	struct ud_scene *s = calloc(1, sizeof(*s));
	struct ibv_port_attr port;
	struct ibv_ah_attr attr;
	void *f;

	assert_non_null(s);
	fixture_setup(&f);
	s->f = f;
	s->sends = ibv_create_cq(s->f->context, CQE_MAX, NULL, NULL, 0);
	assert_non_null(s->sends);
	s->sgid_index = loopback_index(s->f->context);
	assert_int_equal(ibv_query_port(s->f->context, 1, &port), 0);
	s->mtu = 128u << port.active_mtu;
	attr = ud_address(s);
	s->ah = ibv_create_ah(s->f->pd, &attr);
	assert_non_null(s->ah);
	ud_end_open(s, &s->a);
	ud_end_open(s, &s->b);
	*state = s;
	return 0;
}

int ud_teardown(void **state)
{
	struct ud_scene *s = *state;
	void *f = s->f;

	ud_end_close(&s->a);
	ud_end_close(&s->b);
	assert_int_equal(ibv_destroy_ah(s->ah), 0);
	assert_int_equal(ibv_destroy_cq(s->sends), 0);
	free(s);
	return fixture_teardown(&f);
}

void ud_recv(struct ud_end *end, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)end->buf, len, end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

struct ibv_send_wr ud_wr(const struct ud_scene *s, struct ud_end *to)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { s->ah, to->qp->qp_num, UD_QKEY },
	};
}

void ud_send(struct ud_scene *s, struct ud_end *from, struct ud_end *to, const char *text,
	     uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)from->buf + UD_ROOM, len, from->mr->lkey };
	struct ibv_send_wr wr = ud_wr(s, to), *bad;
	struct ibv_wc wc;

	if (text)
		memcpy(from->buf + UD_ROOM, text, len);
	wr.wr_id = 99;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
	wc = wc_wait(s->sends);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.wr_id, 99);
}

void ud_none(struct ud_scene *s)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(s->f->cq, 1, &wc), 0);
}

void ud_check_way(struct ud_scene *s, struct ud_end *from, struct ud_end *to)
{
	ud_recv(to, 5, 200);
	ud_send(s, from, to, "x", 1);
	struct ibv_wc wc = wc_wait(s->f->cq);

	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.qp_num, to->qp->qp_num);
	assert_int_equal(wc.src_qp, from->qp->qp_num);
	ud_none(s);
}
