// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP that finds no memory for a batch or a stage goes on by itself once there is some.
#include <stdbool.h>
#include <stdlib.h>

static _Atomic bool no_memory;

static void *pool_malloc(size_t n)
{
	return no_memory ? NULL : malloc(n);
}

/* The pool itself, over that. */
#define malloc pool_malloc
#include "net/pool.c"
#undef malloc

#include "../lib/uqp_pair.h"
#include "net/engine.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void run_out(void)
{
	no_memory = true;
	aw_pool_flush();
}

static void await_octet(const uint8_t *octet, uint8_t value)
{
	uint64_t start = aw_now_ns();

	while (octet_at(octet) != value) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static void post__without_a_batch(void **state)
{
	struct pair *p = *state;

	p->a.buf[0] = 1;
	run_out();
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	no_memory = false;
	await_octet(p->b.buf, 1);
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
}

static void receive__without_a_stage(void **state)
{
	struct pair *p = *state;

	p->a.buf[0] = 1;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	await_octet(p->b.buf, 1);
	p->a.buf[0] = 2;
	run_out();
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	no_memory = false;
	await_octet(p->b.buf, 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(post__without_a_batch),
		CASE(receive__without_a_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
