// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that changes while it is sent, by a third peer's Writes or the program's stores: what arrives is old or
// new octets, mixed, and no stream ends. CRCs are on.
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	REGION = 1 << 20,
	MESSAGES = 3000,
	MESSAGE = 1 << 16,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

struct scene {
	struct pair reader, writer;
	uint8_t *region;
	struct ibv_mr *mr;
	_Atomic bool over;
	_Atomic uint32_t written; /* WRs of the writer's */
	pthread_t thread;
};

/* Writes all of the region over and over, each time other octets. */
static void *write_on(void *arg)
{
	struct scene *s = arg;
	struct ibv_sge sge = side_sge(&s->writer.a, 0, MESSAGE);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	while (!atomic_load(&s->over)) {
		uint32_t n = atomic_fetch_add(&s->written, 1);

		memset(s->writer.a.memory, (int)n, MESSAGE);
		wr.wr.rdma.remote_addr = (uintptr_t)s->region + n * MESSAGE % REGION;
		wr.wr.rdma.rkey = s->mr->rkey;
		if (ibv_post_send(s->writer.a.qp, &wr, &bad) != 0 ||
		    wc_wait(s->writer.a.send_cq).status != IBV_WC_SUCCESS)
			return "the writer's stream ended";
	}
	return NULL;
}

static void scene_make(struct scene *s, struct fixture *f)
{
	memset(s, 0, sizeof(*s));
	pair_make(&s->reader, f, NULL);
	pair_make(&s->writer, f, NULL);
	s->region = calloc(1, REGION);
	s->mr = ibv_reg_mr(f->pd, s->region, REGION, RIGHTS);
	assert_non_null(s->mr);
	assert_int_equal(pthread_create(&s->thread, NULL, write_on, s), 0);
}

static void scene_end(struct scene *s)
{
	void *complaint;

	/* Where one of the two has done all before the other began, nothing was tried. */
	while (s->written < REGION / MESSAGE)
		ibv_poll_cq(s->reader.b.recv_cq, 0, NULL);
	atomic_store(&s->over, true);
	assert_int_equal(pthread_join(s->thread, &complaint), 0);
	assert_null(complaint);
	pair_destroy(&s->reader);
	pair_destroy(&s->writer);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	free(s->region);
}

static void changing__sent(void **state)
{
	struct ibv_sge sge = { .length = MESSAGE };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct scene s;

	scene_make(&s, *state);
	wr.send_flags = IBV_SEND_SIGNALED;
	sge.lkey = s.mr->lkey;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		side_recv(&s.reader.b, i, 0, MESSAGE);
		sge.addr = (uintptr_t)s.region + i * MESSAGE % REGION;
		assert_int_equal(ibv_post_send(s.reader.a.qp, &wr, &bad), 0);
		assert_int_equal(wc_wait(s.reader.b.recv_cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wc_wait(s.reader.a.send_cq).status, IBV_WC_SUCCESS);
	}
	scene_end(&s);
}

static void changing__read(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct scene s;

	scene_make(&s, *state);
	sge = side_sge(&s.reader.a, 0, MESSAGE);
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		wr.wr.rdma.remote_addr = (uintptr_t)s.region + i * MESSAGE % REGION;
		wr.wr.rdma.rkey = s.mr->rkey;
		assert_int_equal(ibv_post_send(s.reader.a.qp, &wr, &bad), 0);
		assert_int_equal(wc_wait(s.reader.a.send_cq).status, IBV_WC_SUCCESS);
	}
	scene_end(&s);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { WITH(changing__sent), WITH(changing__read) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
