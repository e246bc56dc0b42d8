// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream over TCP that has settled (net/qp/uqp_sock.c): what is not asked again for each message is noticed all the same
// when it happens. The progress thread is stopped, so that only the test's own turns notice it.
#include "net/stat/stat.h"

#include "../lib/uqp_pair.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"
#include "net/stat/stat_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LEN 100
#define TURNS_MAX 1000000

static struct aw_stat_qp look(const struct end *e)
{
	struct aw_stat_qp row = { .kind = AW_STAT_NONE };
	struct aw_stat_copy copy;

	assert_int_equal(aw_stat_read(getpid(), &copy), AW_STAT_READ);
	for (uint32_t i = 0; i < copy.count; i++)
		if (copy.rows[i].any.kind == AW_STAT_QP && copy.rows[i].any.number == e->qp->qpn)
			row = copy.rows[i].qp;
	free(copy.rows);
	assert_int_equal(row.kind, AW_STAT_QP);
	return row;
}

static void turn(struct end *e)
{
	aw_uqp_on_wake(e->qp->handle);
}

static void post_recv(struct end *e)
{
	struct aw_sge sge = end_sge(e, 0, BUF_OCTETS);

	assert_int_equal(aw_uqp_recv(e->qp, 9, &sge, 1), 0);
}

static void take_cqe(struct pair *p, struct end *e)
{
	struct aw_cq_entry entry;

	for (int i = 0; aw_cq_poll(&e->cq, &entry, 1) == 0; i++) {
		assert_true(i < TURNS_MAX);
		turn(&p->a);
		turn(&p->b);
	}
	assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
}

static void pass_message(struct pair *p, struct end *from, struct end *to)
{
	post_recv(to);
	end_post(from, AW_OP_SEND, to, LEN);
	take_cqe(p, to);
	take_cqe(p, from);
}

static int setup(void **state)
{
	int err = pair_setup(state);
	struct pair *p = *state;

	if (err)
		return err;
	pair_stop_progress();
	for (int i = 0; i < 3; i++) {
		pass_message(p, &p->a, &p->b);
		pass_message(p, &p->b, &p->a);
	}
	turn(&p->a);
	turn(&p->b);
	assert_true(p->a.qp->settled && p->b.qp->settled);
	return 0;
}

static void settled__counts_go_on(void **state)
{
	struct pair *p = *state;
	struct aw_stat_qp before = look(&p->b), after;

	pass_message(p, &p->a, &p->b);
	after = look(&p->b);
	assert_true(p->b.qp->settled);
	assert_int_equal(after.count.in.messages - before.count.in.messages, 1);
	assert_int_equal(after.count.in.bytes - before.count.in.bytes, LEN);
	assert_int_equal(AW_STAT_QP_STATE(after.now), AW_QP_RTS);
	assert_int_equal(AW_STAT_QP_WAITS(after.now), 0);
}

static void settled__the_first_message_is_told(void **state)
{
	struct pair *p = *state;

	assert_true(p->a.events & AW_UQP_BEGUN);
	assert_true(p->b.events & AW_UQP_BEGUN);
}

static void settled__a_reset(void **state)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct pair *p = *state;

	assert_int_equal(connect(p->a.qp->fd, &none, sizeof(none)), 0);
	turn(&p->b);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_ERROR);
	assert_int_equal(p->b.qp->fd, -1);
	assert_true(p->b.events & AW_UQP_CLOSED);
	assert_int_equal(AW_STAT_QP_STATE(look(&p->b).now), AW_QP_ERROR);
}

static void settled__an_end(void **state)
{
	struct pair *p = *state;

	assert_int_equal(shutdown(p->a.qp->fd, SHUT_WR), 0);
	turn(&p->b);
	assert_false(p->b.qp->settled);
	assert_true(p->b.events & AW_UQP_CLOSED);
}

static void settled__a_message_without_a_receive(void **state)
{
	struct pair *p = *state;

	p->b.qp->core.rnr_holds = true;
	end_post(&p->a, AW_OP_SEND, &p->b, LEN);
	turn(&p->b);
	assert_false(p->b.qp->settled);
	assert_true(p->b.qp->retry_due);
	assert_true(AW_STAT_QP_WAITS(look(&p->b).now) & AW_STAT_WAITS_RECEIVE);
	post_recv(&p->b);
	take_cqe(p, &p->b);
	turn(&p->b);
	assert_int_equal(AW_STAT_QP_WAITS(look(&p->b).now), 0);
	assert_true(p->b.qp->settled);
}

/* What has no room waits for it in the epoll set and in the row, until the peer reads. */
static void settled__a_full_socket(void **state)
{
	struct pair *p = *state;
	int writes = 0;

	for (; !end_is_full(&p->a); writes++) {
		assert_true(writes < 60);
		end_post(&p->a, AW_OP_WRITE, &p->b, BUF_OCTETS);
	}
	assert_false(p->a.qp->settled);
	assert_true(p->a.qp->listens_for & EPOLLOUT);
	assert_true(AW_STAT_QP_WAITS(look(&p->a).now) & AW_STAT_WAITS_ROOM);
	for (; writes > 0; writes--)
		take_cqe(p, &p->a);
	turn(&p->a);
	assert_int_equal(p->a.qp->listens_for, EPOLLIN);
	assert_int_equal(AW_STAT_QP_WAITS(look(&p->a).now), 0);
	assert_true(p->a.qp->settled);
}

/* The queue that the program has halted is drained once the answer that was under way has come. */
static void settled__a_drain(void **state)
{
	struct pair *p = *state;

	end_post(&p->a, AW_OP_READ, &p->b, LEN);
	aw_uqp_halt(p->a.qp, true, true);
	assert_false(p->a.events & AW_UQP_DRAINED);
	take_cqe(p, &p->a);
	assert_true(p->a.events & AW_UQP_DRAINED);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, pair_teardown_stopped)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(settled__counts_go_on),
		CASE(settled__the_first_message_is_told),
		CASE(settled__a_reset),
		CASE(settled__an_end),
		CASE(settled__a_message_without_a_receive),
		CASE(settled__a_full_socket),
		CASE(settled__a_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
