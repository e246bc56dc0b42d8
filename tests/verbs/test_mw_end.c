// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the binding of a memory window ends: rebound, invalidated by either end, deallocated, with its
// QP; and what that means for the MR.
#include "window.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/limit.h"

enum {
	REBINDS = 30
};

static void post_send__local_inv_then_bound_anew(void **state)
{
	struct pair p;
	struct ibv_mw *mw;
	uint32_t rkey;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	rkey = mw->rkey;
	side_post(&p.b, IBV_WR_LOCAL_INV, rkey, 0, 0);
	wc = wc_wait(p.b.send_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_LOCAL_INV);
	assert_int_equal(window_bind_type2(&p.b, mw, ibv_inc_rkey(rkey), window_info(&p.b, LEN)),
			 0);
	window_expect_bound(&p.b);
	window_expect_works(&p, ibv_inc_rkey(rkey));
	assert_int_equal(window_read(&p, rkey, AT, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&p);
}

/* What is no window of type 2 of the QP's: the specification has one error for that and a refused bind. */
static void post_send__local_inv_refused(void **state)
{
	struct pair p, other;
	struct ibv_mw *mw;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	pair_make(&other, *state, NULL);
	side_post(&other.b, IBV_WR_LOCAL_INV, mw->rkey, 0, 0);
	assert_int_equal(wc_wait(other.b.send_cq).status, IBV_WC_MW_BIND_ERR);
	window_expect_works(&p, mw->rkey);
	side_post(&p.b, IBV_WR_LOCAL_INV, mw->rkey ^ 1, 0, 0);
	assert_int_equal(wc_wait(p.b.send_cq).status, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_destroy(&other);
	pair_destroy(&p);
}

/* The peer gives it back with its answer. */
static void post_send__send_with_inv_ends_that_window_only(void **state)
{
	struct pair p;
	struct ibv_mw *mw, *other;
	struct ibv_wc wc;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	other = window_make(&p, IBV_MW_TYPE_2);
	side_recv(&p.b, 7, 0, 100);
	side_post(&p.a, IBV_WR_SEND_WITH_INV, mw->rkey, 0, 1);
	wc = wc_wait(p.b.recv_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, mw->rkey);
	assert_int_equal(wc_wait(p.a.send_cq).status, IBV_WC_SUCCESS);
	window_expect_works(&p, other->rkey);
	assert_int_equal(window_read(&p, mw->rkey, AT, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(other), 0);
	pair_destroy(&p);
}

/* What the peer has no business to invalidate stays, and ends the peer's own connection. */
static void expect_inv_refused(struct pair *p, uint32_t rkey)
{
	side_recv(&p->b, 7, 0, 100);
	side_post(&p->a, IBV_WR_SEND_WITH_INV, rkey, 0, 1);
	assert_int_equal(wc_wait(p->b.recv_cq).status, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(qp_state(p->b.qp), IBV_QPS_ERR);
}

static void post_send__send_with_inv_of_what_is_not_its_own(void **state)
{
	struct pair p, other;
	struct ibv_mw *mw, *type1;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	type1 = window_make(&p, IBV_MW_TYPE_1);
	pair_make(&other, *state, NULL);
	expect_inv_refused(&other, mw->rkey);
	pair_destroy(&other);
	pair_make(&other, *state, NULL);
	expect_inv_refused(&other, type1->rkey);
	pair_destroy(&other);
	window_expect_works(&p, mw->rkey);
	window_expect_works(&p, type1->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(type1), 0);
	pair_destroy(&p);
}

static void dealloc_mw__unbinds(void **state)
{
	enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw;
		struct pair p;
		uint32_t rkey;

		pair_make(&p, *state, NULL);
		mw = window_make(&p, types[i]);
		rkey = mw->rkey;
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(window_read(&p, rkey, AT, 1), IBV_WC_REM_ACCESS_ERR);
		pair_destroy(&p);
	}
}

static void test_busy(struct pair *p, struct ibv_mw *mw)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	assert_int_equal(ibv_dereg_mr(p->b.mr), EBUSY);
	assert_int_equal(ibv_rereg_mr(p->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EBUSY);
	window_expect_works(p, mw->rkey);
	assert_int_equal(window_read(p, p->b.mr->rkey, AT, LEN), IBV_WC_SUCCESS);
}

static void dereg_mr__busy_while_a_window_is_bound(void **state)
{
	window_each_type(state, test_busy);
}

/* Each way in which a binding of type 2 ends gives the MR free. */
static void dereg_mr__free_behind_each_end(void **state)
{
	struct pair p;
	struct ibv_mw *mw;

	for (int i = 0; i < 3; i++) {
		pair_make(&p, *state, NULL);
		mw = window_make(&p, IBV_MW_TYPE_2);
		if (i == 0) {
			side_post(&p.b, IBV_WR_LOCAL_INV, mw->rkey, 0, 0);
			assert_int_equal(wc_wait(p.b.send_cq).status, IBV_WC_SUCCESS);
		} else if (i == 1) {
			assert_int_equal(qp_move(p.b.qp, IBV_QPS_RESET), 0);
		} else {
			assert_int_equal(ibv_destroy_qp(p.b.qp), 0);
			p.b.qp = qp_make(*state); /* for pair_destroy */
		}
		assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
		p.b.mr = NULL;
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		pair_destroy(&p);
	}
}

static void dealloc_pd__busy_while_a_window_lives(void **state)
{
	struct fixture *f = *state;
	struct ibv_pd *pd = ibv_alloc_pd(f->context);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);

	assert_ptr_equal(mw->pd, pd);
	assert_ptr_equal(mw->context, f->context);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

struct writer {
	struct pair *p;
	uint32_t rkey;
	_Atomic uint32_t done;
};

/* Writes all of the window until it cannot. */
static void *write_often(void *arg)
{
	struct writer *w = arg;
	enum ibv_wc_status status;

	do {
		side_post(&w->p->a, IBV_WR_RDMA_WRITE, w->rkey, (uintptr_t)w->p->b.memory + AT,
			  LEN);
		status = wc_wait(w->p->a.send_cq).status;
		w->done++;
	} while (status == IBV_WC_SUCCESS);
	return NULL;
}

static void expect_octets(const uint8_t *octets, size_t len, uint8_t octet)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(octets[i], octet);
}

/* Another QP binds the window elsewhere under the writer; behind that the memory is b's alone. */
static void bind_mw__elsewhere_under_writes(void **state)
{
	for (int i = 0; i < REBINDS; i++) {
		struct pair p, other;
		struct ibv_mw *mw;
		struct writer w;
		pthread_t thread;

		pair_make(&p, *state, NULL);
		pair_make(&other, *state, NULL);
		mw = window_make(&p, IBV_MW_TYPE_1);
		memset(p.a.memory, 0x77, LEN);
		w = (struct writer){ .p = &p, .rkey = mw->rkey };
		pthread_create(&thread, NULL, write_often, &w);
		while (w.done < 20)
			;
		assert_int_equal(window_bind_type1(&other.b, mw, window_info(&other.b, LEN)), 0);
		window_expect_bound(&other.b);
		memset(p.b.memory + AT, i, LEN);
		expect_octets(p.b.memory + AT, LEN, (uint8_t)i);
		pthread_join(thread, NULL);
		expect_octets(p.b.memory + AT, LEN, (uint8_t)i);
		expect_octets(p.b.memory, AT, 0);
		expect_octets(p.b.memory + AT + LEN, AT, 0);
		expect_octets(other.b.memory + AT, LEN, 0);
		window_expect_works(&other, mw->rkey);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		pair_destroy(&p);
		pair_destroy(&other);
	}
}

/* The peer's Send with Invalidate and ibv_dealloc_mw at once: either is first, the MR is free. */
static void dealloc_mw__while_the_peer_invalidates(void **state)
{
	for (int i = 0; i < REBINDS; i++) {
		enum ibv_wc_status status;
		struct ibv_mw *mw;
		struct pair p;

		pair_make(&p, *state, NULL);
		mw = window_make(&p, IBV_MW_TYPE_2);
		side_recv(&p.b, 7, 0, 100);
		side_post(&p.a, IBV_WR_SEND_WITH_INV, mw->rkey, 0, 1);
		/* The progress thread receives meanwhile. */
		for (int k = 0; k < i; k++)
			sched_yield();
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_dereg_mr(p.b.mr), 0);
		p.b.mr = NULL;
		status = wc_wait(p.b.recv_cq).status;
		assert_true(status == IBV_WC_SUCCESS || status == IBV_WC_REM_INV_REQ_ERR ||
			    status == IBV_WC_LOC_PROT_ERR);
		pair_destroy(&p);
	}
}

/* In the child all goes that was the parent's, without waiting; the parent's window stays. */
static void fork__child_takes_its_copies_down(void **state)
{
	struct ibv_mw *mw, *type1;
	struct pair p;
	int status;
	pid_t pid;

	pair_make(&p, *state, NULL);
	mw = window_make(&p, IBV_MW_TYPE_2);
	type1 = window_make(&p, IBV_MW_TYPE_1);
	pid = fork();
	if (!pid) {
		alarm(limit_s(30));
		_exit(ibv_destroy_qp(p.b.qp) || ibv_dealloc_mw(type1) || ibv_dereg_mr(p.b.mr) ||
		      ibv_dealloc_mw(mw));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	window_expect_works(&p, mw->rkey);
	window_expect_works(&p, type1->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(type1), 0);
	pair_destroy(&p);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(post_send__local_inv_then_bound_anew),
		WITH(post_send__local_inv_refused),
		WITH(post_send__send_with_inv_ends_that_window_only),
		WITH(post_send__send_with_inv_of_what_is_not_its_own),
		WITH(dealloc_mw__unbinds),
		WITH(dereg_mr__busy_while_a_window_is_bound),
		WITH(dereg_mr__free_behind_each_end),
		WITH(dealloc_pd__busy_while_a_window_lives),
		WITH(bind_mw__elsewhere_under_writes),
		WITH(dealloc_mw__while_the_peer_invalidates),
		WITH(fork__child_takes_its_copies_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
