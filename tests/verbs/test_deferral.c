// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs that post one at a time and poll: what they see is the same whether posts wait for a poll or not.
#include "pair.h"

#include "net/qp/uqp.h"
#include "verbs/private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	ROUNDS = 200,
	OCTETS = 64,
	PATIENCE_S = 20,
	TSAN_TRIES = 10000,
};

/* On a slow machine a post takes longer than AW_BURST_GAP_NS with the thread sanitizer, and none waits. */
#ifdef __SANITIZE_THREAD__
#define IS_TSAN true
#else
#define IS_TSAN false
#endif

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool has_waiting(const struct pair *p)
{
	struct aw_uqp *uqp = avb_qp_uqp(p->a.qp);

	aw_lock(&uqp->lock);
	bool waits = uqp->deferral.posts.waits;

	aw_unlock(&uqp->lock);
	return waits;
}

/* As if the program had polled right behind many bursts. */
static void trust(const struct pair *p)
{
	struct aw_uqp *uqp = avb_qp_uqp(p->a.qp);

	aw_lock(&uqp->lock);
	uqp->deferral.posts.credits = AW_CREDIT_MAX;
	aw_unlock(&uqp->lock);
}

/* A Write to the same place of b's memory; the address is its wr_id. */
static int post(const struct pair *p, size_t offset, uint32_t length, unsigned int flags)
{
	struct ibv_sge sge = side_sge(&p->a, offset, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = offset,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { (uintptr_t)p->b.memory + offset, p->b.mr->rkey },
	};

	return ibv_post_send(p->a.qp, &wr, &bad);
}

static void drain(const struct pair *p)
{
	struct ibv_wc wc[8];

	while (ibv_poll_cq(p->a.send_cq, 8, wc) > 0)
		;
}

/* Watching memory is a race by design. */
__attribute__((no_sanitize("thread"))) static uint8_t octet_at(const uint8_t *p)
{
	return *(const volatile uint8_t *)p;
}

static void await_octet(const struct pair *p, size_t offset, uint8_t octet)
{
	uint64_t start = now_ns();

	while (octet_at(p->b.memory + offset) != octet)
		assert_true(now_ns() - start < PATIENCE_S * 1000000000ull);
}

/*
 * A lone Write, then one of one octet that waits; that octet. Late is tried again. False: none of as many as TSAN_TRIES
 * waited with the thread sanitizer.
 */
static bool defer_one(struct pair *p, uint8_t *octet)
{
	uint64_t start = now_ns();
	int tries = 0;

	do {
		if (tries++ == TSAN_TRIES && IS_TSAN)
			return false;
		assert_true(now_ns() - start < PATIENCE_S * 1000000000ull);
		drain(p);
		assert_int_equal(post(p, OCTETS, OCTETS, 0), 0);
		trust(p);
		p->a.memory[0]++;
		assert_int_equal(post(p, 0, 1, IBV_SEND_SIGNALED), 0);
	} while (!has_waiting(p));
	*octet = p->a.memory[0];
	return true;
}

/* Fills the send queue, then polls until all is complete: in order. Returns how many there were. */
static uint32_t fill_and_drain(const struct pair *p, uint8_t octet)
{
	uint32_t posted = 0, done = 0;
	struct ibv_wc wc;
	int err;

	memset(p->a.memory, octet, PAIR_MEMORY);
	while (!(err = post(p, (size_t)posted * OCTETS, OCTETS, IBV_SEND_SIGNALED)))
		posted++;
	assert_int_equal(err, ENOMEM);
	while (done < posted) {
		if (ibv_poll_cq(p->a.send_cq, 1, &wc) == 0)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, (uint64_t)done++ * OCTETS);
	}
	return posted;
}

static void windows__complete_in_order(void **state)
{
	struct pair p;

	pair_make(&p, *state, NULL);
	for (uint8_t round = 1; round < ROUNDS; round++) {
		uint32_t count = fill_and_drain(&p, round);

		await_octet(&p, (size_t)count * OCTETS - 1, round);
		for (uint32_t i = 0; i < count * OCTETS; i++)
			assert_int_equal(octet_at(p.b.memory + i), round);
	}
	pair_destroy(&p);
}

/*
 * Data, then a flag, then nothing but a look at memory: what credit it had is gone after as many delays
 * as that pays for. Where the peer takes the CPU over at once, it seems now and then to have polled
 * right behind the posts.
 */
static void flag_behind_data__does_not_wait_for_long(void **state)
{
	uint32_t waited = 0;
	struct pair p;

	pair_make(&p, *state, NULL);
	trust(&p);
	for (int round = 1; round < ROUNDS; round++) {
		uint64_t start = now_ns();

		p.a.memory[0] = (uint8_t)round;
		assert_int_equal(post(&p, OCTETS, OCTETS, 0), 0);
		assert_int_equal(post(&p, 0, 1, IBV_SEND_SIGNALED), 0);
		waited += has_waiting(&p);
		await_octet(&p, 0, (uint8_t)round);
		while (now_ns() - start < 20000)
			;
		drain(&p);
	}
	assert_in_range(waited, 0, (AW_CREDIT_MAX + ROUNDS) / AW_CREDIT_PRICE);
	pair_destroy(&p);
}

static void waiting__leaves_before_memory_is_deregistered(void **state)
{
	struct pair p;
	struct ibv_mr *mr;
	uint8_t octet;
	bool waits;

	pair_make(&p, *state, NULL);
	mr = ibv_reg_mr(p.f->pd, p.a.memory, 1, 0);
	assert_non_null(mr);
	waits = defer_one(&p, &octet);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_false(has_waiting(&p));
	if (waits)
		await_octet(&p, 0, octet);
	pair_destroy(&p);
	if (!waits)
		skip();
}

static void waiting__leaves_before_the_reset(void **state)
{
	struct pair p;
	uint8_t octet;
	bool waits;

	pair_make(&p, *state, NULL);
	waits = defer_one(&p, &octet);
	assert_int_equal(qp_move(p.a.qp, IBV_QPS_RESET), 0);
	if (waits)
		await_octet(&p, 0, octet);
	pair_destroy(&p);
	if (!waits)
		skip();
}

int main(void)
{
#define DEFERRAL_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		DEFERRAL_TEST(windows__complete_in_order),
		DEFERRAL_TEST(flag_behind_data__does_not_wait_for_long),
		DEFERRAL_TEST(waiting__leaves_before_memory_is_deregistered),
		DEFERRAL_TEST(waiting__leaves_before_the_reset),
	};

	return cmocka_run_group_tests_name("deferral", tests, NULL, NULL);
}
