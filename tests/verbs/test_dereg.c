// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MRs deregistered while in use: once ibv_dereg_mr returned the memory is the program's, and it is
// freed here at once. Whoever still names it gets the error, and no other connection does.
#define _GNU_SOURCE // memmem

#include "../lib/until.h"
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PIECE = 1 << 16, /* octets a WR */
	FREED = 0xdb,
};

/* Deregisters the side's memory, writes over it and frees it. */
static void side_forget(struct side *s)
{
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	s->mr = NULL;
	memset(s->memory, FREED, PAIR_MEMORY);
	free(s->memory);
	s->memory = NULL;
}

/* What a peer does to b's memory until it cannot. */
struct toucher {
	struct pair *p;
	enum ibv_wr_opcode opcode;
	uint32_t rkey;
	uint64_t remote_addr;
	_Atomic uint32_t done; /* WRs that completed well */
	enum ibv_wc_status status; /* of the first that did not */
};

static void *touch(void *arg)
{
	struct toucher *t = arg;
	struct ibv_sge sge = side_sge(&t->p->a, 0, PIECE);
	struct ibv_send_wr wr = {
		.opcode = t->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { t->remote_addr, t->rkey },
	};
	struct ibv_send_wr *bad;

	do {
		if (ibv_post_send(t->p->a.qp, &wr, &bad))
			return "post refused";
		t->status = wc_wait(t->p->a.send_cq).status;
		t->done++;
	} while (t->status == IBV_WC_SUCCESS);
	return NULL;
}

/* Runs t's thread and deregisters b's memory under it. */
static void touch_and_forget(struct toucher *t, struct pair *p, enum ibv_wr_opcode opcode)
{
	void *complaint;
	pthread_t thread;

	*t = (struct toucher){
		.p = p,
		.opcode = opcode,
		.rkey = p->b.mr->rkey,
		.remote_addr = (uintptr_t)p->b.memory,
	};
	assert_int_equal(pthread_create(&thread, NULL, touch, t), 0);
	until(t->done >= 10);
	side_forget(&p->b);
	assert_int_equal(pthread_join(thread, &complaint), 0);
	assert_null(complaint);
}

static bool is_failure(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR;
}

/* Acknowledges the failure of both QPs of p. */
static void expect_fatal(struct fixture *f, const struct pair *p)
{
	bool a = false, b = false;

	while (!a || !b) {
		struct ibv_async_event event = async_wait(f->context);

		if (is_failure(event.event_type)) {
			a |= event.element.qp == p->a.qp;
			b |= event.element.qp == p->b.qp;
			assert_true(event.element.qp == p->a.qp || event.element.qp == p->b.qp);
		}
		ibv_ack_async_event(&event);
	}
	assert_int_equal(qp_state(p->a.qp), IBV_QPS_ERR);
	assert_int_equal(qp_state(p->b.qp), IBV_QPS_ERR);
}

static void expect_works(struct pair *p)
{
	struct ibv_sge sge = side_sge(&p->a, 0, 7);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	side_recv(&p->b, 1, 0, 100);
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p->b.recv_cq).byte_len, 7);
}

/* A Write completes when TCP took it, so the one that fails may be any behind the cause. */
static void dereg_mr__while_the_peer_writes(void **state)
{
	struct pair p, other;
	struct toucher t;

	pair_make(&p, *state, NULL);
	pair_make(&other, *state, NULL);
	touch_and_forget(&t, &p, IBV_WR_RDMA_WRITE);
	assert_true(t.status == IBV_WC_REM_ACCESS_ERR || t.status == IBV_WC_WR_FLUSH_ERR);
	expect_fatal(*state, &p);
	expect_works(&other);
	pair_destroy(&p);
	pair_destroy(&other);
}

static void dereg_mr__while_the_peer_reads(void **state)
{
	struct pair p, other;
	struct toucher t;

	pair_make(&p, *state, NULL);
	pair_make(&other, *state, NULL);
	touch_and_forget(&t, &p, IBV_WR_RDMA_READ);
	assert_int_equal(t.status, IBV_WC_REM_ACCESS_ERR);
	expect_fatal(*state, &p);
	expect_works(&other);
	pair_destroy(&p);
	pair_destroy(&other);
}

static void dereg_mr__under_a_posted_receive(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	side_recv(&p.b, 5, 0, 100);
	side_recv(&p.b, 6, 0, 100);
	side_forget(&p.b);
	sge = side_sge(&p.a, 0, 10);
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_fatal(*state, &p);
	pair_destroy(&p);
}

/* The sink of a Read that is on its way. */
static void dereg_mr__under_an_outstanding_read(void **state)
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .num_sge = 1 }, *bad;
	enum ibv_wc_status status;

	pair_make(&p, *state, NULL);
	sge = side_sge(&p.a, 0, PAIR_MEMORY);
	wr.sg_list = &sge;
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.memory;
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	side_forget(&p.a);
	status = wc_wait(p.a.send_cq).status;
	assert_true(status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_SUCCESS);
	pair_destroy(&p);
}

/* Reads all that comes until the end of the stream; none of it was written after the MR went. */
static void drain(int fd)
{
	static uint8_t octets[1 << 16];
	uint8_t freed[16];
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	memset(freed, FREED, sizeof(freed));
	do {
		assert_int_equal(poll(&pfd, 1, 10000), 1);
		n = recv(fd, octets, sizeof(octets), 0);
		if (n > 16)
			assert_null(memmem(octets, (size_t)n, freed, sizeof(freed)));
	} while (n > 0);
}

/* A peer that takes nothing keeps the octets of a Write waiting in the program's memory. */
static void forget_under_waiting_writes(struct fixture *f, void (*forget)(struct side *s))
{
	struct pair p;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1, .sg_list = &sge };
	struct ibv_send_wr *bad;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	int fds[2], few = 4096, done = 0;

	pair_make(&p, f, NULL);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
	pair_sockets(fds);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
	pair_attach(p.a.qp, fds[0], true);
	sge = side_sge(&p.a, 0, PAIR_MEMORY);
	wr.wr.rdma.rkey = 1234;
	wr.send_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < WR_MAX; i++)
		assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	forget(&p.a);
	drain(fds[1]);
	/* What was on its way arrives, as it was. */
	while (!status) {
		status = wc_wait(p.a.send_cq).status;
		done++;
	}
	assert_int_equal(status, IBV_WC_LOC_PROT_ERR);
	for (; done < WR_MAX; done++)
		assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
	close(fds[1]);
	pair_destroy(&p);
}

static void dereg_mr__while_a_write_waits_for_the_socket(void **state)
{
	forget_under_waiting_writes(*state, side_forget);
}

/* The QP is of the PD that the MR was of before. */
static void side_move_and_forget(struct side *s)
{
	struct ibv_pd *pd = ibv_alloc_pd(s->mr->context);

	assert_int_equal(ibv_rereg_mr(s->mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	side_forget(s);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void rereg_mr__while_a_write_waits_for_the_socket(void **state)
{
	forget_under_waiting_writes(*state, side_move_and_forget);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(dereg_mr__while_the_peer_writes),
		WITH(dereg_mr__while_the_peer_reads),
		WITH(dereg_mr__under_a_posted_receive),
		WITH(dereg_mr__under_an_outstanding_read),
		WITH(dereg_mr__while_a_write_waits_for_the_socket),
		WITH(rereg_mr__while_a_write_waits_for_the_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
