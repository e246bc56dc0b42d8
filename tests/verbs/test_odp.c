// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// On-demand MRs: their memory comes and goes, and an access where there is none is an error of the QP.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "window.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	LENGTH = 3 * PAGE,
	ACCESS = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
};

struct scene {
	struct pair pair;
	uint8_t *
		memory; /* LENGTH octets of address space, of which the page in the middle is there */
	struct ibv_mr *mr;
};

static void scene_make(struct scene *s, struct fixture *f)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(f->context, NULL, &attr), 0);
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		skip();
	s->memory = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s->memory, MAP_FAILED);
	s->mr = ibv_reg_mr(f->pd, s->memory, LENGTH, ACCESS);
	assert_non_null(s->mr);
	assert_int_equal(mprotect(s->memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	pair_make(&s->pair, f, NULL);
}

static void scene_end(struct scene *s)
{
	pair_destroy(&s->pair);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	munmap(s->memory, LENGTH);
}

/* a's WR, between a's ordinary memory and these octets of the scene's. */
static enum ibv_wc_status remote(struct scene *s, enum ibv_wr_opcode opcode, size_t offset,
				 uint32_t len)
{
	struct ibv_sge sge = side_sge(&s->pair.a, 0, len);
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { (uintptr_t)s->memory + offset, s->mr->rkey },
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(s->pair.a.qp, &wr, &bad), 0);
	return wc_wait(s->pair.a.send_cq).status;
}

/* A Read comes back behind what went before it. */
static void remote__where_memory_is(void **state)
{
	struct scene s;

	scene_make(&s, *state);
	memset(s.pair.a.memory, 5, 32);
	assert_int_equal(remote(&s, IBV_WR_RDMA_WRITE, PAGE + 8, 32), IBV_WC_SUCCESS);
	memset(s.pair.a.memory, 0, 32);
	assert_int_equal(remote(&s, IBV_WR_RDMA_READ, PAGE + 8, 32), IBV_WC_SUCCESS);
	assert_int_equal(s.pair.a.memory[31], 5);
	assert_int_equal(s.memory[PAGE + 8], 5);
	scene_end(&s);
}

static void each_failure(void **state, enum ibv_wr_opcode opcode, size_t offset, int protection)
{
	struct scene s;
	struct ibv_sge sge;
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	enum ibv_wc_status status;

	scene_make(&s, *state);
	assert_int_equal(mprotect(s.memory + PAGE, PAGE, protection), 0);
	sge = (struct ibv_sge){ (uintptr_t)s.memory + offset, 64, s.mr->lkey };
	if (opcode == IBV_WR_SEND)
		assert_int_equal(ibv_post_recv(s.pair.b.qp, &recv, &bad), 0);
	status = remote(&s, opcode, offset, 64);
	/* A Write or Send completes before the peer has it: the receiver's error is what tells. */
	if (opcode == IBV_WR_RDMA_READ)
		assert_int_equal(status, IBV_WC_REM_ACCESS_ERR);
	if (opcode == IBV_WR_SEND)
		assert_int_equal(wc_wait(s.pair.b.recv_cq).status, IBV_WC_LOC_PROT_ERR);
	while (qp_state(s.pair.b.qp) != IBV_QPS_ERR)
		ibv_poll_cq(s.pair.b.recv_cq, 0, NULL);
	scene_end(&s);
}

static void remote__where_none_is(void **state)
{
	int both = PROT_READ | PROT_WRITE;

	each_failure(state, IBV_WR_RDMA_WRITE, 0, both);
	each_failure(state, IBV_WR_RDMA_WRITE, 2 * PAGE - 1, both);
	each_failure(state, IBV_WR_RDMA_WRITE, PAGE, PROT_READ);
	each_failure(state, IBV_WR_RDMA_READ, 2 * PAGE, both);
	each_failure(state, IBV_WR_SEND, PAGE - 1, both);
}

static void send__from_where_none_is(void **state)
{
	struct scene s;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	scene_make(&s, *state);
	sge = (struct ibv_sge){ (uintptr_t)s.memory + PAGE - 8, 16, s.mr->lkey };
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(s.pair.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s.pair.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
	scene_end(&s);
}

/* A full socket keeps octets of Writes waiting in memory that goes, and only then the MR. */
static void dereg_mr__behind_its_memory(void **state)
{
	struct fixture *f = *state;
	void *memory =
		mmap(NULL, PAIR_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, PAIR_MEMORY, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { (uintptr_t)memory, PAIR_MEMORY, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	int fds[2], few = 4096;
	struct ibv_send_wr *bad;
	struct pair p;

	pair_make(&p, f, NULL);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
	pair_sockets(fds);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
	pair_attach(p.a.qp, fds[0], true);
	wr.send_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < WR_MAX; i++)
		assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(munmap(memory, PAIR_MEMORY), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fds[1]);
	while (qp_state(p.a.qp) != IBV_QPS_ERR)
		ibv_poll_cq(p.a.send_cq, 0, NULL);
	pair_destroy(&p);
}

/* A window's peer reaches no further than the MR's. */
static void window__where_none_is(void **state)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct scene s;
	struct ibv_mw *mw;

	scene_make(&s, *state);
	mw = ibv_alloc_mw(s.mr->pd, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){ s.mr, (uintptr_t)s.memory, LENGTH,
						    IBV_ACCESS_REMOTE_READ };
	assert_int_equal(ibv_bind_mw(s.pair.b.qp, mw, &bind), 0);
	assert_int_equal(wc_wait(s.pair.b.send_cq).status, IBV_WC_SUCCESS);
	s.mr->rkey = mw->rkey;
	assert_int_equal(remote(&s, IBV_WR_RDMA_READ, PAGE, 8), IBV_WC_SUCCESS);
	assert_int_equal(remote(&s, IBV_WR_RDMA_READ, 0, 8), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	scene_end(&s);
}

static void implicit__all_that_the_process_has(void **state)
{
	struct fixture *f = *state;
	struct scene s;
	struct ibv_mr *all;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	uint8_t octet = 42;

	scene_make(&s, f);
	all = ibv_reg_mr(f->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(all);
	side_recv(&s.pair.b, 1, 0, 1);
	sge = (struct ibv_sge){ (uintptr_t)&octet, 1, all->lkey };
	assert_int_equal(ibv_post_send(s.pair.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s.pair.b.recv_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(s.pair.b.memory[0], 42);
	sge.addr = (uintptr_t)s.memory;
	assert_int_equal(ibv_post_send(s.pair.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(s.pair.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(all), 0);
	scene_end(&s);
}

static bool is_in(void *page)
{
	unsigned char seen = 0;

	assert_int_equal(mincore(page, PAGE, &seen), 0);
	return seen & 1;
}

static void advise_mr__brings_pages_in(void **state)
{
	enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH;
	enum ibv_advise_mr_advice write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	enum ibv_advise_mr_advice no_fault = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	struct fixture *f = *state;
	struct ibv_sge sge;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct scene s;

	scene_make(&s, f);
	sge = (struct ibv_sge){ (uintptr_t)s.memory + PAGE, PAGE, s.mr->lkey };
	assert_int_equal(ibv_advise_mr(f->pd, no_fault, flush, &sge, 1), 0);
	assert_false(is_in(s.memory + PAGE));
	assert_int_equal(ibv_advise_mr(f->pd, write, flush, &sge, 1), 0);
	assert_true(is_in(s.memory + PAGE));
	assert_int_equal(mprotect(s.memory + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(ibv_advise_mr(f->pd, read, flush, &sge, 1), 0);
	assert_int_equal(ibv_advise_mr(f->pd, write, flush, &sge, 1), EFAULT);
	assert_int_equal(ibv_advise_mr(f->pd, write, 0, &sge, 1), 0);
	assert_int_equal(ibv_advise_mr(pd, read, 0, &sge, 1), EPERM);
	assert_int_equal(ibv_advise_mr(f->pd, read, 2, &sge, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(f->pd, read, 0, &sge, 0), EINVAL);
	assert_int_equal(ibv_advise_mr(f->pd, no_fault + 1, 0, &sge, 1), ENOTSUP);
	sge.length = LENGTH;
	assert_int_equal(ibv_advise_mr(f->pd, read, 0, &sge, 1), EFAULT);
	sge.lkey = s.pair.a.mr->lkey;
	assert_int_equal(ibv_advise_mr(f->pd, read, 0, &sge, 1), EINVAL);
	sge.lkey ^= 1;
	assert_int_equal(ibv_advise_mr(f->pd, read, 0, &sge, 1), ENOENT);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	scene_end(&s);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(remote__where_memory_is),	  WITH(remote__where_none_is),
		WITH(send__from_where_none_is),	  WITH(dereg_mr__behind_its_memory),
		WITH(window__where_none_is),	  WITH(implicit__all_that_the_process_has),
		WITH(advise_mr__brings_pages_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
