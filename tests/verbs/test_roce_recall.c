// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs of the roce persona whose peer is reset before either program has sent a message: they wait for
// the next connection, whatever their own program does meanwhile.
#include "walk.h"

#include "net/base/bounds.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum {
	AGAIN = 20,
	POST_WAIT_MS = 100,
	WAIT_S = 10,
};

static void walk_again(struct two *t, const struct route *route)
{
	walk_reset(&t->a);
	walk(&t->a, route, t->b.qp->qp_num);
}

/* The end that was not reset has the end of its stream unread when it posts. */
static void recall__the_other_end_talks_first(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	for (int i = 0; i < AGAIN; i++) {
		two_make(&t, f);
		two_walk(&t, &route);
		walk_again(&t, &route);
		walker_talk(&t.b, &t.a);
		walker_talk(&t.a, &t.b);
		two_destroy(&t);
	}
}

/* A bind needs no stream, and uses none. */
static void recall__behind_a_bind(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	uint64_t memory = 0;
	struct ibv_mr *mr = ibv_reg_mr(f->pd, &memory, sizeof(memory),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw[2] = { ibv_alloc_mw(f->pd, IBV_MW_TYPE_1),
				 ibv_alloc_mw(f->pd, IBV_MW_TYPE_1) };
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)&memory, sizeof(memory), IBV_ACCESS_REMOTE_READ },
	};
	struct two t;

	two_make(&t, f);
	two_walk(&t, &route);
	for (int i = 0; i < 2; i++) {
		struct walker *w = i ? &t.b : &t.a;

		assert_int_equal(ibv_bind_mw(w->qp, mw[i], &bind), 0);
		walker_sent(w, IBV_WC_SUCCESS);
	}
	walk_again(&t, &route);
	two_talk(&t);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	two_destroy(&t);
}

/* Tries to post while the queue is full, as a program that spins does. True once a WR has completed. */
static bool spin(struct walker *w)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, 1, w->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(w->qp, &wr, &bad), ENOMEM);
	if (ibv_poll_cq(w->send_cq, 1, &wc) == 0)
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return true;
}

struct late {
	struct two t;
	struct route route;
};

/* A failed assertion of this thread ends the program, which is a failure, too. */
static void *walk_late(void *arg)
{
	struct late *late = arg;
	struct walker *a = &late->t.a;

	walk_init(a);
	for (int i = 0; i < WR_MAX; i++)
		walker_recv(a, 1);
	walk_rtr(a, &late->route, late->t.b.qp->qp_num);
	walk_rts(a);
	return NULL;
}

static void recall__of_a_program_that_posts_all_the_time(void **state)
{
	struct fixture *f = *state;
	struct late late = { .route = route_loopback(f) };
	struct two *t = &late.t;
	time_t end;
	pthread_t thread;

	two_make(t, f);
	two_walk(t, &late.route);
	walk_reset(&t->a);
	for (int i = 0; i < WR_MAX; i++)
		walker_post(&t->b, IBV_WR_SEND, 1, NULL);
	assert_int_equal(pthread_create(&thread, NULL, walk_late, &late), 0);
	for (end = time(NULL) + WAIT_S; !spin(&t->b);)
		assert_true(time(NULL) < end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 1; i < WR_MAX; i++)
		walker_sent(&t->b, IBV_WC_SUCCESS);
	two_destroy(t);
}

/* What is posted in SQD waits for RTS, also longer than a post waits for its peer. */
static void sqd__posts_wait_without_a_peer(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	aw_bounds.post_wait_ms = POST_WAIT_MS;
	two_make(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_SQD), 0);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	poll(NULL, 0, 3 * POST_WAIT_MS); /* nothing may happen */
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_SQD);
	aw_bounds.post_wait_ms = AW_RC_POST_WAIT_MS;
	walk_init(&t.b);
	walker_recv(&t.b, 1);
	walk_rtr(&t.b, &route, t.a.qp->qp_num);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_RTS), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_received(&t.b, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* The connection to itself needs a file. */
static void self__without_a_file_at_first(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct rlimit files, none;
	struct walker w;

	walker_make(&w, f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){ 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	walk(&w, &route, w.qp->qp_num);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	walker_talk(&w, &w);
	walker_destroy(&w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(recall__the_other_end_talks_first),
		WITH(recall__behind_a_bind),
		WITH(recall__of_a_program_that_posts_all_the_time),
		WITH(sqd__posts_wait_without_a_peer),
		WITH(self__without_a_file_at_first),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
