// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two connected QPs.
#define _GNU_SOURCE // accept4

#include "pair.h"

#include "net/qp/uqp.h"
#include "verbs/newer.h"
#include "verbs/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | (int)VB_ACCESS_FLUSH_GLOBAL,
	ALL_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
		  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
		  IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		  IBV_QP_EX_WITH_ATOMIC_WRITE | (int)VB_QP_EX_WITH_FLUSH,
};

static void side_make(struct side *s, struct fixture *f, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { WR_MAX, WR_MAX, SGE_MAX, SGE_MAX, INLINE_MAX },
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = ALL_OPS,
	};

	s->send_cq = ibv_create_cq(f->context, CQE_MAX, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(f->context, CQE_MAX, NULL, f->channel, 0);
	attr.send_cq = s->send_cq;
	attr.recv_cq = s->recv_cq;
	s->qp = ibv_create_qp_ex(f->context, &attr);
	assert_non_null(s->qp);
	s->memory = calloc(1, PAIR_MEMORY);
	s->mr = ibv_reg_mr(f->pd, s->memory, PAIR_MEMORY, ALL_RIGHTS);
	assert_non_null(s->mr);
}

static void side_destroy(struct side *s)
{
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	if (s->mr)
		assert_int_equal(ibv_dereg_mr(s->mr), 0);
	free(s->memory);
	assert_int_equal(ibv_destroy_cq(s->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(s->recv_cq), 0);
}

void pair_sockets(int fds[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&addr, len), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
	close(listener);
	fd_make_nonblocking(fds[0]);
	fd_make_nonblocking(fds[1]);
}

/* How the two ends agreed. */
struct terms {
	bool crc, extensions;
};

static void attach(struct ibv_qp *qp, int fd, bool initiator, struct terms terms)
{
	struct aw_stream stream = {
		.initiator = initiator,
		.crc = terms.crc,
		.ird = PAIR_RD,
		.ord = PAIR_RD,
		.stag_seed = qp->qp_num * 1000,
		.extensions = terms.extensions,
		.placement = terms.extensions,
	};

	assert_int_equal(aw_uqp_attach(avb_qp_uqp(qp), fd, &stream), 0);
	avb_qp_state_sync(qp);
}

void pair_attach(struct ibv_qp *qp, int fd, bool initiator)
{
	attach(qp, fd, initiator, (struct terms){ .crc = true, .extensions = true });
}

static void make(struct pair *p, struct fixture *f, struct ibv_srq *srq, struct terms terms)
{
	int fds[2];

	memset(p, 0, sizeof(*p));
	p->f = f;
	side_make(&p->a, f, NULL);
	side_make(&p->b, f, srq);
	pair_sockets(fds);
	attach(p->b.qp, fds[1], false, terms);
	attach(p->a.qp, fds[0], true, terms);
}

void pair_make(struct pair *p, struct fixture *f, struct ibv_srq *srq)
{
	make(p, f, srq, (struct terms){ .crc = true, .extensions = true });
}

void pair_make_plain(struct pair *p, struct fixture *f)
{
	make(p, f, NULL, (struct terms){ .crc = true });
}

void pair_make_bare(struct pair *p, struct fixture *f)
{
	make(p, f, NULL, (struct terms){ .crc = false });
}

void pair_destroy(struct pair *p)
{
	side_destroy(&p->a);
	side_destroy(&p->b);
}

struct ibv_sge side_sge(const struct side *s, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)s->memory + offset, length, s->mr->lkey };
}

void side_recv(struct side *s, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = side_sge(s, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
}
