// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An object is destroyed once no thread is in a call on it: here, in a wait for an event of a completion channel.
#define _GNU_SOURCE // gettid

#include "pair.h"

#include <pthread.h>
#include <unistd.h>

static struct pair pair;
static pid_t _Atomic waiter;

static void *wait_for_message(void *arg)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *owner;

	waiter = gettid();
	while (ibv_get_cq_event(pair.b.channel, &cq, &owner) == 0) {
		ibv_ack_cq_events(cq, 1);
		EXPECT(ibv_req_notify_cq(cq, 0) == 0);
		if (ibv_poll_cq(cq, 1, &wc) > 0)
			break;
	}
	return arg;
}

int main(int argc, char **argv)
{
	bool wrong = pair_wrong(argc, argv);
	pthread_t thread;

	pair_open(&pair);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	end_recv(&pair.b);
	EXPECT(pthread_create(&thread, NULL, wait_for_message, NULL) == 0);
	while (!waiter)
		;
	await_sleep(waiter); // in ibv_get_cq_event
	if (!wrong) { // the thread gets what it waits for, and ends
		end_send(&pair.a);
		expect_success(pair.a.cq);
		EXPECT(pthread_join(thread, NULL) == 0);
	}
	end_destroy_qp(&pair.b);
	EXPECT(ibv_destroy_cq(pair.b.cq) == 0);
	pair.b.cq = NULL;
	EXPECT(ibv_destroy_comp_channel(pair.b.channel) == 0); /* REPORT destroyed-in-use */
	pair.b.channel = NULL;
	pair_close(&pair);
	return 0;
}
