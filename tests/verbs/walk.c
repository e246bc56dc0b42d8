// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Steps of ibv_modify_qp.
#include "walk.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum {
	ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
	TIMEOUT = 14,
};

void walk_persona(void)
{
	setenv("ANYWARP_PERSONA", "roce", 1);
}

struct route route_by_lid(void)
{
	return (struct route){ .gid_index = -1 };
}

struct route route_by(struct fixture *f, const char *address)
{
	struct route route;
	uint8_t gid[16];

	assert_int_equal(inet_pton(AF_INET6, address, gid), 1);
	for (route.gid_index = 0;; route.gid_index++) {
		assert_int_equal(ibv_query_gid(f->context, 1, route.gid_index, &route.gid), 0);
		if (!memcmp(route.gid.raw, gid, sizeof(gid)))
			return route;
	}
}

struct route route_loopback(struct fixture *f)
{
	return route_by(f, "::ffff:127.0.0.1");
}

void walker_make(struct walker *w, struct fixture *f)
{
	walker_make_type(w, f, IBV_QPT_RC, NULL);
}

void walker_make_type(struct walker *w, struct fixture *f, enum ibv_qp_type type,
		      struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = qp_attr(f);

	attr.qp_type = type;
	attr.srq = srq;
	w->send_cq = ibv_create_cq(f->context, CQE_MAX, NULL, NULL, 0);
	w->recv_cq = ibv_create_cq(f->context, CQE_MAX, NULL, NULL, 0);
	attr.send_cq = w->send_cq;
	attr.recv_cq = w->recv_cq;
	w->qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(w->qp);
	w->memory = calloc(1, WALK_MEMORY);
	w->mr = ibv_reg_mr(f->pd, w->memory, WALK_MEMORY, ALL_RIGHTS);
	assert_non_null(w->mr);
}

void walker_destroy(struct walker *w)
{
	assert_int_equal(ibv_destroy_qp(w->qp), 0);
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	free(w->memory);
	assert_int_equal(ibv_destroy_cq(w->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(w->recv_cq), 0);
}

struct ibv_qp_attr walk_attr_init(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_RIGHTS,
	};
}

struct ibv_qp_attr walk_attr_rtr(const struct route *route, uint32_t qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.rq_psn = 100,
		.max_dest_rd_atomic = WALK_RD,
		.min_rnr_timer = 12,
		.ah_attr = { .port_num = 1 },
	};

	if (route->gid_index >= 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = (uint8_t)route->gid_index;
		attr.ah_attr.grh.dgid = route->gid;
		attr.ah_attr.grh.hop_limit = 1;
	}
	return attr;
}

struct ibv_qp_attr walk_attr_rts(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = 1,
		.rnr_retry = 7,
		.sq_psn = 100,
		.max_rd_atomic = WALK_RD,
	};
}

void walk_init(struct walker *w)
{
	struct ibv_qp_attr attr = walk_attr_init();

	assert_int_equal(ibv_modify_qp(w->qp, &attr, WALK_INIT), 0);
}

void walk_rtr(struct walker *w, const struct route *route, uint32_t qpn)
{
	struct ibv_qp_attr attr = walk_attr_rtr(route, qpn);
	bool uc = w->qp->qp_type == IBV_QPT_UC;

	assert_int_equal(ibv_modify_qp(w->qp, &attr, uc ? WALK_UC_RTR : WALK_RTR), 0);
}

void walk_rts(struct walker *w)
{
	struct ibv_qp_attr attr = walk_attr_rts();
	bool uc = w->qp->qp_type == IBV_QPT_UC;

	assert_int_equal(ibv_modify_qp(w->qp, &attr, uc ? WALK_UC_RTS : WALK_RTS), 0);
}

void walk(struct walker *w, const struct route *route, uint32_t qpn)
{
	walk_init(w);
	walk_rtr(w, route, qpn);
	walk_rts(w);
}

void walk_reset(struct walker *w)
{
	assert_int_equal(qp_move(w->qp, IBV_QPS_RESET), 0);
}

static struct ibv_sge sge_of(const struct walker *w, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)w->memory, len, w->mr->lkey };
}

void walker_recv(struct walker *w, uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(w, WALK_MEMORY);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(w->qp, &wr, &bad), 0);
}

void walker_post(struct walker *w, enum ibv_wr_opcode opcode, uint32_t len,
		 const struct walker *peer)
{
	struct ibv_sge sge = sge_of(w, len);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (peer) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	assert_int_equal(ibv_post_send(w->qp, &wr, &bad), 0);
}

struct ibv_wc walker_sent(struct walker *w, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_wait(w->send_cq);

	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, w->qp->qp_num);
	return wc;
}

struct ibv_wc walker_received(struct walker *w, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_wait(w->recv_cq);

	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, w->qp->qp_num);
	return wc;
}

void walker_hears_nothing(struct walker *w)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(w->recv_cq, 1, &wc), 0);
	assert_int_equal(qp_state(w->qp), IBV_QPS_RTS);
}

void walker_talk(struct walker *from, struct walker *to)
{
	static uint8_t mark;

	mark++;
	memset(from->memory, mark, 16);
	walker_recv(to, mark);
	walker_post(from, IBV_WR_SEND, 16, NULL);
	walker_sent(from, IBV_WC_SUCCESS);
	assert_int_equal(walker_received(to, IBV_WC_SUCCESS).wr_id, mark);
	assert_int_equal(to->memory[15], mark);
}

void two_make(struct two *t, struct fixture *f)
{
	walker_make(&t->a, f);
	walker_make(&t->b, f);
}

void two_make_uc(struct two *t, struct fixture *f)
{
	walker_make_type(&t->a, f, IBV_QPT_UC, NULL);
	walker_make_type(&t->b, f, IBV_QPT_UC, NULL);
}

void two_destroy(struct two *t)
{
	walker_destroy(&t->a);
	walker_destroy(&t->b);
}

void two_walk(struct two *t, const struct route *route)
{
	walk(&t->a, route, t->b.qp->qp_num);
	walk(&t->b, route, t->a.qp->qp_num);
}

void two_talk(struct two *t)
{
	walker_talk(&t->a, &t->b);
	walker_talk(&t->b, &t->a);
}

void two_connect(struct two *t, struct fixture *f)
{
	struct route route = route_loopback(f);

	two_make(t, f);
	two_walk(t, &route);
	two_talk(t);
}

void two_connect_uc(struct two *t, struct fixture *f)
{
	struct route route = route_loopback(f);

	two_make_uc(t, f);
	two_walk(t, &route);
	two_talk(t);
}
