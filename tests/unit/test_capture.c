// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The records of a capture, read by the command's own reader while QPs do their work in this process.
#include "net/qp/capture.h"

#include "../lib/uqp_pair.h"
#include "cli/capture.h"
#include "net/stat/stat_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAYS_MAX 4 /* two streams, two directions each */

/* One direction of a stream as it was captured. */
struct way {
	uint32_t records, first, missing;
	uint32_t next; /* sequence number */
	uint8_t *bytes;
	size_t len, room;
};

struct scene {
	struct pair *pair;
	struct capture_ring ring;
	struct aw_capture_record *record;
	struct way ways[WAYS_MAX];
	uint32_t first_stream;
};

static struct scene scene;

static int setup(void **state)
{
	int result = pair_setup(state);

	scene = (struct scene){ .pair = *state, .record = malloc(AW_CAPTURE_RING_LEN) };
	return result;
}

static int teardown(void **state)
{
	aw_capture_stop(&scene.ring);
	aw_capture_end(&scene.ring);
	free(scene.record);
	for (int i = 0; i < WAYS_MAX; i++)
		free(scene.ways[i].bytes);
	*state = scene.pair;
	return pair_teardown(state);
}

/* Streams are told apart by their numbers, of which the first that is seen need not be the lower one. */
static struct way *way_of(uint32_t qpn, bool out)
{
	return &scene.ways[(qpn == scene.pair->a.qp->qpn ? 0 : 2) + out];
}

/* Twice as much each time: a sanitizer's realloc copies all that there is. */
static void way_grow(struct way *way, size_t len)
{
	if (len <= way->room)
		return;
	way->room = 2 * len;
	way->bytes = realloc(way->bytes, way->room);
	assert_non_null(way->bytes);
}

static void take(const struct aw_capture_record *record)
{
	struct way *way = way_of(record->qpn, record->flags & AW_CAPTURE_OUT);

	if (way->records > 0)
		way->missing += record->seq - way->next;
	way->records++;
	way->first += record->flags & AW_CAPTURE_FIRST ? 1 : 0;
	way->next = record->seq + record->bytes;
	way_grow(way, way->len + record->bytes);
	memcpy(way->bytes + way->len, record + 1, record->bytes);
	way->len += record->bytes;
}

static void take_all(void)
{
	enum capture_next next;

	while ((next = aw_capture_next(&scene.ring, scene.record)) == CAPTURE_RECORD)
		take(scene.record);
	assert_int_equal(next, CAPTURE_NOTHING);
}

static void post_recv(struct end *end)
{
	struct aw_sge sge = end_sge(end, 0, BUF_OCTETS);

	assert_int_equal(aw_uqp_recv(end->qp, 9, &sge, 1), 0);
}

/* Behind a beat: a slow machine may need longer for a test than a capturer may be silent. */
static void send_one(struct pair *p, uint32_t len)
{
	if (scene.ring.request)
		aw_capture_beat(&scene.ring);
	post_recv(&p->b);
	end_post(&p->a, AW_OP_SEND, &p->b, len);
	end_wait_cqe(&p->b);
	end_wait_cqe(&p->a);
}

/* The FPDUs that a sends are those that b receives: each once, and in order. */
static void assert_same(struct pair *p)
{
	struct way *out = way_of(p->a.qp->qpn, true), *in = way_of(p->b.qp->qpn, false);

	assert_true(out->len > 0);
	assert_int_equal(out->len, in->len);
	assert_memory_equal(out->bytes, in->bytes, out->len);
	assert_int_equal(out->missing, 0);
	assert_int_equal(in->missing, 0);
}

static bool has_begun(void)
{
	return __atomic_load_n(&scene.ring.shared->run, __ATOMIC_ACQUIRE) == scene.ring.run;
}

static void ask(void)
{
	assert_true(aw_capture_attach(getpid(), &scene.ring));
	aw_capture_begin(&scene.ring);
}

/* A run may begin a moment after the one of the test before. No bytes are given to the QP. */
static void await_begin(void)
{
	struct pair *p = scene.pair;

	while (!has_begun()) {
		aw_lock(&p->a.qp->lock);
		aw_capture_in(p->a.qp, p->a.buf, 0);
		aw_unlock(&p->a.qp->lock);
	}
}

static void begin(void)
{
	ask();
	await_begin();
}

static void records__are_each_fpdu_once(void **state)
{
	struct pair *p = *state;

	begin();
	send_one(p, 0);
	send_one(p, 10);
	send_one(p, 3000000);
	end_post(&p->a, AW_OP_READ, &p->b, 200001);
	end_wait_cqe(&p->a);
	take_all();
	assert_same(p);
	assert_true(way_of(p->b.qp->qpn, true)->len > 200001);
	assert_int_equal(way_of(p->a.qp->qpn, true)->first + way_of(p->a.qp->qpn, false)->first, 1);
	assert_int_equal(way_of(p->b.qp->qpn, true)->first + way_of(p->b.qp->qpn, false)->first, 1);
	assert_int_equal(aw_capture_dropped(&scene.ring), 0);
}

/* Bytes that wait for a receive are given to the core again and again. */
static void records__of_messages_that_wait_for_a_receive(void **state)
{
	struct pair *p = *state;

	begin();
	end_hold(&p->b);
	for (int i = 0; i < 5; i++)
		end_post(&p->a, AW_OP_SEND, &p->b, 100);
	end_wait_held(&p->b);
	for (int i = 0; i < 5; i++)
		end_wait_cqe(&p->a);
	for (int i = 0; i < 5; i++) {
		post_recv(&p->b);
		end_wait_cqe(&p->b);
	}
	take_all();
	assert_same(p);
}

static void records__begin_in_the_middle_at_an_fpdu(void **state)
{
	struct pair *p = *state;
	struct way *out = way_of(p->a.qp->qpn, true);
	uint64_t pos;

	send_one(p, 1000);
	assert_null(p->a.qp->capture);
	pos = p->a.qp->core.tx_pos;
	begin();
	send_one(p, 500);
	take_all();
	assert_same(p);
	assert_int_equal(out->first + way_of(p->a.qp->qpn, false)->first, 1);
	assert_true(out->len > 500 && out->len <= p->a.qp->core.tx_pos - pos);
	assert_int_equal(out->next, out->len);
	assert_int_equal(out->bytes[0] << 8 | out->bytes[1], 18 + 500);
}

/* Nobody reads: the QPs work on, and the numbers tell of every byte that is missing. */
static void records__that_find_no_room_are_dropped(void **state)
{
	struct pair *p = *state;
	struct way *out = way_of(p->a.qp->qpn, true);
	uint64_t pos;

	begin();
	pos = p->a.qp->core.tx_pos - way_of(p->a.qp->qpn, true)->len;
	for (int i = 0; i < 8; i++)
		send_one(p, BUF_OCTETS);
	assert_true(aw_capture_dropped(&scene.ring) > 0);
	take_all();
	send_one(p, 5);
	take_all();
	assert_true(out->missing > 0);
	assert_int_equal(out->len + out->missing, p->a.qp->core.tx_pos - pos);
	assert_int_equal(out->next, p->a.qp->core.tx_pos - pos);
	assert_int_equal(way_of(p->b.qp->qpn, false)->next, out->next);
}

/* Records of odd sizes, so that one does not fit in front of the ring's end. */
static void records__go_round_the_ring(void **state)
{
	struct pair *p = *state;

	begin();
	for (int i = 0; i < 30; i++) {
		send_one(p, 1000003);
		take_all();
	}
	assert_true(scene.ring.tail > 2 * AW_CAPTURE_RING_LEN);
	assert_same(p);
	assert_int_equal(aw_capture_dropped(&scene.ring), 0);
}

static void ring__of_a_position_that_is_none_takes_nothing(void **state)
{
	static const uint64_t lies[] = { 1, 1 << 30, UINT64_MAX - AW_CAPTURE_RING_LEN };
	struct pair *p = *state;
	uint64_t head;

	begin();
	send_one(p, 10);
	head = scene.ring.shared->head;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		__atomic_store_n(&scene.ring.shared->tail, head + lies[i], __ATOMIC_RELEASE);
		send_one(p, 10);
		assert_int_equal(scene.ring.shared->head, head);
	}
	assert_true(aw_capture_dropped(&scene.ring) > 0);
}

static void ring__of_a_parent_is_not_the_childs(void **state)
{
	struct pair *p = *state;
	uint64_t head;
	int status;
	pid_t pid;

	begin();
	send_one(p, 10);
	head = scene.ring.shared->head;
	pid = fork();
	if (!pid)
		_exit(aw_stat_capture->run == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	send_one(p, 10);
	assert_true(scene.ring.shared->head > head);
}

static _Atomic bool is_done;

static void *begin_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	await_begin();
	is_done = true;
	pthread_testcancel();
	return unused;
}

/* A run begins, and ends, under the lock of a QP, which a thread that is cancelled there would leave taken. */
static void ring__is_made_by_a_cancelled_thread(void **state)
{
	pthread_t thread;

	is_done = false;
	ask();
	assert_int_equal(pthread_create(&thread, NULL, begin_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_done);
	send_one(*state, 10);
	take_all();
	assert_same(*state);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(records__are_each_fpdu_once),
		CASE(records__of_messages_that_wait_for_a_receive),
		CASE(records__begin_in_the_middle_at_an_fpdu),
		CASE(records__that_find_no_room_are_dropped),
		CASE(records__go_round_the_ring),
		CASE(ring__of_a_position_that_is_none_takes_nothing),
		CASE(ring__of_a_parent_is_not_the_childs),
		CASE(ring__is_made_by_a_cancelled_thread),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
