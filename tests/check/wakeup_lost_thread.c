// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread may arm a CQ and sleep without a poll if another thread polls after the arm; the thread that polls itself may not.
#include "pair.h"

#include <pthread.h>
#include <semaphore.h>

static struct pair pair;
static sem_t first_event;
static bool wrong;

static void recv_at(size_t offset)
{
	struct ibv_sge sge = end_sge(&pair.b, offset, MESSAGE);
	struct ibv_recv_wr wr = wr_recv(&sge), *bad;

	EXPECT(ibv_post_recv(pair.b.qp, &wr, &bad) == 0);
}

static void event_take(void)
{
	struct ibv_cq *cq;
	void *owner;

	EXPECT(!ibv_get_cq_event(pair.b.channel, &cq, &owner)); /* REPORT wakeup-lost */
	ibv_ack_cq_events(cq, 1);
}

/* The thread of events, which is woken twice. */
static void *events_take(void *arg)
{
	event_take();
	if (wrong)
		expect_success(pair.b.cq);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	EXPECT(sem_post(&first_event) == 0);
	event_take();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	wrong = pair_wrong(argc, argv);
	pair_open(&pair);
	EXPECT(sem_init(&first_event, 0, 0) == 0);
	recv_at(INBOX);
	recv_at(WINDOW);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	EXPECT(pthread_create(&thread, NULL, events_take, NULL) == 0);
	end_send(&pair.a);
	EXPECT(sem_wait(&first_event) == 0);
	end_send(&pair.a); // by luck not before the CQ was armed
	EXPECT(pthread_join(thread, NULL) == 0);
	if (!wrong)
		expect_success(pair.b.cq);
	expect_success(pair.b.cq);
	expect_success(pair.a.cq);
	expect_success(pair.a.cq);
	pair_close(&pair);
	return 0;
}
