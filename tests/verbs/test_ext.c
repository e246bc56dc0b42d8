// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Immediate data and atomics (RFC 7306) as a program posts them, and what comes of them.
#include "pair.h"

#include "net/qp/uqp.h"
#include "verbs/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
	LONG = 200000, /* octets: several FPDUs of any size */
	EVENT_MS = 10000,
	COUNTER = 4096, /* where in b's memory */
};

static uint64_t at_b(const struct pair *p)
{
	return (uintptr_t)p->b.memory + COUNTER;
}

static uint64_t value(const struct side *s, size_t offset)
{
	uint64_t v;

	memcpy(&v, s->memory + offset, sizeof(v));
	return v;
}

/* A signalled WR at a whose octets, or result, are at its memory's start. */
static struct ibv_send_wr wr_of(const struct pair *p, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = { .opcode = opcode, .send_flags = IBV_SEND_SIGNALED };

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = at_b(p);
		wr.wr.atomic.rkey = p->b.mr->rkey;
	} else {
		wr.imm_data = htonl(0x01020304);
		wr.wr.rdma.remote_addr = (uintptr_t)p->b.memory;
		wr.wr.rdma.rkey = p->b.mr->rkey;
	}
	return wr;
}

static int post(const struct pair *p, struct ibv_send_wr *wr, uint32_t length)
{
	struct ibv_sge sge = side_sge(&p->a, 0, length);
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	return ibv_post_send(p->a.qp, wr, &bad);
}

static void expect_sent(const struct pair *p, enum ibv_wc_opcode opcode, enum ibv_wc_status status)
{
	struct ibv_wc wc = wc_wait(p->a.send_cq);

	assert_int_equal(wc.status, status);
	if (status == IBV_WC_SUCCESS)
		assert_int_equal(wc.opcode, opcode);
}

static struct ibv_wc expect_received(const struct pair *p, enum ibv_wc_opcode opcode,
				     uint32_t length)
{
	struct ibv_wc wc = wc_wait(p->b.recv_cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, opcode);
	assert_int_equal(wc.byte_len, length);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x01020304));
	return wc;
}

static void fill(uint8_t *octets, size_t len)
{
	for (size_t i = 0; i < len; i++)
		octets[i] = (uint8_t)(i * 7 + i / 251);
}

static void post_send__write_with_imm(void **state)
{
	static const uint32_t lengths[] = { 0, 1, LONG };
	struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
	struct pair p;

	pair_make(&p, *state, NULL);
	fill(p.a.memory, LONG);
	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = wr_of(&p, IBV_WR_RDMA_WRITE_WITH_IMM);

		assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad), 0);
		assert_int_equal(post(&p, &wr, lengths[i]), 0);
		assert_int_equal(expect_received(&p, IBV_WC_RECV_RDMA_WITH_IMM, lengths[i]).wr_id,
				 5);
		assert_memory_equal(p.b.memory, p.a.memory, lengths[i]);
		expect_sent(&p, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	}
	pair_destroy(&p);
}

static void post_send__send_with_imm(void **state)
{
	static const uint32_t lengths[] = { 0, 1, LONG };
	struct pair p;

	pair_make(&p, *state, NULL);
	fill(p.a.memory, LONG);
	for (int i = 0; i < 3; i++) {
		struct ibv_send_wr wr = wr_of(&p, IBV_WR_SEND_WITH_IMM);

		side_recv(&p.b, 5, 0, LONG);
		assert_int_equal(post(&p, &wr, lengths[i]), 0);
		assert_int_equal(expect_received(&p, IBV_WC_RECV, lengths[i]).wr_id, 5);
		assert_memory_equal(p.b.memory, p.a.memory, lengths[i]);
		expect_sent(&p, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	pair_destroy(&p);
}

static void post_send__imm_inline_and_unsignalled(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_SEND_WITH_IMM };
	struct pair p;

	pair_make(&p, *state, NULL);
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr wr = wr_of(&p, opcodes[i]);
		struct ibv_wc wc;

		side_recv(&p.b, 5, 0, 100);
		memcpy(p.a.memory, "inline", 6);
		wr.send_flags = IBV_SEND_INLINE;
		assert_int_equal(post(&p, &wr, 6), 0);
		memset(p.a.memory, 0, 6);
		expect_received(&p, i ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, 6);
		assert_memory_equal(p.b.memory, "inline", 6);
		assert_int_equal(ibv_poll_cq(p.a.send_cq, 1, &wc), 0);
		memset(p.b.memory, 0, 6);
	}
	pair_destroy(&p);
}

/* A CQ armed for solicited completions wakes for the one that asks for it. */
static void post_send__imm_solicited(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_SEND_WITH_IMM };
	struct fixture *f = *state;
	struct pollfd readable = { .fd = f->channel->fd, .events = POLLIN };
	struct pair p;

	pair_make(&p, f, NULL);
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = wr_of(&p, opcodes[i / 2]);
		bool solicited = i % 2;
		struct ibv_cq *cq = NULL;
		void *arg;

		side_recv(&p.b, 5, 0, 100);
		assert_int_equal(ibv_req_notify_cq(p.b.recv_cq, 1), 0);
		wr.send_flags |= solicited ? IBV_SEND_SOLICITED : 0;
		assert_int_equal(post(&p, &wr, 6), 0);
		expect_received(&p, i / 2 ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, 6);
		/* Who polls may see the completion a moment before the event is raised. */
		assert_int_equal(poll(&readable, 1, solicited ? EVENT_MS : 0), solicited);
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &arg), solicited ? 0 : -1);
		if (solicited)
			ibv_ack_cq_events(cq, 1);
	}
	pair_destroy(&p);
}

/* The Write is there, but no receive that could tell of it: an error of the stream. */
static void post_send__write_with_imm_without_a_receive(void **state)
{
	struct ibv_send_wr wr;
	struct pair p;

	pair_make(&p, *state, NULL);
	wr = wr_of(&p, IBV_WR_RDMA_WRITE_WITH_IMM);
	memcpy(p.a.memory + 100, "there", 5);
	assert_int_equal(post(&p, &wr, 105), 0);
	wc_wait(p.a.send_cq); /* good or bad, as TCP took it before or after the Terminate came */
	while (qp_state(p.a.qp) == IBV_QPS_RTS)
		continue;
	assert_int_equal(avb_qp_uqp(p.a.qp)->core.peer_error, AW_E_DDP_NO_BUFFER);
	assert_memory_equal(p.b.memory + 100, "there", 5);
	pair_destroy(&p);
}

static void post_send__write_with_imm_takes_from_an_srq(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);
	struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
	struct ibv_send_wr wr;
	struct pair p;

	assert_non_null(srq);
	pair_make(&p, f, srq);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	wr = wr_of(&p, IBV_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(post(&p, &wr, 100), 0);
	assert_int_equal(expect_received(&p, IBV_WC_RECV_RDMA_WITH_IMM, 100).wr_id, 5);
	pair_destroy(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Behind the poster's back the progress thread looks at the SRQ until there is one. */
static void post_send__write_with_imm_waits_for_an_srq(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);
	struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
	struct ibv_send_wr wr;
	struct aw_uqp *uqp;
	struct pair p;
	bool held = false;

	assert_non_null(srq);
	pair_make(&p, f, srq);
	wr = wr_of(&p, IBV_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(post(&p, &wr, 100), 0);
	uqp = avb_qp_uqp(p.b.qp);
	while (!held) {
		assert_int_equal(qp_state(p.b.qp), IBV_QPS_RTS);
		aw_lock(&uqp->lock);
		held = uqp->core.rx_held > 0;
		aw_unlock(&uqp->lock);
	}
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	assert_int_equal(expect_received(&p, IBV_WC_RECV_RDMA_WITH_IMM, 100).wr_id, 5);
	pair_destroy(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void post_send__fetch_add(void **state)
{
	struct ibv_send_wr wr;
	struct pair p;

	pair_make(&p, *state, NULL);
	wr = wr_of(&p, IBV_WR_ATOMIC_FETCH_AND_ADD);
	wr.wr.atomic.compare_add = 0x100000002;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(post(&p, &wr, 8), 0);
		expect_sent(&p, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
		assert_int_equal(value(&p.a, 0), i * 0x100000002);
	}
	assert_int_equal(value(&p.b, COUNTER), UINT64_C(3) * 0x100000002);
	pair_destroy(&p);
}

static void post_send__cmp_swap(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;

	pair_make(&p, *state, NULL);
	wr = wr_of(&p, IBV_WR_ATOMIC_CMP_AND_SWP);
	wr.wr.atomic.swap = 0x1122334455667788;
	assert_int_equal(post(&p, &wr, 8), 0);
	wc = wc_wait(p.a.send_cq);
	assert_int_equal(wc.opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(value(&p.a, 0), 0);
	assert_int_equal(value(&p.b, COUNTER), 0x1122334455667788);
	assert_int_equal(post(&p, &wr, 8), 0); /* 0 is not there any more */
	expect_sent(&p, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS);
	assert_int_equal(value(&p.a, 0), 0x1122334455667788);
	assert_int_equal(value(&p.b, COUNTER), 0x1122334455667788);
	pair_destroy(&p);
}

/* As many as the SQ takes, more than may be outstanding: all are done, in order. */
static void post_send__atomics_beyond_ord(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	assert_true((int)WR_MAX > (int)PAIR_RD);
	for (int i = 0; i < WR_MAX; i++) {
		struct ibv_send_wr wr = wr_of(&p, IBV_WR_ATOMIC_FETCH_AND_ADD);
		struct ibv_sge sge = side_sge(&p.a, (size_t)i * 8, 8);
		struct ibv_send_wr *bad;

		wr.wr.atomic.compare_add = 1;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	}
	for (uint64_t i = 0; i < WR_MAX; i++) {
		expect_sent(&p, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
		assert_int_equal(value(&p.a, i * 8), i);
	}
	pair_destroy(&p);
}

/* What the peer refuses: nothing changes there, and the WR says how it was refused. */
static void post_send__atomic_refused(void **state)
{
	static const struct {
		uint64_t offset;
		unsigned int access; /* of the MR that is named */
		enum ibv_wc_status status;
	} cases[] = {
		{ COUNTER + 4, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_INV_REQ_ERR },
		{ COUNTER, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_ACCESS_ERR },
		{ PAIR_MEMORY - 7, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR },
		{ PAIR_MEMORY, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const uint8_t nothing[PAIR_MEMORY];
		struct ibv_send_wr wr;
		struct ibv_mr *mr;
		struct pair p;

		pair_make(&p, f, NULL);
		mr = ibv_reg_mr(f->pd, p.b.memory, PAIR_MEMORY,
				(int)(IBV_ACCESS_LOCAL_WRITE | cases[i].access));
		assert_non_null(mr);
		wr = wr_of(&p, IBV_WR_ATOMIC_FETCH_AND_ADD);
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.remote_addr = (uintptr_t)p.b.memory + cases[i].offset;
		wr.wr.atomic.rkey = mr->rkey;
		assert_int_equal(post(&p, &wr, 8), 0);
		expect_sent(&p, IBV_WC_FETCH_ADD, cases[i].status);
		assert_memory_equal(p.b.memory, nothing, PAIR_MEMORY);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_destroy(&p);
	}
}

static void post_send__atomic_needs_8_octets(void **state)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge[2];
	struct pair p;

	pair_make(&p, *state, NULL);
	wr = wr_of(&p, IBV_WR_ATOMIC_FETCH_AND_ADD);
	assert_int_equal(post(&p, &wr, 7), EINVAL);
	assert_int_equal(post(&p, &wr, 9), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), EINVAL);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post(&p, &wr, 8), EINVAL);
	wr.send_flags = IBV_SEND_SIGNALED;
	sge[0] = side_sge(&p.a, 0, 3);
	sge[1] = side_sge(&p.a, 100, 5);
	wr.sg_list = sge;
	wr.num_sge = 2;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	expect_sent(&p, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

/* Refused at once, and the QP is none the worse for it. */
static void post_send__peer_did_not_agree(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_SEND_WITH_IMM,
						      IBV_WR_ATOMIC_CMP_AND_SWP,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc;
	struct pair p;

	pair_make_plain(&p, *state);
	for (int i = 0; i < 4; i++) {
		wr = wr_of(&p, opcodes[i]);
		bad = NULL;
		assert_int_equal(post(&p, &wr, 8), EOPNOTSUPP);
	}
	/* The WRs before it are posted. */
	wr = wr_of(&p, IBV_WR_RDMA_READ);
	wr.next = &(struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_IMM };
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), EOPNOTSUPP);
	assert_ptr_equal(bad, wr.next);
	expect_sent(&p, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	side_recv(&p.b, 5, 0, 100);
	wr = wr_of(&p, IBV_WR_SEND);
	assert_int_equal(post(&p, &wr, 8), 0);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, 0);
	assert_int_equal(qp_state(p.a.qp), IBV_QPS_RTS);
	pair_destroy(&p);
}

static void wr_api__all_four(void **state)
{
	struct ibv_qp_ex *qp;
	struct pair p;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	side_recv(&p.b, 1, 1000, 100);
	side_recv(&p.b, 2, 1000, 100);
	memcpy(p.a.memory + 100, "abcdef", 6);
	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write_imm(qp, p.b.mr->rkey, (uintptr_t)p.b.memory, htonl(0x01020304));
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory + 100, 6);
	ibv_wr_send_imm(qp, htonl(0x01020304));
	ibv_wr_set_inline_data(qp, p.a.memory + 102, 3);
	ibv_wr_atomic_fetch_add(qp, p.b.mr->rkey, at_b(&p), 7);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, 8);
	ibv_wr_atomic_cmp_swp(qp, p.b.mr->rkey, at_b(&p), 7, 9);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory + 8, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_received(&p, IBV_WC_RECV_RDMA_WITH_IMM, 6);
	expect_received(&p, IBV_WC_RECV, 3);
	expect_sent(&p, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	expect_sent(&p, IBV_WC_SEND, IBV_WC_SUCCESS);
	expect_sent(&p, IBV_WC_FETCH_ADD, IBV_WC_SUCCESS);
	expect_sent(&p, IBV_WC_COMP_SWAP, IBV_WC_SUCCESS);
	assert_memory_equal(p.b.memory, "abcdef", 6);
	assert_memory_equal(p.b.memory + 1000, "cde", 3);
	assert_int_equal(value(&p.a, 0), 0);
	assert_int_equal(value(&p.a, 8), 7);
	assert_int_equal(value(&p.b, COUNTER), 9);
	pair_destroy(&p);
}

static void wr_send_imm(struct ibv_qp_ex *qp)
{
	ibv_wr_send_imm(qp, 1);
}

static void wr_write_imm(struct ibv_qp_ex *qp)
{
	ibv_wr_rdma_write_imm(qp, 1, 0, 1);
}

static void wr_fetch_add(struct ibv_qp_ex *qp)
{
	ibv_wr_atomic_fetch_add(qp, 1, 0, 1);
}

static void wr_cmp_swp(struct ibv_qp_ex *qp)
{
	ibv_wr_atomic_cmp_swp(qp, 1, 0, 1, 2);
}

static void wr_api__peer_did_not_agree(void **state)
{
	static void (*const build[])(struct ibv_qp_ex * qp) = { wr_send_imm, wr_write_imm,
								wr_fetch_add, wr_cmp_swp };
	struct ibv_qp_ex *qp;
	struct pair p;

	pair_make_plain(&p, *state);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	for (int i = 0; i < 4; i++) {
		ibv_wr_start(qp);
		build[i](qp);
		ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, 8);
		assert_int_equal(ibv_wr_complete(qp), EOPNOTSUPP);
	}
	side_recv(&p.b, 5, 0, 100);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(wc_wait(p.b.recv_cq).status, IBV_WC_SUCCESS);
	pair_destroy(&p);
}

static void wr_api__atomic_needs_8_octets(void **state)
{
	struct ibv_qp_ex *qp;
	struct pair p;

	pair_make(&p, *state, NULL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	ibv_wr_start(qp);
	ibv_wr_atomic_cmp_swp(qp, p.b.mr->rkey, at_b(&p), 1, 2);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_atomic_fetch_add(qp, p.b.mr->rkey, at_b(&p), 1);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.memory, 9);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	pair_destroy(&p);
}

static void poll_cq_ex__imm_data(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = IBV_WC_EX_WITH_IMM };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &attr);
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_qp_init_attr qp = qp_attr(f);
	struct ibv_qp *old;
	struct ibv_send_wr wr;
	struct pair p;
	int fds[2];

	assert_non_null(cq);
	pair_make(&p, f, NULL);
	qp.recv_cq = ibv_cq_ex_to_cq(cq);
	old = p.b.qp;
	p.b.qp = ibv_create_qp(f->pd, &qp);
	assert_int_equal(ibv_destroy_qp(old), 0);
	assert_int_equal(ibv_destroy_qp(p.a.qp), 0);
	p.a.qp = qp_make(f);
	pair_sockets(fds);
	pair_attach(p.b.qp, fds[1], false);
	pair_attach(p.a.qp, fds[0], true);
	side_recv(&p.b, 5, 0, 100);
	wr = wr_of(&p, IBV_WR_SEND_WITH_IMM);
	assert_int_equal(post(&p, &wr, 10), 0);
	while (ibv_start_poll(cq, &poll))
		continue;
	assert_int_equal(ibv_wc_read_imm_data(cq), htonl(0x01020304));
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	ibv_end_poll(cq);
	wc_wait(f->cq);
	pair_destroy(&p);
	assert_int_equal(ibv_destroy_cq(qp.recv_cq), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(post_send__write_with_imm),
		WITH(post_send__send_with_imm),
		WITH(post_send__imm_inline_and_unsignalled),
		WITH(post_send__imm_solicited),
		WITH(post_send__write_with_imm_without_a_receive),
		WITH(post_send__write_with_imm_takes_from_an_srq),
		WITH(post_send__write_with_imm_waits_for_an_srq),
		WITH(post_send__fetch_add),
		WITH(post_send__cmp_swap),
		WITH(post_send__atomics_beyond_ord),
		WITH(post_send__atomic_refused),
		WITH(post_send__atomic_needs_8_octets),
		WITH(post_send__peer_did_not_agree),
		WITH(wr_api__all_four),
		WITH(wr_api__peer_did_not_agree),
		WITH(wr_api__atomic_needs_8_octets),
		WITH(poll_cq_ex__imm_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
