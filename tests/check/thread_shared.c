// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who makes a QP in a thread domain promises that no two threads are in calls on it at the same time.
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	WRITES = 8000, /* in a list, so that a post takes long */
	ROUNDS = 5,
	WRONG_ROUNDS = 200, /* or until so many posts met one of the other thread: */
	MEETINGS = 3,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int posting, met;
static struct pair pair;
static bool wrong;

static void post(struct ibv_send_wr *list)
{
	struct ibv_send_wr *bad;

	if (posting++)
		met++;
	EXPECT(ibv_post_send(pair.a.qp, list, &bad) == 0); /* REPORT thread-shared */
	posting--;
}

/* arg: the offset in the peer's memory. */
static void *post_writes(void *arg)
{
	static _Thread_local struct ibv_send_wr writes[WRITES];
	struct ibv_sge sge = end_sge(&pair.a, INBOX, 1);

	for (int i = 0; i < WRITES; i++) {
		bool last = i == WRITES - 1;

		writes[i] = wr_write(&sge, &pair.b, *(size_t *)arg);
		writes[i].send_flags = last ? IBV_SEND_SIGNALED : 0;
		writes[i].next = last ? NULL : &writes[i + 1];
	}
	for (int round = 0; round < (wrong ? WRONG_ROUNDS : ROUNDS) && met < MEETINGS; round++) {
		if (!wrong)
			pthread_mutex_lock(&mutex);
		post(writes);
		if (!wrong)
			pthread_mutex_unlock(&mutex);
		expect_success(pair.a.cq); // threads may share a CQ that is of no thread domain
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_parent_domain_init_attr attr = { 0 };
	size_t offsets[] = { WINDOW, WINDOW + 1 };
	pthread_t other;

	wrong = pair_wrong(argc, argv);
	pair_device(&pair);
	EXPECT((attr.td = ibv_alloc_td(pair.context, &td_attr)) != NULL);
	attr.pd = pair.pd;
	EXPECT((pair.qp_pd = ibv_alloc_parent_domain(pair.context, &attr)) != NULL);
	pair.cap.max_send_wr = 2 * WRITES;
	pair.cqe = 2 * WRITES + 16;
	pair_prepare(&pair);
	pair_connect(&pair);
	EXPECT(pthread_create(&other, NULL, post_writes, &offsets[1]) == 0);
	post_writes(&offsets[0]);
	EXPECT(pthread_join(other, NULL) == 0);
	end_destroy_qp(&pair.a);
	end_destroy_qp(&pair.b);
	EXPECT(ibv_dealloc_pd(pair.qp_pd) == 0 && ibv_dealloc_td(attr.td) == 0);
	pair_close(&pair);
	return 0;
}
