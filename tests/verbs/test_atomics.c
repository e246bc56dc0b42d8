// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics of several QPs, and of the host itself, on one word at the same time.
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
	THREADS = 4,
	ADDS = 20000,
};

struct adder {
	struct pair pair;
	uint64_t *counter;
	struct ibv_mr *mr;
};

/* Polls at both ends: so the thread does b's part too, in parallel to the other threads. */
static void *add(void *arg)
{
	struct adder *a = arg;

	for (int i = 0; i < ADDS; i++) {
		struct ibv_sge sge = side_sge(&a->pair.a, 0, 8);
		struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					  .send_flags = IBV_SEND_SIGNALED,
					  .sg_list = &sge,
					  .num_sge = 1 },
				   *bad;
		struct ibv_wc wc;

		wr.wr.atomic.remote_addr = (uintptr_t)a->counter;
		wr.wr.atomic.rkey = a->mr->rkey;
		wr.wr.atomic.compare_add = 1;
		if (ibv_post_send(a->pair.a.qp, &wr, &bad) ||
		    ibv_poll_cq(a->pair.b.recv_cq, 1, &wc) != 0 ||
		    wc_wait(a->pair.a.send_cq).status != IBV_WC_SUCCESS)
			return a;
	}
	return NULL;
}

struct hammer {
	uint64_t *counter;
	atomic_bool stop;
	uint64_t hits;
};

static void *hit(void *arg)
{
	struct hammer *h = arg;

	while (!atomic_load(&h->stop)) {
		__atomic_fetch_add(h->counter, UINT64_C(1) << 32, __ATOMIC_RELAXED);
		h->hits++;
	}
	return NULL;
}

/*
 * Four QPs, each of a thread, add to a counter's low half, and the host itself all the while to its
 * high half: not one is lost (IBV_ATOMIC_GLOB).
 */
static void atomics__four_threads(void **state)
{
	static uint64_t counter;
	struct hammer hammer = { .counter = &counter };
	struct adder adders[THREADS];
	pthread_t threads[THREADS], hammering;
	struct fixture *f = *state;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, &counter, sizeof(counter),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);

	assert_non_null(mr);
	for (int i = 0; i < THREADS; i++) {
		adders[i].counter = &counter;
		adders[i].mr = mr;
		pair_make(&adders[i].pair, f, NULL);
	}
	assert_int_equal(pthread_create(&hammering, NULL, hit, &hammer), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add, &adders[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	atomic_store(&hammer.stop, true);
	pthread_join(hammering, NULL);
	assert_int_equal(counter, (hammer.hits << 32) + THREADS * ADDS);
	for (int i = 0; i < THREADS; i++)
		pair_destroy(&adders[i].pair);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(atomics__four_threads, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
