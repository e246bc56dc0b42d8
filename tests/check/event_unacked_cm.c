// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An rdma_cm_id waits in its destruction until another thread has acknowledged its event: that is no fault, unless the thread does
// not.
#define _GNU_SOURCE // gettid
#include "pair.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../lib/limit.h"

static struct rdma_cm_event *event;
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
		EXPECT(rdma_ack_cm_event(event) == 0);
	return NULL;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id;
	struct pair pair;
	pthread_t thread;

	atomic_store(&wrong, pair_wrong(argc, argv));
	pair_by_cm();
	pair_open(&pair);
	EXPECT(rdma_create_id(pair.events, &id, NULL, RDMA_PS_TCP) == 0);
	EXPECT(rdma_resolve_addr(id, NULL, rdma_get_peer_addr(pair.a.id), 5000) == 0);
	EXPECT(rdma_get_cm_event(pair.events, &event) == 0);
	destroyer = gettid();
	EXPECT(pthread_create(&thread, NULL, acknowledge, NULL) == 0);
	if (atomic_load(&wrong)) {
		EXPECT(signal(SIGALRM, end_here) != SIG_ERR);
		alarm(limit_s(3)); // where nobody checks, the next call does not return
	}
	atomic_store(&destroys, true);
	EXPECT(rdma_destroy_id(id) == 0); /* REPORT event-unacked */
	EXPECT(pthread_join(thread, NULL) == 0);
	pair_close(&pair);
	return 0;
}
