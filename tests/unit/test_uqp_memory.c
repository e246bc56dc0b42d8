// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP that finds no memory for a batch or a stage waits for it without spinning, and goes on by
// itself once there is some. A stream does not begin where there is none, and may end.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Requests of up to so many octets find nothing. */
static _Atomic size_t failing_max;
static _Atomic unsigned int attempts; /* that failed */

static void *pool_malloc(size_t n)
{
	if (n > failing_max)
		return malloc(n);
	attempts++;
	return NULL;
}

/* The pool itself, over that. */
#define malloc pool_malloc
#include "base/clock.h"
#include "net/mem/pool.c"
#undef malloc

#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/progress/watch.h"
#include "net/qp/uqp_sock.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Half of what net/ waits, for what a timer may be early. */
#define RETRY_NS_MIN 5000000ull
#define ATTEMPTS_A_TURN 2 /* at the most: one for a stage, one for a batch */

static void run_out(size_t octets_max)
{
	failing_max = octets_max;
	aw_pool_flush();
}

static void await_octet(const uint8_t *octet, uint8_t value)
{
	until(octet_at(octet) == value);
}

/* Until the progress thread has tried again so many times, or more. */
static void await_turns(unsigned int turns)
{
	uint64_t start = aw_now_ns();

	for (unsigned int first = attempts; attempts - first < turns * ATTEMPTS_A_TURN;) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
	/* A spin would make thousands of them; a loaded machine makes fewer, never more. */
	assert_true(aw_now_ns() - start > (turns - 1) * RETRY_NS_MIN);
}

static void post__without_a_batch(void **state)
{
	struct pair *p = *state;

	p->a.buf[0] = 1;
	run_out(SIZE_MAX);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	await_turns(4);
	failing_max = 0;
	await_octet(p->b.buf, 1);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
}

/* a has a batch; b finds no stage. */
static void receive__without_a_stage(void **state)
{
	struct pair *p = *state;

	p->a.buf[0] = 1;
	run_out(sizeof(struct aw_batch) - 1);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	await_turns(4);
	failing_max = 0;
	await_octet(p->b.buf, 1);
}

/* 0: it is due. Read without the timers' lock, which nothing outside has. */
__attribute__((no_sanitize_thread)) static uint64_t next_try(struct aw_uqp *qp)
{
	return ((struct aw_watch *)qp->watch)->deadline_ns;
}

/* A program that posts and does not poll must not put the next try off. */
static void receive__while_the_program_posts(void **state)
{
	struct pair *p = *state;
	uint64_t before, after;

	p->a.buf[0] = 1;
	run_out(sizeof(struct aw_batch) - 1);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	await_turns(2);
	for (int i = 0; i < 1000; i++) {
		aw_uqp_send_begin(p->b.qp);
		before = next_try(p->b.qp);
		aw_uqp_push(p->b.qp);
		after = next_try(p->b.qp);
		aw_uqp_send_end(p->b.qp);
		assert_true(after == before || after == 0);
	}
	failing_max = 0;
	await_octet(p->b.buf, 1);
}

/* Nobody waits for memory to say farewell. */
static void close__without_memory(void **state)
{
	struct pair *p = *state;

	run_out(SIZE_MAX);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	aw_uqp_close(p->a.qp);
	end_wait_event(&p->a, AW_UQP_CLOSED);
	failing_max = 0;
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_WR_FLUSH_ERR);
}

static void attach__without_memory(void **state)
{
	struct aw_stream stream = { .initiator = true };
	struct pair *p = *state;
	struct end late;

	end_make(&late, &p->pd, NULL);
	run_out(SIZE_MAX);
	assert_int_equal(aw_uqp_attach(late.qp, -1, &stream), ENOMEM);
	failing_max = 0;
	assert_int_equal(aw_uqp_state(late.qp), AW_QP_IDLE);
	end_destroy(&late);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(post__without_a_batch),
		CASE(receive__without_a_stage),
		CASE(receive__while_the_program_posts),
		CASE(close__without_memory),
		CASE(attach__without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
