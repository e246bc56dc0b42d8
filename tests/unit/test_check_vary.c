// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What --vary makes of a CQ's polls and events, over a CQ that exists in the test alone.
#include "check/vary/vary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 200
#define POLLS 400

static void aw_vary_cq_init__a_seed_replays(void **state)
{
	struct aw_vary_cq a, b;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		aw_vary_cq_init(&a, seed, 3);
		aw_vary_cq_init(&b, seed, 3);
		for (int i = 0; i < POLLS; i++)
			assert_int_equal(aw_vary_poll(&a, 8), aw_vary_poll(&b, 8));
	}
}

static void aw_vary_cq_init__each_cq_has_its_own(void **state)
{
	struct aw_vary_cq a, b;
	int different = 0;

	(void)state;
	aw_vary_cq_init(&a, 1, 0);
	aw_vary_cq_init(&b, 1, 1);
	for (int i = 0; i < POLLS; i++)
		different += aw_vary_poll(&a, 8) != aw_vary_poll(&b, 8);
	assert_true(different > 0);
}

/* A program that polls without arming gets its completions late, singly and at once, and never waits for long. */
static void aw_vary_poll__free(void **state)
{
	uint32_t seen[3] = { 0 }; /* nothing, one, all */
	struct aw_vary_cq cq;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t empties = 0;

		aw_vary_cq_init(&cq, seed, 0);
		for (int i = 0; i < POLLS; i++) {
			uint32_t n = aw_vary_poll(&cq, 8);

			assert_true(n == 0 || n == 1 || n == 8);
			empties = n == 0 ? empties + 1 : 0;
			assert_true(empties <= AW_VARY_EMPTY_MAX);
			seen[n == 8 ? 2 : n]++;
		}
	}
	for (int i = 0; i < 3; i++)
		assert_true(seen[i] > SEEDS);
}

/* Whatever came before: from the arm on to the event each poll is the device's own. */
static void aw_vary_poll__armed_is_the_devices(void **state)
{
	struct aw_vary_cq cq;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		aw_vary_cq_init(&cq, seed, 0);
		for (uint64_t i = 0; i < seed % 7; i++)
			(void)aw_vary_poll(&cq, 8);
		aw_vary_armed(&cq, seed % 2);
		for (int i = 0; i < POLLS; i++)
			assert_int_equal(aw_vary_poll(&cq, 8), 8);
	}
}

/* The completion that an event is for is there. */
static void aw_vary_poll__behind_an_event_asks_the_device(void **state)
{
	struct aw_vary_cq cq;
	int singles = 0, empties = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		aw_vary_cq_init(&cq, seed, 0);
		aw_vary_armed(&cq, false);
		aw_vary_event(&cq);
		uint32_t n = aw_vary_poll(&cq, 8);

		assert_true(n > 0);
		singles += n == 1;
		for (int i = 0; i < 4; i++)
			empties += aw_vary_poll(&cq, 8) == 0;
	}
	assert_true(singles > 0);
	assert_true(empties > 0);
}

/* A device that raises an event for the first completion behind an arm. */
struct device {
	struct aw_rng rng;
	uint32_t held; /* completions in its CQ */
	bool armed, event;
};

static void device_complete(struct device *device)
{
	device->held++;
	device->event |= device->armed;
	device->armed = false;
}

/* The program polls until the CQ is empty, while completions come between the polls. Returns how many it got. */
static uint32_t drain(struct aw_vary_cq *cq, struct device *device)
{
	uint32_t given = 0, got;

	do {
		uint32_t ask = aw_vary_poll(cq, 1);

		got = ask < device->held ? ask : device->held;
		device->held -= got;
		given += got;
		if (aw_rng_one_in(&device->rng, 2))
			device_complete(device);
	} while (got > 0);
	return given;
}

/* The program of ibv_get_cq_event(3): it polls behind the event, and once more behind the arm, before it sleeps. */
static void aw_vary_poll__no_wake_up_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct device device = { .rng = aw_rng_stream(seed, UINT64_MAX) };
		struct aw_vary_cq cq;
		uint32_t given = 0;

		aw_vary_cq_init(&cq, seed, 0);
		while (given < 1000) {
			given += drain(&cq, &device);
			aw_vary_armed(&cq, false);
			device.armed = true;
			given += drain(&cq, &device);
			/* It sleeps: what it has not been given must wake it. */
			assert_true(device.held == 0 || device.event);
			if (!device.event)
				device_complete(&device);
			device.event = false;
			aw_vary_event(&cq);
		}
	}
}

static struct ibv_wc wc_of(uint32_t qp_num, enum ibv_wc_opcode opcode, uint64_t wr_id)
{
	return (struct ibv_wc){ .qp_num = qp_num, .opcode = opcode, .wr_id = wr_id };
}

/* Fills wc with the completions of two QPs, each with sends and receives; wr_id counts in each queue. */
static void fill(struct ibv_wc wc[16], uint64_t seed)
{
	struct aw_rng rng = aw_rng_stream(seed, 7);
	uint64_t next[4] = { 0 };

	for (int i = 0; i < 16; i++) {
		uint32_t queue = (uint32_t)aw_rng_below(&rng, 4);

		wc[i] = wc_of(queue / 2, queue % 2 ? IBV_WC_RECV : IBV_WC_SEND, next[queue]++);
	}
}

static void aw_vary_polled__a_queue_keeps_its_order(void **state)
{
	int moved = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct ibv_wc wc[16], before[16];
		uint64_t next[4] = { 0 };
		struct aw_vary_cq cq;

		aw_vary_cq_init(&cq, seed, 0);
		fill(wc, seed);
		memcpy(before, wc, sizeof(wc));
		aw_vary_polled(&cq, wc, 16);
		moved += memcmp(before, wc, sizeof(wc)) != 0;
		for (int i = 0; i < 16; i++) {
			uint32_t queue = wc[i].qp_num * 2 + (wc[i].opcode == IBV_WC_RECV);

			assert_int_equal(wc[i].wr_id, next[queue]++);
		}
	}
	assert_true(moved > SEEDS / 2);
}

/* The opcode of a failed completion is undefined, so it does not tell the queue. */
static void aw_vary_polled__a_failed_qp_keeps_its_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct ibv_wc wc[16];
		struct aw_vary_cq cq;
		uint64_t last = 0;

		aw_vary_cq_init(&cq, seed, 0);
		for (uint32_t i = 0; i < 16; i++)
			wc[i] = wc_of(i % 2, i % 3 ? IBV_WC_RECV : IBV_WC_SEND, i);
		wc[15].status = IBV_WC_WR_FLUSH_ERR;
		aw_vary_polled(&cq, wc, 16);
		for (uint32_t i = 0; i < 16; i++) {
			if (wc[i].qp_num != 1)
				continue;
			assert_true(wc[i].wr_id >= last);
			last = wc[i].wr_id;
		}
	}
}

static void aw_vary_event_spurious__only_for_a_completion_behind_the_arm(void **state)
{
	struct ibv_wc wc = wc_of(1, IBV_WC_SEND, 0);
	struct aw_vary_cq cq;
	int spurious = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		aw_vary_cq_init(&cq, seed, 0);
		assert_false(aw_vary_event_spurious(&cq));
		aw_vary_polled(&cq, &wc, 1);
		aw_vary_armed(&cq, false);
		for (int i = 0; i < 8; i++)
			assert_false(aw_vary_event_spurious(&cq));
		aw_vary_polled(&cq, &wc, 1);
		spurious += aw_vary_event_spurious(&cq);
		aw_vary_event(&cq);
		assert_false(aw_vary_event_spurious(&cq));
	}
	assert_true(spurious > 0 && spurious < SEEDS);
}

static void aw_vary_event_spurious__not_for_solicited_arms(void **state)
{
	struct ibv_wc wc = wc_of(1, IBV_WC_SEND, 0);
	struct aw_vary_cq cq;
	int spurious = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		aw_vary_cq_init(&cq, seed, 0);
		aw_vary_armed(&cq, true);
		aw_vary_polled(&cq, &wc, 1);
		for (int i = 0; i < 8; i++)
			assert_false(aw_vary_event_spurious(&cq));
		/* An arm for any completion stays one. */
		aw_vary_armed(&cq, false);
		aw_vary_armed(&cq, true);
		aw_vary_polled(&cq, &wc, 1);
		spurious += aw_vary_event_spurious(&cq);
	}
	assert_true(spurious > 0);
}

static void aw_vary_pause_ns__is_short_and_mostly_nothing(void **state)
{
	(void)state;
	for (int place = 0; place < AW_VARY_PLACES; place++) {
		struct aw_rng rng = aw_rng_stream(5, (uint64_t)place);
		int none = 0, yields = 0, holds = 0;

		for (int i = 0; i < 10000; i++) {
			uint64_t ns = aw_vary_pause_ns(&rng, (enum aw_vary_place)place);

			assert_true(ns <= 200000);
			none += ns == 0;
			yields += ns == AW_VARY_YIELD;
			holds += ns > AW_VARY_YIELD;
		}
		assert_true(none > 5000);
		assert_true(yields > 100);
		assert_true(holds > 10);
	}
}

/* Without a seed nothing draws; with one the calling thread has its stream. */
static void aw_vary_pause__begins_with_a_seed(void **state)
{
	(void)state;
	aw_vary_pause(AW_VARY_POST);
	assert_false(aw_vary_is_on());
	aw_vary_begin(9);
	assert_true(aw_vary_is_on());
	for (int i = 0; i < 200; i++)
		aw_vary_pause((enum aw_vary_place)(i % AW_VARY_PLACES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_vary_cq_init__a_seed_replays),
		cmocka_unit_test(aw_vary_cq_init__each_cq_has_its_own),
		cmocka_unit_test(aw_vary_poll__free),
		cmocka_unit_test(aw_vary_poll__armed_is_the_devices),
		cmocka_unit_test(aw_vary_poll__behind_an_event_asks_the_device),
		cmocka_unit_test(aw_vary_poll__no_wake_up_is_lost),
		cmocka_unit_test(aw_vary_polled__a_queue_keeps_its_order),
		cmocka_unit_test(aw_vary_polled__a_failed_qp_keeps_its_order),
		cmocka_unit_test(aw_vary_event_spurious__only_for_a_completion_behind_the_arm),
		cmocka_unit_test(aw_vary_event_spurious__not_for_solicited_arms),
		cmocka_unit_test(aw_vary_pause_ns__is_short_and_mostly_nothing),
		cmocka_unit_test(aw_vary_pause__begins_with_a_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
