// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that goes while it is registered: whoever needs it gets an error, and neither the process nor another
// connection comes to harm. All ends are of this process.
#define _GNU_SOURCE // memfd_create
#include "pair.h"

#include "../lib/gone.h"
#include "wire/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LENGTH = 1 << 18, /* of the memory that goes */
	SMALL = 64, /* octets of a message in one segment */
	LARGE = 200000, /* in several */
	LENT = 60000, /* in one that is left where it lies */
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC,
};

enum way {
	UNMAPPED,
	CUT_OFF, /* its file */
	PROTECTED,
	WAYS,
};

struct scene {
	struct pair p, other;
	enum way way;
	int file;
	uint8_t *memory; /* LENGTH octets; all go but the first page */
	size_t page;
	struct ibv_mr *mr;
};

/* s->p is there. */
static void scene_fill(struct scene *s, struct fixture *f, enum way way)
{
	pair_make(&s->other, f, NULL);
	s->way = way;
	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->file = memfd_create("gone", MFD_CLOEXEC);
	assert_int_equal(ftruncate(s->file, LENGTH), 0);
	s->memory = gone_map(s->file, LENGTH);
	assert_ptr_not_equal(s->memory, MAP_FAILED);
	s->mr = ibv_reg_mr(f->pd, s->memory, LENGTH, RIGHTS);
	assert_non_null(s->mr);
}

static void scene_make(struct scene *s, struct fixture *f, enum way way, struct ibv_srq *srq)
{
	pair_make(&s->p, f, srq);
	scene_fill(s, f, way);
}

static void expect_works(struct pair *p)
{
	struct ibv_sge sge = side_sge(&p->a, 0, 7);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	side_recv(&p->b, 1, 0, 100);
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p->b.recv_cq).byte_len, 7);
}

static void scene_end(struct scene *s)
{
	while (qp_state(s->p.a.qp) != IBV_QPS_ERR || qp_state(s->p.b.qp) != IBV_QPS_ERR) {
		ibv_poll_cq(s->p.a.send_cq, 0, NULL);
		ibv_poll_cq(s->p.b.recv_cq, 0, NULL);
	}
	expect_works(&s->other);
	pair_destroy(&s->p);
	pair_destroy(&s->other);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	munmap(s->memory, s->way == UNMAPPED ? s->page : LENGTH);
	close(s->file);
}

static void go(struct scene *s)
{
	uint8_t *from = s->memory + s->page;
	size_t len = LENGTH - s->page;

	switch (s->way) {
	case UNMAPPED:
		assert_int_equal(munmap(from, len), 0);
		break;
	case CUT_OFF:
		assert_int_equal(ftruncate(s->file, (off_t)s->page), 0);
		break;
	case PROTECTED:
		assert_int_equal(mprotect(from, len, PROT_NONE), 0);
		break;
	case WAYS:
		break;
	}
}

/* Of the memory that goes, but for its first octets: what is there is used first. */
static struct ibv_sge gone_sge(const struct scene *s, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)s->memory + s->page - 8, length, s->mr->lkey };
}

/* a posts a WR between this memory of its and what of b's goes, or a's ordinary memory at b. */
static void post(struct scene *s, enum ibv_wr_opcode opcode, struct ibv_sge sge, bool to_gone)
{
	uint64_t addr = to_gone ? (uintptr_t)s->memory + s->page - 8 : (uintptr_t)s->p.b.memory;
	uint32_t rkey = to_gone ? s->mr->rkey : s->p.b.mr->rkey;
	struct ibv_send_wr wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to_gone ? addr + 8 : addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(s->p.a.qp, &wr, &bad), 0);
}

static struct ibv_wc a_hears(struct scene *s)
{
	return wc_wait(s->p.a.send_cq);
}

/* What b's Terminate says is told with whatever of a's is not complete then: a Read, which needs an answer. */
static void expect_terminate(struct scene *s, enum aw_error error)
{
	struct ibv_wc wc;

	post(s, IBV_WR_RDMA_READ, side_sge(&s->p.a, 0, 8), false);
	do
		wc = a_hears(s);
	while (wc.status == IBV_WC_SUCCESS);
	assert_int_equal(wc.vendor_err, error);
}

static void write_into_it(struct scene *s, uint32_t length)
{
	go(s);
	post(s, IBV_WR_RDMA_WRITE, side_sge(&s->p.a, 0, length), true);
	expect_terminate(s, AW_E_DDP_TAGGED_BOUNDS);
}

static void send_into_it(struct scene *s, uint32_t length)
{
	struct ibv_sge sge = gone_sge(s, length);
	struct ibv_recv_wr recv = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	if (s->p.b.qp->srq)
		assert_int_equal(ibv_post_srq_recv(s->p.b.qp->srq, &recv, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(s->p.b.qp, &recv, &bad), 0);
	go(s);
	post(s, IBV_WR_SEND, side_sge(&s->p.a, 0, length), false);
	wc = wc_wait(s->p.b.recv_cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	expect_terminate(s, AW_E_RDMAP_STREAM_CATASTROPHIC);
}

static void read_from_it(struct scene *s, uint32_t length)
{
	go(s);
	post(s, IBV_WR_RDMA_READ, side_sge(&s->p.a, 0, length), true);
	assert_int_equal(a_hears(s).status, IBV_WC_REM_ACCESS_ERR);
}

static void add_to_it(struct scene *s, uint32_t length)
{
	(void)length;
	go(s);
	post(s, IBV_WR_ATOMIC_FETCH_AND_ADD, side_sge(&s->p.a, 0, 8), true);
	assert_int_equal(a_hears(s).status, IBV_WC_REM_ACCESS_ERR);
}

static void sink_into_it(struct scene *s, uint32_t length)
{
	go(s);
	post(s, IBV_WR_RDMA_READ, gone_sge(s, length), false);
	assert_int_equal(a_hears(s).status, IBV_WC_LOC_PROT_ERR);
}

static void sum_into_it(struct scene *s, uint32_t length)
{
	struct ibv_sge sge = gone_sge(s, 8);

	(void)length;
	sge.addr += 4;
	go(s);
	post(s, IBV_WR_ATOMIC_FETCH_AND_ADD, sge, false);
	assert_int_equal(a_hears(s).status, IBV_WC_LOC_PROT_ERR);
}

static void send_from_it(struct scene *s, uint32_t length)
{
	side_recv(&s->p.b, 1, 0, LENGTH);
	go(s);
	post(s, IBV_WR_SEND, gone_sge(s, length), false);
	assert_int_equal(a_hears(s).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc_wait(s->p.b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

static void write_from_it(struct scene *s, uint32_t length)
{
	go(s);
	post(s, IBV_WR_RDMA_WRITE, gone_sge(s, length), false);
	assert_int_equal(a_hears(s).status, IBV_WC_LOC_PROT_ERR);
}

typedef void user(struct scene *s, uint32_t length);

static void each_way(struct fixture *f, user *use)
{
	for (enum way way = UNMAPPED; way < WAYS; way++) {
		struct scene s;

		scene_make(&s, f, way, NULL);
		use(&s, SMALL);
		scene_end(&s);
		scene_make(&s, f, way, NULL);
		use(&s, LARGE);
		scene_end(&s);
	}
}

static void gone__write(void **state)
{
	each_way(*state, write_into_it);
}

static void gone__receive(void **state)
{
	each_way(*state, send_into_it);
}

static void gone__receive_of_an_srq(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct fixture *f = *state;
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);
	struct scene s;

	scene_make(&s, f, CUT_OFF, srq);
	send_into_it(&s, LARGE);
	scene_end(&s);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void gone__source_of_a_response(void **state)
{
	each_way(*state, read_from_it);
}

static void gone__sink(void **state)
{
	each_way(*state, sink_into_it);
}

static void gone__source(void **state)
{
	each_way(*state, send_from_it);
	each_way(*state, write_from_it);
}

static void gone__atomic(void **state)
{
	each_way(*state, add_to_it);
	each_way(*state, sum_into_it);
}

/*
 * Without CRCs TCP reads large payloads where they lie. The WR before is not harmed, and the peer, that has half an
 * FPDU, hears of the end.
 */
static void gone__lent_source(void **state)
{
	for (enum way way = UNMAPPED; way < WAYS; way++) {
		struct ibv_sge good = { .length = LENT }, gone;
		struct ibv_send_wr second = { .wr_id = 2, .sg_list = &gone, .num_sge = 1 };
		struct ibv_send_wr first = {
			.wr_id = 1, .next = &second, .sg_list = &good, .num_sge = 1
		};
		struct ibv_send_wr *bad;
		struct scene s;

		pair_make_bare(&s.p, *state);
		scene_fill(&s, *state, way);
		good = side_sge(&s.p.a, 0, LENT);
		gone = gone_sge(&s, LENT);
		first.opcode = second.opcode = IBV_WR_SEND;
		first.send_flags = second.send_flags = IBV_SEND_SIGNALED;
		side_recv(&s.p.b, 1, 0, LENGTH);
		side_recv(&s.p.b, 2, 0, LENGTH);
		go(&s);
		assert_int_equal(ibv_post_send(s.p.a.qp, &first, &bad), 0);
		assert_int_equal(a_hears(&s).status, IBV_WC_SUCCESS);
		assert_int_equal(a_hears(&s).status, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(wc_wait(s.p.b.recv_cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wc_wait(s.p.b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
		scene_end(&s);
	}
}

/* A thread of a server's, say, which leaves all signals to another. */
static void *deaf(void *arg)
{
	static user *const uses[] = { write_into_it, send_into_it, read_from_it, sink_into_it,
				      send_from_it,  add_to_it,	   sum_into_it };
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		each_way(arg, uses[i]);
	return NULL;
}

static void gone__where_signals_are_blocked(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, deaf, *state), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(gone__write),
		WITH(gone__receive),
		WITH(gone__receive_of_an_srq),
		WITH(gone__source_of_a_response),
		WITH(gone__sink),
		WITH(gone__source),
		WITH(gone__lent_source),
		WITH(gone__atomic),
		WITH(gone__where_signals_are_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
