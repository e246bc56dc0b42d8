// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP whose stream goes through memory, with a raw peer at the other end of memory and socket that does what no anywarp
// would: its QP ends, with an event, and nothing else does. All of it with pipes for the bells, and without.
#include "../lib/host_scene.h"
#include "../lib/until.h"
#include "base/clock.h"
#include "core/tx.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_progress.h"
#include "net/qp/uqp_sock.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SCRIBBLES 300 /* streams that end so */
#define WAIT_MS 20000
#define OTHERS 20

static void assert_received(struct scene *s, uint32_t len)
{
	struct aw_cq_entry entry = end_wait_cqe(&s->e);

	assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(entry.cqe.byte_len, len);
	assert_int_equal(s->e.buf[len - 1], 0x5a);
}

/* Whether a bell comes. */
static bool hears_bell(struct scene *s)
{
	int fd = s->ring->bells.own >= 0 ? s->ring->bells.own : s->fd;
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint8_t bell;

	return poll(&pollfd, 1, WAIT_MS) == 1 && read(fd, &bell, 1) == 1;
}

static void uqp_host__a_send(void **state)
{
	struct scene *s = *state;

	join(s);
	post_recv(s, 1000);
	put_send(s, 1000, SIZE_MAX);
	assert_received(s, 1000);
	aw_lock(&s->e.qp->lock);
	assert_true(s->e.qp->core.stream.crc);
	assert_false(aw_stream_crc_in(&s->e.qp->core.stream));
	aw_unlock(&s->e.qp->lock);
	assert_true(has_pipes(s) == (s->taken_count == 0));
	part(s);
}

/* A CQ of many QPs, of which only one has memory, and nothing but a poll looks at it. */
static void uqp_host__a_send_to_one_of_many(void **state)
{
	struct scene *s = *state;
	struct end others[OTHERS] = { 0 };

	join(s);
	for (int i = 0; i < OTHERS; i++)
		end_make_on(&others[i], &s->pd, &s->e.cq);
	pair_stop_progress();
	post_recv(s, 1000);
	put_quietly(s, 1000, SIZE_MAX);
	assert_received(s, 1000);
	pair_start_progress();
	for (int i = 0; i < OTHERS; i++)
		end_destroy(&others[i]);
	part(s);
}

/* Up to where the QP has looked; 0 where it has no memory any more. */
static uint64_t looked(struct scene *s)
{
	aw_lock(&s->e.qp->lock);
	uint64_t at = s->e.qp->ring ? s->e.qp->ring->looked : 0;

	aw_unlock(&s->e.qp->lock);
	return at;
}

/*
 * The peer's Send comes while pollers look after the QP, so that it rings no bell; they stop, the progress thread takes the
 * QP back, and before its turn the program posts something. That turn comes all the same.
 */
static void uqp_host__a_turn_that_is_due_outlives_a_post(void **state)
{
	struct scene *s = *state;
	struct aw_uqp *qp;

	join(s);
	qp = s->e.qp;
	post_recv(s, 1000);
	post_recv(s, 1000);
	put_send(s, 1000, SIZE_MAX);
	assert_received(s, 1000);
	aw_lock(&qp->lock);
	memset(s->e.buf, 0, 1000);
	uqp_leave_to_pollers(qp); /* the progress thread may have done it */
	put_quietly(s, 1000, SIZE_MAX);
	uqp_take_back(qp);
	aw_uqp_push(qp);
	assert_true(qp->listens_for & EPOLLOUT); /* at once */
	aw_unlock(&qp->lock);
	until(octet_at(s->e.buf + 999) == 0x5a);
	part(s);
}

/* Messages in two pieces, each begun before the one before it is whole: the ring is never empty, and goes round. */
static void uqp_host__pieces_and_the_wrap(void **state)
{
	struct scene *s = *state;
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + 50000);

	join(s);
	put_send(s, 50000, 100);
	for (uint32_t sent = 0; sent < 3 * AW_HOST_RING_BYTES; sent += 50000) {
		post_recv(s, 50000);
		while (looked(s) % size == 0)
			poll(NULL, 0, 1);
		aw_lock(&s->e.qp->lock);
		aw_duplex_produce(&s->ring->duplex, size - 100);
		put_quietly(s, 50000, 100);
		aw_unlock(&s->e.qp->lock);
		assert_true(aw_duplex_tx(&s->ring->duplex) - s->ring->duplex.tx ==
			    (ptrdiff_t)(s->ring->duplex.tail % AW_HOST_RING_BYTES));
		ring_bell(s);
		assert_received(s, 50000);
	}
	part(s);
}

/* It waits in the ring, and is there as its receive is; the bell is for the room that it leaves. */
static void uqp_host__a_message_waits_for_its_receive(void **state)
{
	struct scene *s = *state;

	join(s);
	put_send(s, 3000, SIZE_MAX);
	end_wait_held(&s->e);
	post_recv(s, 3000);
	assert_received(s, 3000);
	part(s);
}

static void uqp_host__bytes_before_the_end_come_first(void **state)
{
	struct scene *s = *state;

	join(s);
	post_recv(s, 500);
	put_send(s, 500, SIZE_MAX);
	shutdown(s->fd, SHUT_RDWR);
	assert_received(s, 500);
	end_wait_event(&s->e, AW_UQP_CLOSED);
	part(s);
}

static void uqp_host__half_an_fpdu_at_the_end(void **state)
{
	struct scene *s = *state;

	join(s);
	put_send(s, 500, 300);
	shutdown(s->fd, SHUT_RDWR);
	end_wait_event(&s->e, AW_UQP_CLOSED);
	assert_int_equal(aw_uqp_state(s->e.qp), AW_QP_ERROR);
	part(s);
}

/* A writer that is told of no room sleeps until there is some. */
static void uqp_host__a_full_ring(void **state)
{
	struct scene *s = *state;
	size_t ready = 0;

	join(s);
	post_recv(s, 100);
	put_send(s, 100, SIZE_MAX);
	assert_received(s, 100);
	aw_duplex_sleep(&s->ring->duplex);
	aw_uqp_send_begin(s->e.qp);
	for (int i = 0; i < 4; i++) {
		struct aw_swqe *wqe = aw_uqp_send_slot(s->e.qp);

		*wqe = (struct aw_swqe){
			.op = AW_OP_SEND, .flags = AW_WR_SIGNALED, .len = 200000, .sge_count = 1
		};
		wqe->sge[0] = end_sge(&s->e, 0, 200000);
		aw_uqp_send_commit(s->e.qp);
	}
	aw_uqp_send_end(s->e.qp);
	for (int i = 0; i < 4;) {
		struct aw_cq_entry entry;

		while ((ready = aw_duplex_ready(&s->ring->duplex)) > 0) {
			aw_duplex_consume(&s->ring->duplex, ready);
			if (aw_duplex_wakes_writer(&s->ring->duplex))
				ring_bell(s);
		}
		i += aw_cq_poll(&s->e.cq, &entry, 1);
	}
	assert_true(hears_bell(s));
	part(s);
}

#define TURN_FPDUS 80 /* of the longest: a turn of a writer for which there is always room */
#define LEFT 220000 /* bytes: more than three quarters of the ring */

struct reader {
	struct scene *scene;
	uint64_t until; /* the position up to which it reads */
};

static void read_some(struct scene *s, uint64_t until)
{
	struct aw_duplex *d = &s->ring->duplex;
	size_t ready = aw_duplex_ready(d);
	size_t n = ready < until - d->head ? ready : until - d->head;

	aw_duplex_consume(d, n);
	if (n > 0 && aw_duplex_wakes_writer(d))
		ring_bell(s);
}

static void *read_until(void *arg)
{
	struct reader *reader = arg;

	while (reader->scene->ring->duplex.head < reader->until)
		read_some(reader->scene, reader->until);
	return NULL;
}

static void send_fpdus(struct scene *s, uint32_t len, int count)
{
	aw_uqp_send_begin(s->e.qp);
	for (int i = 0; i < count; i++) {
		struct aw_swqe *wqe = aw_uqp_send_slot(s->e.qp);

		*wqe = (struct aw_swqe){
			.op = AW_OP_SEND, .flags = AW_WR_SIGNALED, .len = len, .sge_count = 1
		};
		wqe->sge[0] = end_sge(&s->e, 0, len);
		aw_uqp_send_commit(s->e.qp);
	}
	aw_uqp_send_end(s->e.qp);
}

/*
 * A reader that is as fast as the writer stops for a time where the writer's turn ends, with less room than a wake is worth: the writer, which
 * has met no full ring, sleeps, and is to be woken all the same. Nobody polls its CQ.
 */
static void end_turn_nearly_full(struct scene *s)
{
	struct reader reader = { .scene = s };
	size_t mulpdu;
	int64_t end_ns;
	pthread_t thread;

	join(s);
	post_recv(s, 100);
	put_send(s, 100, SIZE_MAX);
	assert_received(s, 100);
	mulpdu = s->e.qp->core.mulpdu;
	reader.until = s->ring->duplex.head + TURN_FPDUS * fpdu_size(mulpdu) - LEFT;
	assert_int_equal(pthread_create(&thread, NULL, read_until, &reader), 0);
	send_fpdus(s, (uint32_t)(45 * (mulpdu - DDP_UNTAGGED_LEN)), 2);
	pthread_join(thread, NULL);
	end_ns = aw_now_ns() + WAIT_MS * INT64_C(1000000);
	while (atomic_load(&s->e.cq.ready) < 2) {
		assert_true(aw_now_ns() < end_ns);
		read_some(s, UINT64_MAX);
	}
	part(s);
}

/* The reader is not as fast each time. */
static void uqp_host__a_turn_ends_in_a_ring_that_is_nearly_full(void **state)
{
	for (int i = 0; i < 20; i++)
		end_turn_nearly_full(*state);
}

static void assert_tail_ends(struct scene *s, uint64_t tail)
{
	join(s);
	post_recv(s, 100);
	put_send(s, 100, SIZE_MAX);
	assert_received(s, 100);
	atomic_store(&s->ring->duplex.own->tail, tail);
	ring_bell(s);
	end_wait_event(&s->e, AW_UQP_CLOSED);
	assert_int_equal(aw_uqp_state(s->e.qp), AW_QP_ERROR);
	part(s);
}

static void uqp_host__a_tail_that_cannot_be(void **state)
{
	assert_tail_ends(*state, 0);
	assert_tail_ends(*state, UINT64_MAX);
	assert_tail_ends(*state, 2 * AW_HOST_RING_BYTES);
}

/* A length of which there can be no FPDU, and a header that is none. */
static void uqp_host__garbage_for_an_fpdu(void **state)
{
	struct scene *s = *state;

	join(s);
	memset(aw_duplex_tx(&s->ring->duplex), 0xff, AW_HOST_RING_BYTES);
	aw_duplex_produce(&s->ring->duplex, AW_HOST_RING_BYTES);
	ring_bell(s);
	end_wait_event(&s->e, AW_UQP_CLOSED);
	part(s);
}

/* All that is shared, over and over, while messages come and go: the stream may end, and the process must not. */
static void uqp_host__scribbles(void **state)
{
	struct scene *s = *state;
	unsigned int seed = (unsigned int)aw_now_ns();
	struct aw_cq_entry entry;

	print_message("seed %u\n", seed);
	for (int i = 0; i < SCRIBBLES; i++) {
		join(s);
		post_recv(s, 4000);
		put_send(s, (size_t)(rand_r(&seed) % 4000), SIZE_MAX);
		end_post(&s->e, AW_OP_SEND, &s->e, (uint32_t)(rand_r(&seed) % 60000));
		for (int n = rand_r(&seed) % 64; n > 0; n--) {
			size_t at = (size_t)rand_r(&seed) % s->ring->len;
			uint8_t *octet =
				(uint8_t *)s->ring->base + (rand_r(&seed) % 2 ? at % 1024 : at);

			__atomic_store_n(octet, (uint8_t)rand_r(&seed), __ATOMIC_RELAXED);
			ring_bell(s);
			aw_cq_poll(&s->e.cq, &entry, 1);
		}
		part(s);
	}
}

static void uqp_host__a_flood_of_bells(void **state)
{
	struct scene *s = *state;

	join(s);
	for (int i = 0; i < 20000; i++)
		ring_bell(s);
	post_recv(s, 100);
	put_send(s, 100, SIZE_MAX);
	assert_received(s, 100);
	part(s);
}

/* What the peer sends in one call costs this end a few turns. */
static void uqp_host__bells_in_bulk(void **state)
{
	static const uint8_t bells[65536];
	struct scene *s = *state;
	int turns = 0, unread = 0;
	ssize_t sent;

	join(s);
	pair_stop_progress();
	sent = send(s->fd, bells, sizeof(bells), MSG_DONTWAIT | MSG_NOSIGNAL);
	assert_true(sent > 16384);
	do {
		aw_lock(&s->e.qp->lock);
		aw_uqp_serve(s->e.qp);
		aw_unlock(&s->e.qp->lock);
		turns++;
		assert_int_equal(ioctl(s->far_fd, FIONREAD, &unread), 0);
	} while (unread > 0);
	assert_in_range(turns, 1, 16 + 1);
	pair_start_progress();
	part(s);
}

/* Else a child that runs long would keep the memory of both, and an end of the parent's would not be seen by them. */
static void uqp_host__the_child_of_a_fork_has_no_pipes(void **state)
{
	struct scene *s = *state;
	struct stat own, peers;
	int status;

	join(s);
	aw_lock(&s->e.qp->lock);
	const struct aw_bells bells = s->e.qp->ring->bells;

	aw_unlock(&s->e.qp->lock);
	assert_true(bells.own >= 0);
	pid_t child = fork();

	if (child == 0)
		_exit(fstat(bells.own, &own) == 0 && fstat(bells.peers, &peers) == 0 &&
				      !S_ISFIFO(own.st_mode) && !S_ISFIFO(peers.st_mode)
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	part(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(uqp_host__a_send, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_send_to_one_of_many, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_turn_that_is_due_outlives_a_post, setup,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__pieces_and_the_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_message_waits_for_its_receive, setup,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__bytes_before_the_end_come_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__half_an_fpdu_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_full_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_turn_ends_in_a_ring_that_is_nearly_full,
						setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_tail_that_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__garbage_for_an_fpdu, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__scribbles, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_flood_of_bells, setup, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__the_child_of_a_fork_has_no_pipes, setup,
						teardown),
		/* bells over TCP */
		cmocka_unit_test_setup_teardown(uqp_host__a_send, setup_without_pipes, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__pieces_and_the_wrap, setup_without_pipes,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__bytes_before_the_end_come_first,
						setup_without_pipes, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_full_ring, setup_without_pipes,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__scribbles, setup_without_pipes, teardown),
		cmocka_unit_test_setup_teardown(uqp_host__a_flood_of_bells, setup_without_pipes,
						teardown),
		cmocka_unit_test_setup_teardown(uqp_host__bells_in_bulk, setup_without_pipes,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
