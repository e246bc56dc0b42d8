// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two honest ends in the victim's process, in a thread of their own: round after round one Writes,
// Reads back and Sends, and every octet is compared. RFC 5042 6: whatever happens to another
// stream, this one must not notice.
#include "victim.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define OCTETS 20000
#define CQES 16
#define ROUND_MS 2 /* a pause: the attacker's tests want the processor too */

static _Atomic uint64_t rounds;

struct side {
	uint8_t memory[3 * OCTETS]; /* what is sent; what arrives; what is read back */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
};

static struct side sides[2];
static struct ibv_comp_channel *events;
static _Atomic bool sleeping; /* until a signal */

static void open_side(struct side *side, struct ibv_pd *pd)
{
	side->mr = ibv_reg_mr(pd, side->memory, sizeof(side->memory),
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ);
	CHECK(side->mr);
}

static void post(struct rdma_cm_id *id, struct side *from, const struct side *to,
		 enum ibv_wr_opcode opcode)
{
	size_t at = opcode == IBV_WR_RDMA_READ ? 2 * (size_t)OCTETS : 0;
	struct ibv_sge sge = { (uintptr_t)from->memory + at, OCTETS, from->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to->memory + OCTETS, to->mr->rkey },
	}, *bad;

	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
}

/* Both ends share the CQ. */
static void await(struct ibv_cq *cq, unsigned int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		int n = ibv_poll_cq(cq, 1, &wc);
		struct ibv_cq *ready;
		void *context;

		CHECK(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS));
		count -= (unsigned int)n;
		if (n > 0)
			continue;
		CHECK(ibv_req_notify_cq(cq, 0) == 0);
		n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS));
		count -= (unsigned int)n;
		if (n > 0)
			continue;
		CHECK(ibv_get_cq_event(events, &ready, &context) == 0);
		ibv_ack_cq_events(ready, 1);
	}
}

static void one_round(struct rdma_cm_id *id, struct rdma_cm_id *peer, struct ibv_cq *cq,
		      uint64_t number)
{
	struct side *ours = &sides[number & 1], *theirs = &sides[!(number & 1)];
	struct ibv_sge sge = { (uintptr_t)theirs->memory + OCTETS, OCTETS, theirs->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (size_t i = 0; i < OCTETS; i++)
		ours->memory[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
	CHECK(ibv_post_recv(peer->qp, &wr, &bad) == 0);
	post(id, ours, theirs, IBV_WR_RDMA_WRITE);
	post(id, ours, theirs, IBV_WR_RDMA_READ);
	await(cq, 2);
	CHECK(memcmp(ours->memory, theirs->memory + OCTETS, OCTETS) == 0);
	CHECK(memcmp(ours->memory, ours->memory + 2 * (size_t)OCTETS, OCTETS) == 0);
	memset(theirs->memory + OCTETS, 0, OCTETS);
	post(id, ours, theirs, IBV_WR_SEND);
	await(cq, 2);
	CHECK(memcmp(ours->memory, theirs->memory + OCTETS, OCTETS) == 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* A channel opens one more fd when a thread first sleeps on it: that is to be, before any count. */
static void sleep_once(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct ibv_cq *ready;
	void *context;

	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	atomic_store(&sleeping, true);
	CHECK(ibv_get_cq_event(events, &ready, &context) != 0 && errno == EINTR);
	sa.sa_handler = SIG_IGN;
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	atomic_store(&sleeping, false);
}

static void *run(void *arg)
{
	static struct meeting meeting;
	const struct timespec pause = { .tv_nsec = ROUND_MS * 1000000L };
	struct ibv_pd *pd = victim_pd(PDS - 1);
	struct ibv_cq *cq;
	struct link link;

	(void)arg;
	events = ibv_create_comp_channel(pd->context);
	CHECK(events);
	sleep_once();
	cq = ibv_create_cq(pd->context, CQES, NULL, events, 0);
	CHECK(cq);
	open_side(&sides[0], pd);
	open_side(&sides[1], pd);
	meeting_open_at(&meeting, victim_address());
	link_open(&meeting, pd,
		  &(struct ibv_qp_init_attr){
			  .send_cq = cq,
			  .recv_cq = cq,
			  .qp_type = IBV_QPT_RC,
			  .cap = { 4, 4, 1, 1, 0 },
		  },
		  &link);
	for (uint64_t number = 0;; number++) {
		bool turn = number & 1;

		one_round(turn ? link.active : link.passive, turn ? link.passive : link.active, cq,
			  number);
		atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return NULL;
}

void honest_start(void)
{
	pthread_t thread;

	/* Made here: the PDs are the main thread's from now on. */
	victim_pd(PDS - 1);
	CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
	while (honest_rounds() == 0) {
		if (atomic_load(&sleeping))
			pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
}

uint64_t honest_rounds(void)
{
	return atomic_load_explicit(&rounds, memory_order_relaxed);
}
