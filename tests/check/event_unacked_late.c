// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ waits in its destruction until another thread has acknowledged the event: that is no fault, unless the thread does not.
#define _GNU_SOURCE // gettid
#include "pair.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../lib/limit.h"

static struct ibv_cq *cq;
static pid_t destroyer;
static atomic_bool destroys, wrong;

static void end_here(int signum)
{
	(void)signum;
	_exit(0);
}

static void *acknowledge(void *unused)
{
	(void)unused;
	while (!atomic_load(&destroys))
		;
	await_sleep(destroyer);
	if (!atomic_load(&wrong))
		ibv_ack_cq_events(cq, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	struct pair pair;
	pthread_t thread;
	void *context;

	atomic_store(&wrong, pair_wrong(argc, argv));
	pair_open(&pair);
	EXPECT(ibv_req_notify_cq(pair.b.cq, 0) == 0);
	end_recv(&pair.b);
	end_send(&pair.a);
	expect_success(pair.a.cq);
	EXPECT(ibv_get_cq_event(pair.b.channel, &cq, &context) == 0);
	expect_success(cq);
	end_destroy_qp(&pair.b);
	destroyer = gettid();
	EXPECT(pthread_create(&thread, NULL, acknowledge, NULL) == 0);
	if (atomic_load(&wrong)) {
		EXPECT(signal(SIGALRM, end_here) != SIG_ERR);
		alarm(limit_s(3)); // where nobody checks, the next call does not return
	}
	atomic_store(&destroys, true);
	EXPECT(ibv_destroy_cq(pair.b.cq) == 0); /* REPORT event-unacked */
	pair.b.cq = NULL;
	EXPECT(pthread_join(thread, NULL) == 0);
	pair_close(&pair);
	return 0;
}
