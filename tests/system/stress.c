// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Eight threads: six share two CQs, an SRQ, the MRs and all QPs, posting Sends and Writes in both
// directions; two make and destroy connections on the same CQs, and CQs, SRQs and MRs of their own,
// all the while. Every completion must come exactly once, every Send arrive exactly once, every
// Write be in place at the end. Prints its seed.
#include "link.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define TRAFFIC_THREADS 6
#define PASSERS 2
#define LINKS 4
#define ENDS (2 * LINKS)
#define SQ_DEPTH 32
#define RQ_DEPTH 32
#define CQ_DEPTH 2048
#define OPS_MAX 65536
#define OPS_DEFAULT 20000
#define SLOT_OCTETS 256
#define PROGRAM_SECONDS_MAX 200
/* wr_id of the traffic of a connection that comes and goes. */
#define PASSING (1ULL << 63)

/* Both queues of one end of a link count their free places; a post takes one first. */
struct end {
	struct ibv_qp *qp;
	struct end *peer;
	atomic_int sq_free;
	atomic_int rq_posted;
	atomic_int *receives; /* its own rq_posted, or the SRQ's */
};

enum op_state {
	OP_FREE,
	OP_POSTED,
	OP_COMPLETED
};

struct op {
	_Atomic enum op_state state;
	_Atomic bool is_received;
	bool is_send;
	struct end *end;
};

/* Fixed after set-up, but for the atomics and the buffers, of which each op has its own slot. */
static struct {
	unsigned int op_count;
	unsigned int send_count;
	unsigned int seed;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *out_mr, *in_mr, *target_mr;
	struct ibv_pd *pd;
	struct ibv_srq *srq; /* of the ends of every second link */
	atomic_int srq_posted;
	struct end ends[ENDS];
	atomic_uint ops_taken, ops_completed, sends_received;
	atomic_uint passing_completed[PASSERS];
	atomic_uint passed;
	atomic_bool is_over;
} world;

static struct op ops[OPS_MAX];
static unsigned char out[OPS_MAX][SLOT_OCTETS], target[OPS_MAX][SLOT_OCTETS];
static unsigned char in[ENDS * RQ_DEPTH][SLOT_OCTETS];

static unsigned char pattern(unsigned int op, unsigned int at)
{
	return (unsigned char)(op * 31 + at);
}

static bool take(atomic_int *count)
{
	int now = atomic_load(count);

	while (now > 0) {
		if (atomic_compare_exchange_weak(count, &now, now - 1))
			return true;
	}
	return false;
}

static void post_recv(unsigned int slot)
{
	struct end *end = &world.ends[slot / RQ_DEPTH];
	struct ibv_sge sge = { (uintptr_t)in[slot], SLOT_OCTETS, world.in_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (end->qp->srq)
		CHECK(ibv_post_srq_recv(end->qp->srq, &wr, &bad) == 0);
	else
		CHECK(ibv_post_recv(end->qp, &wr, &bad) == 0);
	atomic_fetch_add(end->receives, 1);
}

static void post_op(unsigned int number)
{
	struct op *op = &ops[number];
	struct ibv_sge sge = { (uintptr_t)out[number], SLOT_OCTETS, world.out_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op->is_send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)target[number];
	wr.wr.rdma.rkey = world.target_mr->rkey;
	atomic_store(&op->state, OP_POSTED);
	CHECK(ibv_post_send(op->end->qp, &wr, &bad) == 0);
}

static void on_sent(const struct ibv_wc *wc)
{
	enum op_state posted = OP_POSTED;

	if (wc->status != IBV_WC_SUCCESS)
		fprintf(stderr, "op %llu: %s\n", (unsigned long long)wc->wr_id,
			ibv_wc_status_str(wc->status));
	CHECK(wc->status == IBV_WC_SUCCESS);
	if (wc->wr_id & PASSING) {
		atomic_fetch_add(&world.passing_completed[wc->wr_id & ~PASSING], 1);
		return;
	}
	CHECK(wc->wr_id < world.op_count);
	CHECK(atomic_compare_exchange_strong(&ops[wc->wr_id].state, &posted, OP_COMPLETED));
	CHECK(wc->qp_num == ops[wc->wr_id].end->qp->qp_num);
	atomic_fetch_add(&ops[wc->wr_id].end->sq_free, 1);
	atomic_fetch_add(&world.ops_completed, 1);
}

static void on_received(const struct ibv_wc *wc)
{
	const unsigned char *data = in[wc->wr_id];
	unsigned int number;

	CHECK(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV);
	CHECK(wc->byte_len == SLOT_OCTETS);
	memcpy(&number, data, sizeof(number));
	CHECK(number < world.op_count && ops[number].is_send);
	CHECK(!atomic_exchange(&ops[number].is_received, true));
	CHECK(wc->qp_num == ops[number].end->peer->qp->qp_num);
	for (unsigned int at = sizeof(number); at < SLOT_OCTETS; at++)
		CHECK(data[at] == pattern(number, at));
	atomic_fetch_add(&world.sends_received, 1);
	post_recv((unsigned int)wc->wr_id);
}

static bool poll_one(struct ibv_cq *cq, void (*on_wc)(const struct ibv_wc *wc))
{
	struct ibv_wc wcs[8];
	int count = ibv_poll_cq(cq, 8, wcs);

	CHECK(count >= 0);
	for (int i = 0; i < count; i++)
		on_wc(&wcs[i]);
	return count > 0;
}

static void poll_both(void)
{
	bool is_busy = poll_one(world.send_cq, on_sent);

	if (!poll_one(world.recv_cq, on_received) && !is_busy)
		sched_yield();
}

/* Posts ops until none is left, then polls until everybody's are complete and received. */
static void *traffic(void *arg)
{
	unsigned int number;

	(void)arg;
	while ((number = atomic_fetch_add(&world.ops_taken, 1)) < world.op_count) {
		struct end *end = ops[number].end;

		while (!take(&end->sq_free))
			poll_both();
		while (ops[number].is_send && !take(end->peer->receives))
			poll_both();
		post_op(number);
	}
	while (!atomic_load(&world.is_over))
		poll_both();
	return NULL;
}

/* A CQ and an SRQ that nothing uses come and go beside those that are in use. */
static void pass_objects(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(verbs, 16, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(world.pd, &attr);

	CHECK(cq && srq);
	CHECK(ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0);
}

/* Posts a Write to memory registered for it alone; its completion goes to whoever polls first. */
static void pass_write(const struct link *link, unsigned int passer)
{
	unsigned int before = atomic_load(&world.passing_completed[passer]);
	unsigned char from[SLOT_OCTETS] = { 0 }, to[SLOT_OCTETS];
	struct ibv_mr *out_mr = ibv_reg_mr(world.pd, from, sizeof(from), 0);
	struct ibv_mr *in_mr = ibv_reg_mr(world.pd, to, sizeof(to),
					  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = { (uintptr_t)from, sizeof(from), 0 };
	struct ibv_send_wr wr = { .wr_id = PASSING | passer,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	CHECK(out_mr && in_mr);
	sge.lkey = out_mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = in_mr->rkey;
	CHECK(ibv_post_send(link->active->qp, &wr, &bad) == 0);
	while (atomic_load(&world.passing_completed[passer]) == before)
		poll_both();
	CHECK(ibv_dereg_mr(out_mr) == 0 && ibv_dereg_mr(in_mr) == 0);
}

static bool all_arrived(void)
{
	return atomic_load(&world.ops_completed) >= world.op_count &&
	       atomic_load(&world.sends_received) >= world.send_count;
}

/* Makes, uses and destroys what is its own until all traffic has arrived. */
static void *pass(void *arg)
{
	unsigned int passer = *(unsigned int *)arg;
	struct ibv_qp_init_attr attr = { .cap = { SQ_DEPTH, RQ_DEPTH, 1, 1, 0 },
					 .send_cq = world.send_cq,
					 .recv_cq = world.recv_cq,
					 .qp_type = IBV_QPT_RC };
	struct meeting meeting;
	struct link link;

	meeting_open(&meeting);
	while (!all_arrived()) {
		attr.srq = attr.srq ? NULL : world.srq;
		link_open(&meeting, world.pd, &attr, &link);
		pass_objects(link.active->verbs);
		pass_write(&link, passer);
		link_close(&meeting, &link);
		atomic_fetch_add(&world.passed, 1);
	}
	meeting_close(&meeting);
	return NULL;
}

static void prepare_ops(void)
{
	unsigned int random = world.seed;

	for (unsigned int number = 0; number < world.op_count; number++) {
		random = random * 1664525 + 1013904223;
		ops[number].end = &world.ends[(random >> 16) % ENDS];
		ops[number].is_send = (random >> 24) & 1;
		world.send_count += ops[number].is_send;
		for (unsigned int at = 0; at < SLOT_OCTETS; at++)
			out[number][at] = pattern(number, at);
		memcpy(out[number], &number, sizeof(number));
	}
}

static void prepare_link(unsigned int index, const struct link *link)
{
	struct end *pair = &world.ends[2 * index];

	for (unsigned int i = 0; i < 2; i++) {
		pair[i].qp = i == 0 ? link->active->qp : link->passive->qp;
		pair[i].peer = &pair[1 - i];
		pair[i].receives = pair[i].qp->srq ? &world.srq_posted : &pair[i].rq_posted;
		atomic_store(&pair[i].sq_free, SQ_DEPTH);
		for (unsigned int slot = 0; slot < RQ_DEPTH; slot++)
			post_recv((2 * index + i) * RQ_DEPTH + slot);
	}
}

static void register_buffers(struct ibv_pd *pd)
{
	world.out_mr = ibv_reg_mr(pd, out, sizeof(out), 0);
	world.in_mr = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	world.target_mr = ibv_reg_mr(pd, target, sizeof(target),
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(world.out_mr && world.in_mr && world.target_mr);
}

static void run(void)
{
	pthread_t traffic_threads[TRAFFIC_THREADS], passers[PASSERS];
	unsigned int numbers[PASSERS];

	for (int i = 0; i < TRAFFIC_THREADS; i++)
		CHECK(pthread_create(&traffic_threads[i], NULL, traffic, NULL) == 0);
	for (unsigned int i = 0; i < PASSERS; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&passers[i], NULL, pass, &numbers[i]) == 0);
	}
	for (int i = 0; i < PASSERS; i++)
		CHECK(pthread_join(passers[i], NULL) == 0);
	atomic_store(&world.is_over, true);
	for (int i = 0; i < TRAFFIC_THREADS; i++)
		CHECK(pthread_join(traffic_threads[i], NULL) == 0);
}

/* A Write is in place when a later Send has arrived; a link's end proves the same. */
static void check_writes(void)
{
	for (unsigned int number = 0; number < world.op_count; number++) {
		if (!ops[number].is_send)
			CHECK(memcmp(target[number], out[number], SLOT_OCTETS) == 0);
	}
}

static void create_objects(struct meeting *meeting)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = ENDS * RQ_DEPTH, .max_sge = 1 } };
	struct rdma_cm_id *pilot = meeting_resolve(meeting);

	world.pd = ibv_alloc_pd(pilot->verbs);
	world.send_cq = ibv_create_cq(pilot->verbs, CQ_DEPTH, NULL, NULL, 0);
	world.recv_cq = ibv_create_cq(pilot->verbs, CQ_DEPTH, NULL, NULL, 0);
	CHECK(world.pd && world.send_cq && world.recv_cq);
	world.srq = ibv_create_srq(world.pd, &attr);
	CHECK(world.srq && rdma_destroy_id(pilot) == 0);
	register_buffers(world.pd);
}

static void destroy_objects(void)
{
	CHECK(ibv_dereg_mr(world.out_mr) == 0);
	CHECK(ibv_dereg_mr(world.in_mr) == 0);
	CHECK(ibv_dereg_mr(world.target_mr) == 0);
	CHECK(ibv_destroy_srq(world.srq) == 0);
	CHECK(ibv_destroy_cq(world.send_cq) == 0);
	CHECK(ibv_destroy_cq(world.recv_cq) == 0);
	CHECK(ibv_dealloc_pd(world.pd) == 0);
}

/* Everything anew but the seed, which goes on. */
static void prepare_world(unsigned int op_count, unsigned int seed)
{
	memset(&world, 0, sizeof(world));
	memset(ops, 0, sizeof(ops));
	memset(target, 0, sizeof(target));
	world.op_count = op_count;
	world.seed = seed;
	prepare_ops();
}

static void open_links(struct meeting *meeting, struct link *links)
{
	struct ibv_qp_init_attr attr = { .cap = { SQ_DEPTH, RQ_DEPTH, 1, 1, 0 },
					 .send_cq = world.send_cq,
					 .recv_cq = world.recv_cq,
					 .qp_type = IBV_QPT_RC };

	for (unsigned int i = 0; i < LINKS; i++) {
		attr.srq = i % 2 ? world.srq : NULL;
		link_open(meeting, world.pd, &attr, &links[i]);
		prepare_link(i, &links[i]);
	}
}

static void play(struct meeting *meeting)
{
	struct link links[LINKS];

	create_objects(meeting);
	open_links(meeting, links);
	run();
	for (unsigned int i = 0; i < LINKS; i++)
		link_close(meeting, &links[i]);
	check_writes();
	destroy_objects();
	printf("%u ops, %u connections came and went\n", world.op_count,
	       atomic_load(&world.passed));
}

/* Arguments: the number of ops a round, of rounds, the seed. */
int main(int argc, char **argv)
{
	unsigned int op_count = argc > 1 ? (unsigned int)atoi(argv[1]) : OPS_DEFAULT;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 1;
	unsigned int seed = argc > 3 ? (unsigned int)atoi(argv[3]) : (unsigned int)time(NULL);
	struct meeting meeting;

	CHECK(op_count > 0 && op_count <= OPS_MAX);
	printf("stress %u %u %u\n", op_count, rounds, seed);
	fflush(stdout);
	give_up_after(PROGRAM_SECONDS_MAX);
	meeting_open(&meeting);
	for (unsigned int i = 0; i < rounds; i++) {
		prepare_world(op_count, seed + i);
		play(&meeting);
	}
	meeting_close(&meeting);
	return 0;
}
