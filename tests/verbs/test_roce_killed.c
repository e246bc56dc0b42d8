// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs of the roce persona whose peer's process stops or dies: at each step of its connecting, and at any
// moment of that and of the traffic behind it. The survivor hears of it as the man pages say, in the time
// that its attributes give, and its QP, its port and another QP beside it serve the next peer. Prints its seed.
#include "victim.h"

#include "lib/proc.h"
#include "net/base/bounds.h"
#include "net/qp/rnr.h"
#include "net/roce/rc.h"
#include "verbs/private.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	POST_WAIT_MS = 100,
	KILLS = 40, /* if not told */
	BUSY_LIFE_US = 30000, /* into the traffic */
	EARLY_LIFE_US = 2000, /* the time that connecting takes */
	FREE_MS = 10000, /* sockets linger for a peer that is gone */
	LONG_TIMEOUT = 17, /* 4.096 us * 2^17, twice */
	LONG_MS = 1073,
	IDLE_MS = 400,
	LATE_MS = 3000, /* how late this machine's clockwork may be */
	BYSTANDERS_PIPES = 2, /* of its connection through memory; they come when they may */
};

/* What a survivor lends its peer, and has from it. */
static uint8_t wrote[VICTIM_MEMORY], back[VICTIM_MEMORY];

static int kills = KILLS;

struct survivor {
	struct walker w;
	struct route route;
	struct ibv_mr *wrote_mr, *back_mr;
	unsigned int posted; /* on the send queue, and not yet completed */
	uint32_t seed;
};

static int setup(void **state)
{
	aw_bounds.post_wait_ms = POST_WAIT_MS;
	return fixture_setup(state);
}

static uint32_t random_below(struct survivor *s, uint32_t bound)
{
	s->seed = s->seed * 1664525 + 1013904223;
	return (s->seed >> 8) % bound;
}

static int64_t clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

static void survivor_make(struct survivor *s, struct fixture *f)
{
	*s = (struct survivor){ .route = route_loopback(f) };
	walker_make(&s->w, f);
	s->wrote_mr = ibv_reg_mr(f->pd, wrote, sizeof(wrote), IBV_ACCESS_LOCAL_WRITE);
	s->back_mr = ibv_reg_mr(f->pd, back, sizeof(back), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(s->wrote_mr);
	assert_non_null(s->back_mr);
}

static void survivor_destroy(struct survivor *s)
{
	walker_destroy(&s->w);
	assert_int_equal(ibv_dereg_mr(s->wrote_mr), 0);
	assert_int_equal(ibv_dereg_mr(s->back_mr), 0);
}

static void meet(struct survivor *s, struct victim *v, enum victim_step step, int signum,
		 unsigned int life_us)
{
	const struct victim_hello hello = { .qpn = s->w.qp->qp_num };

	victim_start(v, &hello, step, signum, life_us);
}

static void walk_to(struct survivor *s, const struct victim *v)
{
	walk_init(&s->w);
	walker_recv(&s->w, 1);
	walk_rtr(&s->w, &s->route, v->hello.qpn);
	walk_rts(&s->w);
}

static void post(struct survivor *s, struct ibv_send_wr wr, uint8_t *memory, uint32_t len,
		 const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)memory, len, mr->lkey };
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(s->w.qp, &wr, &bad), 0);
	s->posted++;
}

/* A Write, a Read of the same, and a Send, which the victim answers. */
static void post_round(struct survivor *s, const struct victim *v)
{
	uint32_t len = 1 + random_below(s, VICTIM_MEMORY);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };

	memset(wrote, (int)random_below(s, 256), len);
	wr.wr.rdma.remote_addr = v->hello.addr;
	wr.wr.rdma.rkey = v->hello.rkey;
	post(s, wr, wrote, len, s->wrote_mr);
	wr.opcode = IBV_WR_RDMA_READ;
	post(s, wr, back, len, s->back_mr);
	wr.opcode = IBV_WR_SEND;
	memset(s->w.memory, wrote[0], VICTIM_MESSAGE);
	post(s, wr, s->w.memory, VICTIM_MESSAGE, s->w.mr);
}

/*
 * The first WR that fails says why, all others were flushed; so was the receive, unless the victim's last
 * words came before.
 */
static void assert_failed(struct survivor *s, enum ibv_wc_status first)
{
	struct ibv_wc wc;

	assert_int_equal(first, IBV_WC_RETRY_EXC_ERR);
	for (; s->posted > 0; s->posted--)
		walker_sent(&s->w, IBV_WC_WR_FLUSH_ERR);
	wc = wc_wait(s->w.recv_cq);
	assert_true(wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_SUCCESS);
	assert_int_equal(qp_state(s->w.qp), IBV_QPS_ERR);
	assert_int_equal(ibv_poll_cq(s->w.send_cq, 1, &wc), 0);
	assert_int_equal(ibv_poll_cq(s->w.recv_cq, 1, &wc), 0);
}

/* What was posted is done; false when the peer was lost instead, which was said in order. */
static bool is_sent(struct survivor *s)
{
	while (s->posted > 0) {
		struct ibv_wc wc = wc_wait(s->w.send_cq);

		s->posted--;
		if (wc.status == IBV_WC_SUCCESS)
			continue;
		assert_failed(s, wc.status);
		return false;
	}
	return true;
}

/* The echo; a peer that died behind the Send is found out by the next one. */
static bool is_echoed(struct survivor *s, const struct victim *v)
{
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_wc wc;

	write.wr.rdma.remote_addr = v->hello.addr;
	write.wr.rdma.rkey = v->hello.rkey;
	while (ibv_poll_cq(s->w.recv_cq, 1, &wc) == 0) {
		post(s, write, s->w.memory, 0, s->w.mr);
		if (!is_sent(s))
			return false;
	}
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, VICTIM_MESSAGE);
	assert_int_equal(s->w.memory[VICTIM_MESSAGE - 1], wrote[0]);
	walker_recv(&s->w, 1);
	return true;
}

/* False when the peer was lost: the QP is in ERR, and everything completed. */
static bool round_done(struct survivor *s, const struct victim *v)
{
	post_round(s, v);
	if (!is_sent(s))
		return false;
	assert_memory_equal(wrote, back, VICTIM_MESSAGE);
	return is_echoed(s, v);
}

/* A busy machine may let it wait for longer than those that never come. */
static void talk_to_a_new_peer(struct survivor *s, struct victim *v)
{
	aw_bounds.post_wait_ms = AW_RC_POST_WAIT_MS;
	meet(s, v, VICTIM_SERVES, 0, 0);
	walk_to(s, v);
	for (int i = 0; i < 3; i++)
		assert_true(round_done(s, v));
	aw_bounds.post_wait_ms = POST_WAIT_MS;
}

static void serves_a_new_peer(struct survivor *s)
{
	struct victim v;

	walk_reset(&s->w);
	talk_to_a_new_peer(s, &v);
	victim_kill(&v);
	assert_false(round_done(s, &v));
}

/* A victim that goes as far as step, and no further. */
static void lost_at(struct fixture *f, enum victim_step step, int signum)
{
	struct survivor s;
	struct victim v;

	survivor_make(&s, f);
	for (int later = 0; later < 2; later++) {
		walk_reset(&s.w);
		meet(&s, &v, step, signum, 0);
		if (later)
			victim_await(&v, signum);
		walk_to(&s, &v);
		if (!later)
			victim_await(&v, signum);
		/* What stands when the victim stops, stands: its kernel takes a post like this one. */
		if (step == VICTIM_RTS && signum == SIGSTOP)
			victim_kill(&v);
		while (round_done(&s, &v))
			;
		if (signum == SIGSTOP && step != VICTIM_RTS)
			victim_kill(&v);
	}
	serves_a_new_peer(&s);
	survivor_destroy(&s);
}

static void killed__before_it_is_told(void **state)
{
	lost_at(*state, VICTIM_INIT, SIGKILL);
}

static void killed__between_rtr_and_rts(void **state)
{
	lost_at(*state, VICTIM_RTR, SIGKILL);
}

static void killed__in_rts(void **state)
{
	lost_at(*state, VICTIM_RTS, SIGKILL);
}

/* Its kernel takes the call, and nobody answers the Request. */
static void stopped__before_it_is_told(void **state)
{
	lost_at(*state, VICTIM_INIT, SIGSTOP);
}

static void stopped__in_rts_and_killed(void **state)
{
	lost_at(*state, VICTIM_RTS, SIGSTOP);
}

/* A peer that was there, and is not: what the program gave a post is what a post has. */
static void killed__a_post_has_the_time_of_its_attributes(void **state)
{
	struct ibv_qp_attr rts = walk_attr_rts();
	struct survivor s;
	struct victim v;
	int64_t began;

	survivor_make(&s, *state);
	aw_bounds.post_wait_ms = AW_RC_POST_WAIT_MS;
	meet(&s, &v, VICTIM_SERVES, 0, 0);
	walk_init(&s.w);
	walker_recv(&s.w, 1);
	walk_rtr(&s.w, &s.route, v.hello.qpn);
	rts.timeout = LONG_TIMEOUT;
	assert_int_equal(ibv_modify_qp(s.w.qp, &rts, WALK_RTS), 0);
	assert_true(round_done(&s, &v));
	victim_kill(&v);
	began = now_ms();
	assert_false(round_done(&s, &v));
	assert_in_range(now_ms() - began, LONG_MS, LONG_MS + LATE_MS);
	serves_a_new_peer(&s);
	survivor_destroy(&s);
}

/* A victim's echo finds no receive, and waits for one as the victim is killed. */
static void killed_while_its_message_waits(struct survivor *s, struct ibv_qp_attr *rts)
{
	const struct ibv_send_wr send = { .opcode = IBV_WR_SEND };
	struct aw_uqp *qp = avb_qp_uqp(s->w.qp);
	bool held = false;
	struct victim v;

	meet(s, &v, VICTIM_SERVES, 0, 0);
	walk_init(&s->w);
	walk_rtr(&s->w, &s->route, v.hello.qpn);
	assert_int_equal(ibv_modify_qp(s->w.qp, rts, WALK_RTS), 0);
	post(s, send, s->w.memory, VICTIM_MESSAGE, s->w.mr);
	assert_true(is_sent(s));
	while (!held && sched_yield() == 0) {
		aw_lock(&qp->lock);
		held = aw_rnr_waits(qp);
		aw_unlock(&qp->lock);
	}
	victim_kill(&v);
	for (int i = 0; i < 3; i++)
		post(s, send, s->w.memory, VICTIM_MESSAGE, s->w.mr);
	assert_int_equal(ibv_req_notify_cq(s->w.send_cq, 0), 0); /* sends what is held */
}

/* None of these was received, though the victim's kernel may have taken the first. */
static void killed__posts_fail_though_its_message_waits(void **state)
{
	struct ibv_qp_attr rts = walk_attr_rts();
	struct survivor s;

	survivor_make(&s, *state);
	killed_while_its_message_waits(&s, &rts);
	walker_sent(&s.w, IBV_WC_RETRY_EXC_ERR);
	walker_sent(&s.w, IBV_WC_WR_FLUSH_ERR);
	walker_sent(&s.w, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(s.w.qp), IBV_QPS_ERR);
	s.posted = 0;
	serves_a_new_peer(&s);
	survivor_destroy(&s);
}

/* With a timeout of 0 nothing fails, and no thread turns meanwhile. */
static void killed__nothing_turns_though_its_message_waits(void **state)
{
	struct ibv_qp_attr rts = walk_attr_rts();
	struct survivor s;
	int64_t began_ms;

	rts.timeout = 0;
	survivor_make(&s, *state);
	killed_while_its_message_waits(&s, &rts);
	began_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
	poll(NULL, 0, IDLE_MS);
	assert_in_range(clock_ms(CLOCK_PROCESS_CPUTIME_ID) - began_ms, 0, IDLE_MS / 4);
	walker_recv(&s.w, 1);
	walker_received(&s.w, IBV_WC_SUCCESS);
	assert_int_equal(qp_state(s.w.qp), IBV_QPS_RTS);
	survivor_destroy(&s);
}

static void wait_free(int fds, int threads)
{
	int64_t deadline = now_ms() + FREE_MS;

	while ((proc_fds() > fds || proc_threads() > threads) && now_ms() < deadline)
		usleep(1000);
	assert_in_range(proc_fds(), 0, fds);
	assert_in_range(proc_threads(), 0, threads);
}

/* At random; every second time the QP is a new one, of the same port. */
static void kill_one(struct survivor *s, struct fixture *f, int i)
{
	uint32_t life_us = 1 + random_below(s, i % 2 ? EARLY_LIFE_US : BUSY_LIFE_US);
	uint32_t seed = s->seed;
	struct victim v;

	if (i % 4 < 2) {
		walk_reset(&s->w);
	} else {
		survivor_destroy(s);
		survivor_make(s, f);
		s->seed = seed;
	}
	meet(s, &v, VICTIM_SERVES, 0, life_us);
	walk_to(s, &v);
	while (round_done(s, &v))
		;
	victim_await(&v, SIGKILL);
}

static void killed__at_random(void **state)
{
	struct survivor s, other;
	struct victim bystander;
	int fds = 0, threads = 0;
	uint32_t port;

	survivor_make(&other, *state);
	survivor_make(&s, *state);
	s.seed = (uint32_t)time(NULL) ^ (uint32_t)getpid();
	if (getenv("ANYWARP_SEED"))
		s.seed = (uint32_t)strtoul(getenv("ANYWARP_SEED"), NULL, 10);
	printf("seed %u\n", s.seed);
	port = s.w.qp->qp_num >> 8;
	talk_to_a_new_peer(&other, &bystander);
	for (int i = 0; i < kills; i++) {
		kill_one(&s, *state, i);
		assert_int_equal(s.w.qp->qp_num >> 8, port);
		assert_true(round_done(&other, &bystander));
		if (i == 3) {
			fds = proc_fds();
			threads = proc_threads();
		}
	}
	wait_free(fds + BYSTANDERS_PIPES, threads);
	serves_a_new_peer(&s);
	victim_kill(&bystander);
	survivor_destroy(&s);
	survivor_destroy(&other);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

/* With a number: so many deaths at random. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH(killed__before_it_is_told),
		WITH(killed__between_rtr_and_rts),
		WITH(killed__in_rts),
		WITH(stopped__before_it_is_told),
		WITH(stopped__in_rts_and_killed),
		WITH(killed__a_post_has_the_time_of_its_attributes),
		WITH(killed__posts_fail_though_its_message_waits),
		WITH(killed__nothing_turns_though_its_message_waits),
		WITH(killed__at_random),
	};

	walk_persona();
	if (victim_main(argc, argv))
		return 0;
	if (argc > 1)
		kills = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
