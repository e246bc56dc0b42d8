// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two byte rings between two ends: their bounds, who is woken when, and a peer that says what cannot be.
#include "ring/duplex.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SIZE 16384u
#define STREAM (1u << 22) /* bytes that a thread sends */

struct scene {
	struct aw_duplex_side sides[2];
	uint8_t bytes[2][2 * SIZE]; /* in a process of two ends nothing needs to be mapped twice */
	struct aw_duplex a, b;
};

static struct scene scene;

static int setup(void **state)
{
	uint8_t *bytes[2] = { scene.bytes[0], scene.bytes[1] };

	memset(&scene, 0, sizeof(scene));
	aw_duplex_init(&scene.a, scene.sides, bytes, 0, SIZE);
	aw_duplex_init(&scene.b, scene.sides, bytes, 1, SIZE);
	*state = &scene;
	return 0;
}

static void duplex__full_to_the_byte(void **state)
{
	struct scene *s = *state;

	assert_int_equal(aw_duplex_room(&s->a), SIZE);
	assert_int_equal(aw_duplex_ready(&s->b), 0);
	aw_duplex_produce(&s->a, SIZE - 1);
	assert_int_equal(aw_duplex_room(&s->a), 1);
	aw_duplex_produce(&s->a, 1);
	assert_int_equal(aw_duplex_room(&s->a), 0);
	assert_int_equal(aw_duplex_ready(&s->b), SIZE);
	aw_duplex_consume(&s->b, 1);
	assert_int_equal(aw_duplex_room(&s->a), 1);
	assert_false(aw_duplex_is_drained(&s->a));
	aw_duplex_consume(&s->b, SIZE - 1);
	assert_true(aw_duplex_is_drained(&s->a));
	assert_false(s->a.broken || s->b.broken);
}

static void duplex__directions_are_apart(void **state)
{
	struct scene *s = *state;

	*aw_duplex_tx(&s->a) = 1;
	*aw_duplex_tx(&s->b) = 2;
	aw_duplex_produce(&s->a, 1);
	aw_duplex_produce(&s->b, 1);
	assert_int_equal(*aw_duplex_rx(&s->a), 2);
	assert_int_equal(*aw_duplex_rx(&s->b), 1);
}

/* Whether this position of the peer's is believed by a reader that has read 10 of 20 bytes. */
static bool is_believed_tail(struct scene *s, uint64_t tail)
{
	setup((void *[]){ NULL });
	aw_duplex_produce(&s->a, 20);
	assert_int_equal(aw_duplex_ready(&s->b), 20);
	aw_duplex_consume(&s->b, 10);
	atomic_store(&s->sides[0].tail, tail);
	bool believed = aw_duplex_ready(&s->b) == tail - 10;

	assert_int_equal(believed, !s->b.broken);
	return believed;
}

static void duplex_ready__a_tail_that_cannot_be(void **state)
{
	struct scene *s = *state;

	assert_true(is_believed_tail(s, 20));
	assert_true(is_believed_tail(s, 10 + SIZE));
	assert_false(is_believed_tail(s, 10 + SIZE + 1));
	assert_false(is_believed_tail(s, 19));
	assert_false(is_believed_tail(s, 0));
	assert_false(is_believed_tail(s, UINT64_MAX));
	assert_false(is_believed_tail(s, UINT64_C(1) << 63));
}

static bool is_believed_head(struct scene *s, uint64_t head)
{
	setup((void *[]){ NULL });
	aw_duplex_produce(&s->a, 20);
	aw_duplex_consume(&s->b, 10);
	assert_int_equal(aw_duplex_room(&s->a), SIZE - 10);
	atomic_store(&s->sides[1].head, head);
	bool believed = aw_duplex_room(&s->a) == SIZE - 20 + head;

	assert_int_equal(believed, !s->a.broken);
	return believed;
}

static void duplex_room__a_head_that_cannot_be(void **state)
{
	struct scene *s = *state;

	assert_true(is_believed_head(s, 10));
	assert_true(is_believed_head(s, 20));
	assert_false(is_believed_head(s, 21));
	assert_false(is_believed_head(s, 9));
	assert_false(is_believed_head(s, UINT64_MAX));
}

static void duplex__broken_for_ever(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 20);
	atomic_store(&s->sides[0].tail, SIZE + 1);
	assert_int_equal(aw_duplex_ready(&s->b), 0);
	atomic_store(&s->sides[0].tail, 20);
	assert_int_equal(aw_duplex_ready(&s->b), 0);
	assert_int_equal(aw_duplex_room(&s->b), 0);
}

static void duplex_wakes_reader__once_a_sleep(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 1);
	assert_false(aw_duplex_wakes_reader(&s->a));
	aw_duplex_sleep(&s->b);
	aw_duplex_produce(&s->a, 1);
	assert_true(aw_duplex_wakes_reader(&s->a));
	assert_false(aw_duplex_wakes_reader(&s->a));
	aw_duplex_sleep(&s->b);
	aw_duplex_wake(&s->b);
	assert_false(aw_duplex_wakes_reader(&s->a));
}

static void duplex_wakes_writer__for_a_quarter(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, SIZE);
	assert_int_equal(aw_duplex_ready(&s->b), SIZE);
	aw_duplex_sleep(&s->a);
	aw_duplex_consume(&s->b, SIZE / 2);
	assert_false(aw_duplex_wakes_writer(&s->b));
	assert_int_equal(aw_duplex_room(&s->a), SIZE / 2);
	aw_duplex_produce(&s->a, SIZE / 2);
	aw_duplex_await_room(&s->a);
	aw_duplex_consume(&s->b, SIZE / 4 - 1);
	assert_false(aw_duplex_wakes_writer(&s->b));
	assert_false(aw_duplex_has_room(&s->a));
	aw_duplex_consume(&s->b, 1);
	assert_true(aw_duplex_wakes_writer(&s->b));
	assert_true(aw_duplex_has_room(&s->a));
	assert_false(aw_duplex_wakes_writer(&s->b));
}

/* A look takes the line of the peer's head, so there is one in a page of bytes, or where the room that was seen is too small. */
static void duplex_room_seen__looks_once_in_a_page(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 1);
	assert_int_equal(aw_duplex_ready(&s->b), 1);
	aw_duplex_consume(&s->b, 1);
	assert_int_equal(aw_duplex_room_seen(&s->a, 1), SIZE);
	aw_duplex_produce(&s->a, 4095);
	assert_int_equal(aw_duplex_ready(&s->b), 4095);
	aw_duplex_consume(&s->b, 4095);
	assert_int_equal(aw_duplex_room_seen(&s->a, SIZE - 4095), SIZE - 4095);
	assert_int_equal(aw_duplex_room_seen(&s->a, SIZE), SIZE);
	aw_duplex_produce(&s->a, 4096);
	assert_int_equal(aw_duplex_ready(&s->b), 4096);
	aw_duplex_consume(&s->b, 4096);
	assert_int_equal(aw_duplex_room_seen(&s->a, 1), SIZE);
}

/* What was seen counts no more than a lie that was found. */
static void duplex_room_seen__none_once_broken(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 1);
	assert_int_equal(aw_duplex_ready(&s->b), 1);
	aw_duplex_consume(&s->b, 1);
	assert_int_equal(aw_duplex_room_seen(&s->a, 1), SIZE);
	atomic_store(&s->sides[1].head, 2);
	assert_int_equal(aw_duplex_room(&s->a), 0);
	assert_int_equal(aw_duplex_room_seen(&s->a, 1), 0);
}

/* An eighth of the ring lies between two looks, and a peer that wants room has filled more. */
static void duplex_wakes_writer__looks_once_in_an_eighth(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, SIZE);
	assert_int_equal(aw_duplex_ready(&s->b), SIZE);
	aw_duplex_consume(&s->b, SIZE / 2);
	assert_false(aw_duplex_wakes_writer(&s->b));
	assert_int_equal(aw_duplex_room(&s->a), SIZE / 2);
	aw_duplex_produce(&s->a, SIZE / 2);
	aw_duplex_await_room(&s->a);
	aw_duplex_sleep(&s->a);
	assert_int_equal(aw_duplex_ready(&s->b), SIZE);
	for (size_t left = SIZE; left > 0; left -= SIZE / 16) {
		aw_duplex_consume(&s->b, SIZE / 16);
		/* The fourth sixteenth is the first quarter. */
		assert_int_equal(aw_duplex_wakes_writer(&s->b), left == SIZE - 3 * (SIZE / 16));
	}
}

static void duplex__the_end_is_behind_the_bytes(void **state)
{
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 7);
	assert_false(aw_duplex_peer_closed(&s->b));
	aw_duplex_close(&s->a);
	assert_true(aw_duplex_peer_closed(&s->b));
	assert_int_equal(aw_duplex_ready(&s->b), 7);
	assert_false(aw_duplex_peer_left(&s->b));
	aw_duplex_leave(&s->a);
	assert_true(aw_duplex_peer_left(&s->b));
}

/* Sends and receives one byte of this value. Returns its place in the ring. */
static size_t pass_byte(struct scene *s, uint8_t value)
{
	size_t place;

	assert_true(aw_duplex_room(&s->a) > 0);
	place = (size_t)(aw_duplex_tx(&s->a) - s->a.tx);
	*aw_duplex_tx(&s->a) = value;
	aw_duplex_produce(&s->a, 1);
	assert_true(aw_duplex_ready(&s->b) > 0);
	assert_int_equal(*aw_duplex_rx(&s->b), value);
	aw_duplex_consume(&s->b, 1);
	return place;
}

static void duplex__an_empty_ring_begins_again(void **state)
{
	struct scene *s = *state;

	for (size_t i = 0; i < 3 * SIZE; i++)
		assert_int_equal(pass_byte(s, (uint8_t)(i % 251)), i % 4096);
}

/* While one byte waits, the next one's place is the one behind it, whatever was read. */
static void duplex__a_ring_with_bytes_goes_on(void **state)
{
	struct scene *s = *state;

	*aw_duplex_tx(&s->a) = 0;
	aw_duplex_produce(&s->a, 1);
	for (size_t i = 1; i < 3 * SIZE; i++) {
		assert_int_equal(aw_duplex_room(&s->a), SIZE - 1);
		assert_int_equal(aw_duplex_tx(&s->a) - s->a.tx, i % SIZE);
		*aw_duplex_tx(&s->a) = (uint8_t)(i % 251);
		aw_duplex_produce(&s->a, 1);
		assert_int_equal(aw_duplex_ready(&s->b), 2);
		assert_int_equal(*aw_duplex_rx(&s->b), (i - 1) % 251);
		aw_duplex_consume(&s->b, 1);
	}
}

static void duplex_rx__is_within_the_ring_whatever_the_origin(void **state)
{
	const uint64_t origins[] = { 1, SIZE - 1, SIZE, UINT64_MAX, UINT64_C(1) << 63 };
	struct scene *s = *state;

	aw_duplex_produce(&s->a, 1);
	for (size_t i = 0; i < sizeof(origins) / sizeof(*origins); i++) {
		atomic_store(&s->sides[0].origin, origins[i]);
		assert_int_equal(aw_duplex_ready(&s->b), 1);
		assert_in_range(aw_duplex_rx(&s->b) - s->b.rx, 0, SIZE - 1);
	}
}

/* A sleeper of this process: what a bell would be is a counter. */
static _Atomic uint32_t bells[2];

static void sleep_until(struct aw_duplex *d, unsigned int side, size_t (*look)(struct aw_duplex *))
{
	uint32_t before = atomic_load(&bells[side]);

	aw_duplex_sleep(d);
	while (look(d) == 0 && atomic_load(&bells[side]) == before)
		sched_yield();
	aw_duplex_wake(d);
}

/* Here no ring is mapped twice. */
static size_t before_wrap(const uint8_t *at, const uint8_t *ring)
{
	return SIZE - (size_t)(at - ring);
}

static void *send_stream(void *arg)
{
	struct aw_duplex *d = &((struct scene *)arg)->a;
	size_t sent = 0, room;

	while (sent < STREAM) {
		room = aw_duplex_room(d);
		if (room > before_wrap(aw_duplex_tx(d), d->tx))
			room = before_wrap(aw_duplex_tx(d), d->tx);
		if (room > 61)
			room = 61;
		for (size_t i = 0; i < room; i++)
			aw_duplex_tx(d)[i] = (uint8_t)((sent + i) * 7);
		sent += room;
		if (room > 0) {
			aw_duplex_produce(d, room);
			if (aw_duplex_wakes_reader(d))
				atomic_fetch_add(&bells[1], 1);
			continue;
		}
		aw_duplex_await_room(d);
		sleep_until(d, 0, aw_duplex_room);
	}
	return NULL;
}

/* Each byte comes once and in order, whatever sleeps and wakes; no sleep is slept for ever. */
static void duplex__two_threads(void **state)
{
	struct scene *s = *state;
	size_t received = 0, ready;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_stream, s), 0);
	while (received < STREAM) {
		ready = aw_duplex_ready(&s->b);
		if (ready > before_wrap(aw_duplex_rx(&s->b), s->b.rx))
			ready = before_wrap(aw_duplex_rx(&s->b), s->b.rx);
		for (size_t i = 0; i < ready; i++)
			if (aw_duplex_rx(&s->b)[i] != (uint8_t)((received + i) * 7))
				fail();
		received += ready;
		aw_duplex_consume(&s->b, ready);
		if (ready > 0 && aw_duplex_wakes_writer(&s->b))
			atomic_fetch_add(&bells[0], 1);
		if (ready == 0)
			sleep_until(&s->b, 1, aw_duplex_ready);
	}
	pthread_join(thread, NULL);
	assert_false(s->a.broken || s->b.broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(duplex__full_to_the_byte, setup),
		cmocka_unit_test_setup(duplex__directions_are_apart, setup),
		cmocka_unit_test_setup(duplex_ready__a_tail_that_cannot_be, setup),
		cmocka_unit_test_setup(duplex_room__a_head_that_cannot_be, setup),
		cmocka_unit_test_setup(duplex__broken_for_ever, setup),
		cmocka_unit_test_setup(duplex_room_seen__looks_once_in_a_page, setup),
		cmocka_unit_test_setup(duplex_room_seen__none_once_broken, setup),
		cmocka_unit_test_setup(duplex_wakes_reader__once_a_sleep, setup),
		cmocka_unit_test_setup(duplex_wakes_writer__looks_once_in_an_eighth, setup),
		cmocka_unit_test_setup(duplex_wakes_writer__for_a_quarter, setup),
		cmocka_unit_test_setup(duplex__the_end_is_behind_the_bytes, setup),
		cmocka_unit_test_setup(duplex__an_empty_ring_begins_again, setup),
		cmocka_unit_test_setup(duplex__a_ring_with_bytes_goes_on, setup),
		cmocka_unit_test_setup(duplex_rx__is_within_the_ring_whatever_the_origin, setup),
		cmocka_unit_test_setup(duplex__two_threads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
