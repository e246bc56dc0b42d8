// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The completion ring by itself: order, bounds, resize, overflow, arming, time stamps.
#include "net/cq/cq.h"

#include "base/clock.h"
#include "net/qp/cq_poll.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define RACES 20000
#define STEPS 200
#define SPINS 1000 /* for another thread that runs now; one that does not gets the CPU */

static struct aw_cq_user qp1, qp2;

/* The clocks that the ring asks for. */
static unsigned int clock_calls;
static clockid_t clock_asked;

int64_t __real_aw_now_ns(void);
int64_t __wrap_aw_now_ns(void);
int64_t __wrap_aw_clock_ns(clockid_t clock);

int64_t __wrap_aw_now_ns(void)
{
	clock_calls++;
	return __real_aw_now_ns();
}

int64_t __wrap_aw_clock_ns(clockid_t clock)
{
	clock_asked = clock;
	return 1000 + clock_calls++;
}

static void push(struct aw_cq *cq, struct aw_cq_user *qp, uint64_t wr_id, uint32_t flags)
{
	aw_cq_push(cq, &(struct aw_cqe){ .wr_id = wr_id, .flags = flags },
		   &(struct aw_cq_from){ .user = qp, .queue = AW_SQ });
}

static void poll__keeps_order_over_the_wrap(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[3];

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 3, NULL, NULL), 0);
	for (uint64_t i = 0; i < 20; i += 2) {
		push(&cq, &qp1, i, 0);
		push(&cq, &qp1, i + 1, 0);
		assert_int_equal(qp1.unpolled, 2);
		assert_int_equal(aw_cq_poll(&cq, out, 3), 2);
		assert_int_equal(out[0].cqe.wr_id, i);
		assert_int_equal(out[1].cqe.wr_id, i + 1);
		assert_int_equal(qp1.unpolled, 0);
	}
	aw_cq_fini(&cq);
}

static void push__at_the_bound_fits_one_past_overflows(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[4];

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 2, NULL, NULL), 0);
	push(&cq, &qp1, 1, 0);
	push(&cq, &qp1, 2, 0);
	assert_false(cq.overflowed);
	push(&cq, &qp1, 3, 0);
	assert_true(cq.overflowed);
	assert_int_equal(aw_cq_poll(&cq, out, 4), 2);
	assert_int_equal(aw_cq_poll(&cq, out, 4), -EIO);
	aw_cq_fini(&cq);
}

static void init__refuses_none_and_too_many(void **state)
{
	struct aw_cq cq;

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 0, NULL, NULL), EINVAL);
	assert_int_equal(aw_cq_init(&cq, AW_CQE_MAX + 1, NULL, NULL), EINVAL);
	assert_int_equal(aw_cq_init(&cq, AW_CQE_MAX, NULL, NULL), 0);
	aw_cq_fini(&cq);
}

static void resize__keeps_what_waits(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[8];

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 3, NULL, NULL), 0);
	push(&cq, &qp1, 0, 0);
	assert_int_equal(aw_cq_poll(&cq, out, 1), 1);
	for (uint64_t i = 1; i <= 3; i++)
		push(&cq, &qp1, i, 0);
	assert_int_equal(aw_cq_resize(&cq, 2), EINVAL);
	assert_int_equal(aw_cq_resize(&cq, 4), 0);
	push(&cq, &qp1, 4, 0);
	assert_int_equal(aw_cq_poll(&cq, out, 8), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(out[i].cqe.wr_id, i + 1);
	aw_cq_fini(&cq);
}

static void forget__takes_only_its_own(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[8];

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 8, NULL, NULL), 0);
	for (uint64_t i = 0; i < 6; i++)
		push(&cq, i % 2 ? &qp1 : &qp2, i, 0);
	aw_cq_forget(&cq, &qp2);
	qp2.unpolled = 0;
	assert_int_equal(aw_cq_poll(&cq, out, 8), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(out[i].cqe.wr_id, 2 * i + 1);
	aw_cq_fini(&cq);
}

static void arm__raises_once_and_solicited_only_for_solicited(void **state)
{
	struct aw_channel ch;
	struct aw_cq cq;
	void *object;
	int kind;

	(void)state;
	assert_int_equal(aw_channel_init(&ch), 0);
	assert_int_equal(aw_cq_init(&cq, 16, &ch, &cq), 0);
	push(&cq, &qp1, 1, 0);
	aw_cq_arm(&cq, AW_ARM_SOLICITED);
	push(&cq, &qp1, 2, 0);
	assert_int_equal(cq.event.pending, 0);
	push(&cq, &qp1, 3, AW_WC_SOLICITED);
	push(&cq, &qp1, 4, AW_WC_SOLICITED);
	assert_int_equal(cq.event.pending, 1);
	assert_int_equal(aw_channel_read(&ch, &object, &kind), 0);
	assert_ptr_equal(object, &cq);
	aw_cq_arm(&cq, AW_ARM_NEXT);
	aw_cq_arm(&cq, AW_ARM_SOLICITED);
	push(&cq, &qp1, 5, 0);
	assert_int_equal(cq.event.pending, 1);
	assert_true(aw_channel_take(&ch, &object, &kind));
	aw_cq_fini(&cq);
	aw_channel_fini(&ch);
}

/* A CQ that is armed as a CQE comes: the CQE is found behind the arming, or raises the event. */
static struct {
	struct aw_cq cq;
	struct aw_channel ch;
	_Atomic uint32_t asked, pushed;
} race;

/* Without a call in between, as long as the two threads run at the same time: else they hardly ever meet. */
static void until_at_least(_Atomic uint32_t *value, uint32_t round)
{
	for (uint32_t spins = 1; *value < round; spins++)
		if (spins % SPINS == 0)
			sched_yield();
}

static void *push_when_asked(void *unused)
{
	(void)unused;
	for (uint32_t round = 1; round <= RACES; round++) {
		until_at_least(&race.asked, round);
		push(&race.cq, &qp1, round, 0);
		race.pushed = round;
	}
	return NULL;
}

static void arm__beside_a_push_loses_no_cqe(void **state)
{
	struct aw_cq_entry out[2];
	pthread_t pusher;
	void *object;
	int kind;

	(void)state;
	assert_int_equal(aw_channel_init(&race.ch), 0);
	assert_int_equal(aw_cq_init(&race.cq, 16, &race.ch, &race.cq), 0);
	assert_int_equal(pthread_create(&pusher, NULL, push_when_asked, NULL), 0);
	for (uint32_t round = 1; round <= RACES; round++) {
		race.asked = round;
		/* Each round arms a little later than the one before, until one of them meets the push. */
		for (volatile uint32_t i = 0; i < round % STEPS; i++)
			;
		aw_cq_set_arm(&race.cq, AW_ARM_NEXT);
		int found = aw_cq_take(&race.cq, out, 2);

		until_at_least(&race.pushed, round);
		bool raised = aw_channel_take(&race.ch, &object, &kind);

		assert_true(found == 1 || raised);
		assert_int_equal(found + aw_cq_take(&race.cq, out, 2), 1);
		/* Whichever came first, the next round begins without an arming. */
		assert_int_equal(aw_cq_wake(&race.cq), !raised);
		assert_int_equal(aw_channel_take(&race.ch, &object, &kind), !raised);
	}
	assert_int_equal(pthread_join(pusher, NULL), 0);
	aw_cq_fini(&race.cq);
	aw_channel_fini(&race.ch);
}

/* At the bound as over the wrap: the oldest CQE goes, and its send slot is free again. */
static void push__overwrites_the_oldest_where_that_was_asked_for(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[4];

	(void)state;
	qp1.unpolled = 0;
	for (uint32_t capacity = 1; capacity <= 3; capacity++) {
		assert_int_equal(aw_cq_init(&cq, capacity, NULL, NULL), 0);
		cq.overwrites = true;
		for (uint64_t i = 1; i <= 20; i++) {
			push(&cq, &qp1, i, 0);
			assert_int_equal(qp1.unpolled, i < capacity ? i : capacity);
		}
		assert_false(cq.overflowed);
		assert_int_equal(aw_cq_poll(&cq, out, 4), capacity);
		for (uint32_t i = 0; i < capacity; i++)
			assert_int_equal(out[i].cqe.wr_id, 20 - capacity + 1 + i);
		assert_int_equal(qp1.unpolled, 0);
		aw_cq_fini(&cq);
	}
}

static int take_of(struct aw_cq *cq, struct aw_cq_taker *taker, uint64_t first, int count)
{
	aw_lock(&cq->qps_lock);
	aw_cq_taker_begin(cq, taker);
	for (int i = 0; i < count; i++)
		push(cq, &qp1, first + (uint64_t)i, 0);
	int taken = aw_cq_taker_end(cq, taker);

	aw_unlock(&cq->qps_lock);
	return taken;
}

static void taker__gets_what_comes_while_the_ring_is_empty(void **state)
{
	struct aw_cq cq, other;
	struct aw_cq_entry out[4];
	struct aw_cq_taker taker = { .out = out, .max = 2 };

	(void)state;
	qp1.unpolled = 0;
	assert_int_equal(aw_cq_init(&cq, 2, NULL, NULL), 0);
	assert_int_equal(aw_cq_init(&other, 2, NULL, NULL), 0);
	assert_int_equal(take_of(&cq, &taker, 1, 4), 2);
	assert_int_equal(out[0].cqe.wr_id, 1);
	assert_int_equal(out[1].cqe.wr_id, 2);
	assert_ptr_equal(out[1].user, &qp1);
	assert_int_equal(qp1.unpolled, 2);
	/* Two are in the ring: nothing gets ahead of them, and the next is one too many. */
	assert_int_equal(take_of(&cq, &taker, 5, 0), 0);
	assert_int_equal(aw_cq_take(&cq, out, 1), 1);
	assert_int_equal(out[0].cqe.wr_id, 3);
	assert_int_equal(take_of(&cq, &taker, 5, 1), 0);
	assert_int_equal(aw_cq_take(&cq, out, 4), 2);
	assert_int_equal(out[0].cqe.wr_id, 4);
	assert_int_equal(out[1].cqe.wr_id, 5);
	assert_false(cq.overflowed);
	/* What another CQ gets, and what comes behind the end, is in the rings. */
	aw_lock(&cq.qps_lock);
	aw_cq_taker_begin(&cq, &taker);
	push(&other, &qp1, 6, 0);
	assert_int_equal(aw_cq_taker_end(&cq, &taker), 0);
	aw_unlock(&cq.qps_lock);
	push(&cq, &qp1, 7, 0);
	assert_int_equal(other.ready, 1);
	assert_int_equal(cq.ready, 1);
	aw_cq_fini(&other);
	aw_cq_fini(&cq);
}

/* The event of an armed CQ is raised, and the time of a stamped one is read, where its ring is written. */
static void taker__leaves_what_is_an_event_or_has_a_time(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[2];
	struct aw_cq_taker taker = { .out = out, .max = 2 };

	(void)state;
	assert_int_equal(aw_cq_init(&cq, 4, NULL, NULL), 0);
	aw_cq_set_arm(&cq, AW_ARM_SOLICITED);
	assert_int_equal(take_of(&cq, &taker, 1, 1), 0);
	assert_int_equal(aw_cq_take(&cq, out, 2), 1);
	cq.armed = AW_ARM_NONE;
	assert_int_equal(take_of(&cq, &taker, 2, 1), 1);
	cq.stamped = true;
	assert_int_equal(take_of(&cq, &taker, 3, 1), 0);
	assert_int_equal(aw_cq_take(&cq, out, 2), 1);
	aw_cq_fini(&cq);
}

static void stamp__only_where_it_was_asked_for(void **state)
{
	struct aw_cq cq;
	struct aw_cq_entry out[4];

	(void)state;
	qp1.unpolled = 0;
	assert_int_equal(aw_cq_init(&cq, 2, NULL, NULL), 0);
	clock_calls = 0;
	push(&cq, &qp1, 1, 0);
	assert_int_equal(aw_cq_take(&cq, out, 4), 1);
	assert_int_equal(clock_calls, 0);
	cq.stamped = true;
	cq.stamp_clock = CLOCK_MONOTONIC_RAW;
	push(&cq, &qp1, 2, 0);
	push(&cq, &qp1, 3, 0);
	assert_int_equal(clock_asked, CLOCK_MONOTONIC_RAW);
	assert_int_equal(clock_calls, 2);
	assert_int_equal(aw_cq_resize(&cq, 4), 0);
	assert_int_equal(aw_cq_take(&cq, out, 4), 2);
	assert_int_equal(clock_calls, 2);
	assert_int_equal(out[0].stamp_ns, 1000);
	assert_int_equal(out[1].stamp_ns, 1001);
	aw_cq_fini(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poll__keeps_order_over_the_wrap),
		cmocka_unit_test(push__at_the_bound_fits_one_past_overflows),
		cmocka_unit_test(init__refuses_none_and_too_many),
		cmocka_unit_test(resize__keeps_what_waits),
		cmocka_unit_test(forget__takes_only_its_own),
		cmocka_unit_test(arm__raises_once_and_solicited_only_for_solicited),
		cmocka_unit_test(arm__beside_a_push_loses_no_cqe),
		cmocka_unit_test(push__overwrites_the_oldest_where_that_was_asked_for),
		cmocka_unit_test(stamp__only_where_it_was_asked_for),
		cmocka_unit_test(taker__gets_what_comes_while_the_ring_is_empty),
		cmocka_unit_test(taker__leaves_what_is_an_event_or_has_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
