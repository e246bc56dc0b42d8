// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UC QPs of the roce persona whose peer does not come, comes late, leaves, or is none of UC: their posts succeed all the same.
#include "walk.h"

#include "../lib/until.h"
#include "net/base/bounds.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	POST_WAIT_MS = 300,
	LONG_WAIT_MS = 30000, /* longer than a test waits for a completion */
};

static int setup(void **state)
{
	aw_bounds.post_wait_ms = POST_WAIT_MS;
	return fixture_setup(state);
}

/* For tests in which no post is dropped because the peer has not come, and none may wait for that. */
static int setup_patient(void **state)
{
	aw_bounds.post_wait_ms = LONG_WAIT_MS;
	return fixture_setup(state);
}

/* A number of a QP that there was. */
static uint32_t qpn_of_nobody(struct fixture *f)
{
	struct ibv_qp *qp = qp_make(f);
	uint32_t qpn = qp->qp_num;

	assert_int_equal(ibv_destroy_qp(qp), 0);
	return qpn;
}

static void sends_in_vain(struct walker *w, int count)
{
	for (int i = 0; i < count; i++) {
		walker_post(w, i % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, 16, w);
		walker_sent(w, IBV_WC_SUCCESS);
	}
	assert_int_equal(qp_state(w->qp), IBV_QPS_RTS);
}

static void peer_never_there__posts_succeed(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker w;

	walker_make_type(&w, f, IBV_QPT_UC, NULL);
	walk(&w, &route, qpn_of_nobody(f));
	walker_recv(&w, 1);
	sends_in_vain(&w, 5 * WR_MAX);
	walker_hears_nothing(&w);
	walker_destroy(&w);
}

static void peer_never_there__a_bad_lkey_is_found(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker w;

	walker_make_type(&w, f, IBV_QPT_UC, NULL);
	walk(&w, &route, qpn_of_nobody(f));
	w.mr->lkey ^= 0x55;
	walker_post(&w, IBV_WR_SEND, 16, NULL);
	walker_sent(&w, IBV_WC_LOC_PROT_ERR);
	w.mr->lkey ^= 0x55;
	assert_int_equal(qp_state(w.qp), IBV_QPS_ERR);
	walker_destroy(&w);
}

/* What is posted before is lost; what is posted once the two are connected arrives. */
static void peer_late__later_messages_arrive(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make_uc(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	sends_in_vain(&t.a, WR_MAX);
	walk(&t.b, &route, t.a.qp->qp_num);
	walker_recv(&t.b, 5);
	repeat_until(ibv_poll_cq(t.b.recv_cq, 1, &(struct ibv_wc){ 0 }) == 1)
		sends_in_vain(&t.a, 1);
	assert_int_equal(qp_state(t.b.qp), IBV_QPS_RTS);
	two_destroy(&t);
}

static void peer_destroyed__posts_succeed(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	walker_recv(&t.a, 1);
	walker_destroy(&t.b);
	t.b.memory = t.a.memory;
	sends_in_vain(&t.a, 5 * WR_MAX);
	walker_hears_nothing(&t.a);
	walker_destroy(&t.a);
}

/* What it sent before is received, whenever its end is noticed. */
static void peer_destroyed__what_it_sent_is_received(void **state)
{
	struct two t;

	two_connect_uc(&t, *state);
	walker_recv(&t.a, 1);
	memset(t.b.memory, 5, 16);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	walker_destroy(&t.b);
	walker_received(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(t.a.memory[15], 5);
	walker_destroy(&t.a);
}

/* Nobody tells this end, which goes on: as soon as the peer is walked again the two talk. */
static void peer_reset__is_there_again(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_connect_uc(&t, f);
	for (int i = 0; i < 20; i++) {
		struct walker *first = i % 2 ? &t.a : &t.b, *second = i % 2 ? &t.b : &t.a;

		walk_reset(first);
		if (i % 4 > 1)
			sends_in_vain(second, 2);
		walk(first, &route, second->qp->qp_num);
		walker_talk(first, second);
		walker_talk(second, first);
	}
	two_destroy(&t);
}

/* What the library has written to the file so far. */
static bool has_said(FILE *file, const char *words)
{
	char text[8192];
	ssize_t len = pread(fileno(file), text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	return strstr(text, words) != NULL;
}

static void peer_of_another_type__is_told_of(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	const int kept = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char said[2][64];
	struct two t;

	assert_non_null(file);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	walker_make_type(&t.a, f, IBV_QPT_RC, NULL);
	walker_make_type(&t.b, f, IBV_QPT_UC, NULL);
	two_walk(&t, &route);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_sent(&t.a, IBV_WC_RETRY_EXC_ERR);
	sends_in_vain(&t.b, WR_MAX);
	walker_hears_nothing(&t.b);
	snprintf(said[0], sizeof(said[0]), "qp 0x%x is rc, and its peer qp 0x%x", t.a.qp->qp_num,
		 t.b.qp->qp_num);
	snprintf(said[1], sizeof(said[1]), "qp 0x%x is uc, and its peer qp 0x%x", t.b.qp->qp_num,
		 t.a.qp->qp_num);
	until(has_said(file, said[0]) && has_said(file, said[1]));
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	fclose(file);
	two_destroy(&t);
}

/* SQD holds what is posted, whether the peer is there or not. */
static void sqd__halts_the_send_queue(void **state)
{
	struct ibv_wc wc;
	struct two t;

	two_connect_uc(&t, *state);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_SQD), 0);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_talk(&t.b, &t.a);
	assert_int_equal(ibv_poll_cq(t.a.send_cq, 1, &wc), 0);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_RTS), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_received(&t.b, IBV_WC_SUCCESS);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_SQD), 0);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_destroy(&t.b);
	assert_int_equal(ibv_poll_cq(t.a.send_cq, 1, &wc), 0);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_RTS), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_destroy(&t.a);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)
#define PATIENT(test) cmocka_unit_test_setup_teardown(test, setup_patient, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(peer_never_there__posts_succeed),
		WITH(peer_never_there__a_bad_lkey_is_found),
		WITH(peer_late__later_messages_arrive),
		PATIENT(peer_destroyed__posts_succeed),
		PATIENT(peer_destroyed__what_it_sent_is_received),
		PATIENT(peer_reset__is_there_again),
		WITH(peer_of_another_type__is_told_of),
		PATIENT(sqd__halts_the_send_queue),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
