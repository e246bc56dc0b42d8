// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_alloc_null_mr: an lkey that reads as zeros and drops what is written, in every kind of message.
#include "pair.h"

#include <errno.h>
#include <string.h>

enum {
	LONG = 200000, /* octets: several FPDUs, and lent where there is no CRC */
};

static void post(const struct pair *p, enum ibv_wr_opcode opcode, struct ibv_sge *sges, int count)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = sges, .num_sge = count
	};

	wr.wr.rdma.remote_addr = (uintptr_t)p->b.memory;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	assert_int_equal(ibv_post_send(p->a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p->a.send_cq).status, IBV_WC_SUCCESS);
}

static struct ibv_sge nothing(const struct ibv_mr *null, uint32_t length)
{
	return (struct ibv_sge){ .addr = 0x123456, .length = length, .lkey = null->lkey };
}

static void expect_octets(const uint8_t *at, uint8_t octet, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(at[i], octet);
}

static void alloc_null_mr__what_it_shows(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	char memory[64];

	assert_non_null(null);
	assert_ptr_equal(null->pd, f->pd);
	assert_ptr_equal(null->context, f->context);
	assert_null(null->addr);
	assert_int_equal(null->length, SIZE_MAX);
	assert_int_equal(ibv_dealloc_pd(f->pd), EBUSY);
	assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
				      sizeof(memory), 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	FAILS_WITH(EINVAL, ibv_import_mr(f->pd, null->handle));
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* From between two pieces of memory, short and long, copied and lent. */
static void sends_zeros(struct pair *p, struct ibv_mr *null, uint32_t length)
{
	struct ibv_sge sges[] = { side_sge(&p->a, 0, 10), nothing(null, length),
				  side_sge(&p->a, 100, 10) };

	memset(p->a.memory, 0x11, 200);
	for (int i = 0; i < 2; i++) {
		memset(p->b.memory, 0x22, PAIR_MEMORY);
		if (i)
			side_recv(&p->b, 1, 0, length + 20);
		post(p, i ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, sges, 3);
		if (i)
			assert_int_equal(wc_wait(p->b.recv_cq).byte_len, length + 20);
		else
			post(p, IBV_WR_RDMA_READ, &(struct ibv_sge){ 0 }, 0);
		expect_octets(p->b.memory, 0x11, 10);
		expect_octets(p->b.memory + 10, 0, length);
		expect_octets(p->b.memory + 10 + length, 0x11, 10);
		expect_octets(p->b.memory + 20 + length, 0x22, 10);
	}
}

static void null_mr__reads_as_zeros(void **state)
{
	struct fixture *f = *state;
	struct pair p;

	for (int bare = 0; bare < 2; bare++) {
		struct ibv_mr *null = ibv_alloc_null_mr(f->pd);

		if (bare)
			pair_make_bare(&p, f);
		else
			pair_make(&p, f, NULL);
		sends_zeros(&p, null, 1);
		sends_zeros(&p, null, LONG);
		pair_destroy(&p);
		assert_int_equal(ibv_dereg_mr(null), 0);
	}
}

static void null_mr__drops_what_a_read_brings(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	struct pair p;

	pair_make(&p, f, NULL);
	struct ibv_sge sges[] = { side_sge(&p.a, 0, 10), nothing(null, LONG),
				  side_sge(&p.a, 10, 10) };

	for (size_t i = 0; i < LONG + 20; i++)
		p.b.memory[i] = (uint8_t)(i < 10 ? 1 : i < LONG + 10 ? 2 : 3);
	post(&p, IBV_WR_RDMA_READ, sges, 3);
	expect_octets(p.a.memory, 1, 10);
	expect_octets(p.a.memory + 10, 3, 10);
	expect_octets(p.a.memory + 20, 0, 100);
	pair_destroy(&p);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

static void null_mr__drops_what_is_received(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	struct ibv_recv_wr *bad, recv = { .num_sge = 2 };
	struct pair p;

	pair_make(&p, f, NULL);
	struct ibv_sge sges[] = { nothing(null, LONG), side_sge(&p.b, 0, 10) };
	struct ibv_sge whole = side_sge(&p.a, 0, LONG + 10);

	memset(p.a.memory, 1, LONG);
	memset(p.a.memory + LONG, 2, 10);
	recv.sg_list = sges;
	assert_int_equal(ibv_post_recv(p.b.qp, &recv, &bad), 0);
	post(&p, IBV_WR_SEND, &whole, 1);
	assert_int_equal(wc_wait(p.b.recv_cq).byte_len, LONG + 10);
	expect_octets(p.b.memory, 2, 10);
	expect_octets(p.b.memory + 10, 0, 100);
	pair_destroy(&p);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* An atomic's result, too; and the operation is done all the same. */
static void null_mr__drops_an_atomics_result(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					.send_flags = IBV_SEND_SIGNALED,
					.num_sge = 1 };
	struct ibv_sge sge = nothing(null, 8);
	struct pair p;

	pair_make(&p, f, NULL);
	wr.sg_list = &sge;
	wr.wr.atomic.remote_addr = (uintptr_t)p.b.memory;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	wr.wr.atomic.compare_add = 5;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)p.b.memory, 5);
	pair_destroy(&p);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* Neither its rkey nor its lkey lets a peer in, and no window is bound to it. */
static void null_mr__is_no_peers(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_READ,
						.send_flags = IBV_SEND_SIGNALED,
						.num_sge = 1 };
		struct ibv_sge sge;
		struct pair p;

		pair_make(&p, f, NULL);
		sge = side_sge(&p.a, 0, 8);
		wr.sg_list = &sge;
		wr.wr.rdma.rkey = i ? null->lkey : null->rkey;
		assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
		assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
		pair_destroy(&p);
		assert_int_equal(ibv_dereg_mr(null), 0);
	}
}

static void null_mr__gone(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(f->pd);
	struct ibv_send_wr *bad,
		wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .num_sge = 1 };
	struct ibv_sge sge = nothing(null, 8);
	struct pair p;

	pair_make(&p, f, NULL);
	assert_int_equal(ibv_dereg_mr(null), 0);
	wr.sg_list = &sge;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), 0);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_LOC_PROT_ERR);
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(alloc_null_mr__what_it_shows),
		WITH(null_mr__reads_as_zeros),
		WITH(null_mr__drops_what_a_read_brings),
		WITH(null_mr__drops_what_is_received),
		WITH(null_mr__drops_an_atomics_result),
		WITH(null_mr__is_no_peers),
		WITH(null_mr__gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
