// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The order in which TCP connects to one peer.
#include "core/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum {
	FIRST,
	SECOND,
	THIRD,
	ELSEWHERE,
	COUNT
};

static struct aw_turn turn[COUNT];
static struct aw_turns turns;
static int woken[COUNT], woken_count; /* indexes, in their order */

static bool is_same_peer(const struct aw_turn *a, const struct aw_turn *b)
{
	return (a == &turn[ELSEWHERE]) == (b == &turn[ELSEWHERE]);
}

static void wake(struct aw_turn *t)
{
	assert_true(t->leads && !t->waits);
	woken[woken_count++] = (int)(t - turn);
}

static int begin(void **state)
{
	(void)state;
	memset(turn, 0, sizeof(turn));
	turns = (struct aw_turns){ .is_same_peer = is_same_peer, .wake = wake };
	woken_count = 0;
	return 0;
}

static void assert_no_list(void)
{
	for (unsigned int i = 0; i < AW_TURN_LISTS; i++)
		assert_null(turns.lists[i].first);
}

/* SECOND and THIRD wait for FIRST. */
static void two_wait(void)
{
	aw_turn_lead(&turns, &turn[FIRST]);
	assert_true(aw_turn_wait(&turns, &turn[SECOND]));
	assert_true(aw_turn_wait(&turns, &turn[THIRD]));
}

static void turn_lead__alone(void **state)
{
	(void)state;
	assert_false(aw_turn_is_led(&turns, &turn[FIRST]));
	aw_turn_lead(&turns, &turn[FIRST]);
	assert_true(aw_turn_is_led(&turns, &turn[SECOND]));
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_false(aw_turn_is_led(&turns, &turn[SECOND]));
	assert_int_equal(woken_count, 0);
	assert_no_list();
}

static void turn_pass__wakes_in_order(void **state)
{
	(void)state;
	two_wait();
	assert_int_equal(woken_count, 0);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 2);
	assert_int_equal(woken[0], SECOND);
	assert_int_equal(woken[1], THIRD);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 2);
}

/* Woken, they have not connected yet: one that is begun now must not overtake them. */
static void turn_wait__for_those_that_waited(void **state)
{
	(void)state;
	aw_turn_lead(&turns, &turn[FIRST]);
	assert_true(aw_turn_wait(&turns, &turn[SECOND]));
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 1);
	assert_true(aw_turn_wait(&turns, &turn[THIRD]));
	aw_turn_lead(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 1);
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 2);
	assert_int_equal(woken[1], THIRD);
	aw_turn_pass(&turns, &turn[THIRD]);
	assert_no_list();
}

/* It connects before its turn. */
static void turn_lead__one_that_waits(void **state)
{
	(void)state;
	aw_turn_lead(&turns, &turn[FIRST]);
	assert_true(aw_turn_wait(&turns, &turn[SECOND]));
	aw_turn_lead(&turns, &turn[SECOND]);
	assert_true(aw_turn_wait(&turns, &turn[THIRD]));
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 0);
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 1);
	assert_int_equal(woken[0], THIRD);
}

/* Each is woken when TCP has been asked to connect the one before. */
static void turn_sent__one_by_one(void **state)
{
	(void)state;
	turns.one_by_one = true;
	two_wait();
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 1);
	aw_turn_lead(&turns, &turn[SECOND]);
	aw_turn_sent(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 2);
	assert_int_equal(woken[1], THIRD);
	aw_turn_sent(&turns, &turn[THIRD]);
	aw_turn_pass(&turns, &turn[SECOND]);
	aw_turn_pass(&turns, &turn[THIRD]);
	assert_int_equal(woken_count, 2);
	assert_no_list();
}

/* One that was woken ends before TCP is asked. */
static void turn_pass__one_by_one(void **state)
{
	(void)state;
	turns.one_by_one = true;
	two_wait();
	aw_turn_pass(&turns, &turn[FIRST]);
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 2);
	assert_int_equal(woken[1], THIRD);
}

static void turn_pass__one_that_waits(void **state)
{
	(void)state;
	two_wait();
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 0);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 1);
	assert_int_equal(woken[0], THIRD);
}

static void turn_wait__the_leader_has_gone(void **state)
{
	(void)state;
	aw_turn_lead(&turns, &turn[FIRST]);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_false(aw_turn_wait(&turns, &turn[SECOND]));
	assert_true(aw_turn_wait(&turns, &turn[THIRD]));
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 1);
	assert_int_equal(woken[0], THIRD);
}

/* Two threads may find at the same time that none leads. */
static void turn_pass__of_two_leaders(void **state)
{
	(void)state;
	aw_turn_lead(&turns, &turn[FIRST]);
	aw_turn_lead(&turns, &turn[SECOND]);
	assert_true(aw_turn_wait(&turns, &turn[THIRD]));
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_int_equal(woken_count, 0);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 1);
}

static void another_peer(uint32_t hash)
{
	turn[ELSEWHERE].hash = hash;
	aw_turn_lead(&turns, &turn[FIRST]);
	assert_false(aw_turn_is_led(&turns, &turn[ELSEWHERE]));
	aw_turn_lead(&turns, &turn[ELSEWHERE]);
	assert_true(aw_turn_wait(&turns, &turn[SECOND]));
	aw_turn_pass(&turns, &turn[ELSEWHERE]);
	assert_int_equal(woken_count, 0);
	aw_turn_pass(&turns, &turn[FIRST]);
	assert_int_equal(woken_count, 1);
	aw_turn_pass(&turns, &turn[SECOND]);
	assert_no_list();
}

static void turn_lead__another_peer_of_the_same_hash(void **state)
{
	(void)state;
	another_peer(0);
}

static void turn_lead__another_peer_in_the_same_list(void **state)
{
	(void)state;
	another_peer(AW_TURN_LISTS);
}

static void turn_lead__another_peer_in_another_list(void **state)
{
	(void)state;
	another_peer(1);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(turn_lead__alone),
		TEST(turn_pass__wakes_in_order),
		TEST(turn_wait__for_those_that_waited),
		TEST(turn_lead__one_that_waits),
		TEST(turn_sent__one_by_one),
		TEST(turn_pass__one_by_one),
		TEST(turn_pass__one_that_waits),
		TEST(turn_wait__the_leader_has_gone),
		TEST(turn_pass__of_two_leaders),
		TEST(turn_lead__another_peer_of_the_same_hash),
		TEST(turn_lead__another_peer_in_the_same_list),
		TEST(turn_lead__another_peer_in_another_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
