// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polls of a stream in memory that is steady: they do nothing while nothing happens, and miss nothing that does. The progress
// thread is stopped, so that what is found the polls have found.
#include "../lib/host_scene.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"

#define LEN 100

static int poll_once(struct scene *s)
{
	struct aw_cq_entry entry;

	return aw_cq_poll(&s->e.cq, &entry, 1);
}

static void pass_message(struct scene *s)
{
	post_recv(s, LEN);
	put_quietly(s, LEN, SIZE_MAX);
	assert_int_equal(poll_once(s), 1);
}

static void become_steady(struct scene *s)
{
	struct aw_uqp *qp;

	join(s);
	pair_stop_progress();
	qp = s->e.qp;
	aw_lock(&qp->lock);
	uqp_leave_to_pollers(qp);
	aw_unlock(&qp->lock);
	for (int i = 0; i < 3; i++)
		pass_message(s);
	assert_true(qp->settled);
	assert_int_equal(poll_once(s), 0);
	assert_true(qp->settled);
}

static void poll_steady__the_peers_end(void **state)
{
	struct scene *s = *state;

	become_steady(s);
	aw_duplex_close(&s->ring->duplex);
	assert_int_equal(poll_once(s), 0);
	end_wait_event(&s->e, AW_UQP_CLOSED);
	pair_start_progress();
	part(s);
}

static void poll_steady__a_tail_that_cannot_be(void **state)
{
	struct scene *s = *state;

	become_steady(s);
	atomic_store(&s->ring->duplex.own->tail, UINT64_MAX / 2);
	assert_int_equal(poll_once(s), 0);
	assert_int_equal(aw_uqp_state(s->e.qp), AW_QP_ERROR);
	pair_start_progress();
	part(s);
}

/* The time of a message that waits for its receive runs from the poll that found it. */
static void poll_steady__a_message_without_a_receive(void **state)
{
	struct scene *s = *state;

	become_steady(s);
	put_quietly(s, LEN, SIZE_MAX);
	assert_int_equal(poll_once(s), 0);
	assert_true(s->e.qp->retry_due);
	assert_false(s->e.qp->settled);
	post_recv(s, LEN);
	assert_int_equal(poll_once(s), 1);
	pass_message(s);
	pair_start_progress();
	part(s);
}

/* What did not fit goes out by the polls as the peer reads. */
static void poll_steady__a_full_ring(void **state)
{
	struct aw_duplex *d;
	struct scene *s = *state;
	uint64_t total = 0;

	become_steady(s);
	d = &s->ring->duplex;
	end_post(&s->e, AW_OP_WRITE, &s->e, BUF_OCTETS);
	assert_true(end_is_full(&s->e));
	for (int i = 0; i < 100 && total < BUF_OCTETS; i++) {
		size_t ready = aw_duplex_ready(d);

		total += ready;
		aw_duplex_consume(d, ready);
		(void)poll_once(s);
	}
	assert_true(total > BUF_OCTETS);
	assert_false(end_is_full(&s->e));
	pass_message(s);
	pair_start_progress();
	part(s);
}

/* This end sleeps: its posts ask nothing again, each bell is heard, and behind each the peer has to ring again. */
static void poll_steady__an_end_that_sleeps(void **state)
{
	struct scene *s = *state;
	struct aw_cq_entry entry;
	struct aw_uqp *qp;

	join(s);
	pair_stop_progress();
	qp = s->e.qp;
	aw_uqp_on_wake(qp->handle);
	for (int i = 0; i < 3; i++) {
		post_recv(s, LEN);
		put_quietly(s, LEN, SIZE_MAX);
		assert_true(aw_duplex_wakes_reader(&s->ring->duplex));
		ring_bell(s);
		aw_uqp_on_wake(qp->handle);
		assert_int_equal(aw_cq_take(&s->e.cq, &entry, 1), 1);
		assert_true(atomic_load(&s->ring->duplex.peer->asleep));
		end_post(&s->e, AW_OP_WRITE, &s->e, LEN);
		assert_int_equal(qp->serving.server, AW_SERVER_PROGRESS);
		assert_true(qp->settled);
		assert_int_equal(aw_cq_take(&s->e.cq, &entry, 1), 1);
	}
	pair_start_progress();
	part(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(poll_steady__the_peers_end, setup, teardown),
		cmocka_unit_test_setup_teardown(poll_steady__a_tail_that_cannot_be, setup,
						teardown),
		cmocka_unit_test_setup_teardown(poll_steady__a_message_without_a_receive, setup,
						teardown),
		cmocka_unit_test_setup_teardown(poll_steady__a_full_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(poll_steady__an_end_that_sleeps, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
