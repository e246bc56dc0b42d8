// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream's move into memory between two QPs of this process: all messages arrive, in order and whole,
// wherever in the stream the move comes. tests/unit/test_move_peer.c has peers that do what no QP would.
#include "../lib/tcp.h"
#include "../lib/tls_ends.h"
#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/base/policy_env.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"
#include "wire/octets.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MESSAGES 3000
#define SLOTS 64 /* receives that are posted at most */
#define SLOT_OCTETS 4096
#define SEND_AT (SLOTS * SLOT_OCTETS) /* in an end's memory, behind the receives' */
#define THREADS 2 /* of each end */

/* One end's traffic: each message has a sender's number, and the message's number of this sender. */
struct flow {
	struct end *e;
	pthread_mutex_t lock; /* guards the group that follows */
	uint32_t posted, received; /* receives */
	bool taken[SLOTS]; /* the slot's receive is posted */
	bool wrong; /* a completion was an error, or a message not whole */
	uint32_t (*log)[2]; /* sender and number of each message, in the order of the receives */
	uint32_t next[THREADS]; /* each sender's next message */
	uint32_t sent, sent_by[THREADS]; /* completions */

	_Atomic uint32_t told[32]; /* times that each event was told of */
};

struct move {
	struct pair p;
	struct flow a, b;
};

static void count_events(void *arg, uint32_t events)
{
	struct flow *f = arg;

	for (int i = 0; i < 32; i++)
		atomic_fetch_add(&f->told[i], events >> i & 1);
}

static void flow_init(struct flow *f, struct end *e)
{
	f->e = e;
	pthread_mutex_init(&f->lock, NULL);
	f->log = calloc(THREADS * MESSAGES, sizeof(*f->log));
	end_make(e, f, NULL);
	aw_uqp_listen(e->qp, AW_UQP_CM, count_events, f);
}

static void flow_fini(struct flow *f)
{
	end_destroy(f->e);
	pthread_mutex_destroy(&f->lock);
	free(f->log);
}

static void attach(struct end *e, int fd, struct aw_tls *tls, bool initiator)
{
	struct aw_stream stream = {
		.initiator = initiator, .crc = true, .ird = 16, .ord = 16, .moves = true
	};

	const struct aw_uqp_socket to = { .fd = fd, .tls = tls };

	assert_int_equal(aw_uqp_attach_to(e->qp, &to, &stream), 0);
	aw_lock(&e->qp->lock);
	e->qp->rnr_ms = 0;
	aw_unlock(&e->qp->lock);
}

static int setup(void **state)
{
	struct move *m = calloc(1, sizeof(*m));
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr), fd[2];
	struct aw_tls *tls[2] = { NULL, NULL };

	assert_int_equal(aw_engine_get(), 0);
	flow_init(&m->a, &m->p.a);
	flow_init(&m->b, &m->p.b);
	fd[0] = tcp_connect(&addr);
	fd[1] = tcp_accept(listener);
	tcp_unblock(fd[0]);
	tcp_unblock(fd[1]);
	if (tls_is_asked())
		tls_shake_hands(fd, tls);
	attach(&m->p.b, fd[1], tls[1], false);
	attach(&m->p.a, fd[0], tls[0], true);
	close(listener);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct move *m = *state;

	pair_start_progress();
	flow_fini(&m->a);
	flow_fini(&m->b);
	aw_engine_put();
	free(m);
	return 0;
}

static bool has_moved(struct end *e)
{
	return end_is_in_memory(e, true) && end_is_in_memory(e, false);
}

static void wait_moved(struct move *m)
{
	until(has_moved(&m->p.a) && has_moved(&m->p.b));
}

/* Posts what slots are free, in their order. The caller holds the lock. */
static void refill(struct flow *f, uint32_t count)
{
	while (f->posted < count && !f->taken[f->posted % SLOTS]) {
		uint32_t slot = f->posted % SLOTS;
		struct aw_sge sge = end_sge(f->e, slot * SLOT_OCTETS, SLOT_OCTETS);

		f->taken[slot] = true;
		f->wrong |= aw_uqp_recv(f->e->qp, f->posted++, &sge, 1) != 0;
	}
}

static void begin_receives(struct flow *f, uint32_t count)
{
	pthread_mutex_lock(&f->lock);
	refill(f, count);
	pthread_mutex_unlock(&f->lock);
}

/* A message has this length, and its octets behind the head are its last number's. */
static uint32_t message_len(uint32_t number)
{
	return 12 + number * 37 % (SLOT_OCTETS - 12);
}

static bool is_whole(const uint8_t *at, uint32_t len)
{
	uint32_t number = get_be32(at + 4);

	if (len != message_len(number) || get_be32(at + 8) != len)
		return false;
	for (uint32_t i = 12; i < len; i++)
		if (at[i] != (uint8_t)(number + i))
			return false;
	return true;
}

static void take(struct flow *f, const struct aw_cq_entry *entry, uint32_t count)
{
	uint64_t id = entry->cqe.wr_id;
	const uint8_t *at = f->e->buf + id % SLOTS * SLOT_OCTETS;

	f->wrong |= entry->cqe.status != AW_WC_SUCCESS;
	if (id >= UINT32_MAX) {
		f->sent++;
		f->sent_by[UINT64_MAX - id]++;
		return;
	}
	f->wrong |= !is_whole(at, entry->cqe.byte_len);
	f->log[id][0] = get_be32(at);
	f->log[id][1] = get_be32(at + 4);
	f->taken[id % SLOTS] = false;
	f->received++;
	refill(f, count);
}

static bool poll_once(struct flow *f, uint32_t count)
{
	struct aw_cq_entry entry;
	bool over;
	int n = aw_cq_poll(&f->e->cq, &entry, 1);

	pthread_mutex_lock(&f->lock);
	if (n == 1)
		take(f, &entry, count);
	over = f->wrong || (f->received == count && f->sent == count);
	pthread_mutex_unlock(&f->lock);
	if (n == 0)
		sched_yield();
	return over;
}

/* False where the send queue is full. Senders have memory of their own, which is the WR's until it is complete. */
static bool send_one(struct flow *f, uint32_t sender, uint32_t number)
{
	uint32_t len = message_len(number);
	size_t place = SEND_AT + (sender * SLOTS + number % SLOTS) * SLOT_OCTETS;
	uint8_t *at = f->e->buf + place;
	struct aw_swqe *w;

	aw_uqp_send_begin(f->e->qp);
	w = aw_uqp_send_slot(f->e->qp);
	if (w) {
		put_be32(at, sender);
		put_be32(at + 4, number);
		put_be32(at + 8, len);
		for (uint32_t i = 12; i < len; i++)
			at[i] = (uint8_t)(number + i);
		*w = (struct aw_swqe){ .wr_id = UINT64_MAX - sender,
				       .op = AW_OP_SEND,
				       .flags = AW_WR_SIGNALED,
				       .len = len,
				       .sge_count = 1,
				       .sge = { end_sge(f->e, place, len) } };
		aw_uqp_send_commit(f->e->qp);
	}
	aw_uqp_send_end(f->e->qp);
	return w;
}

static void assert_in_order(const struct flow *f, uint32_t senders, uint32_t each)
{
	uint32_t next[THREADS] = { 0 };

	for (uint32_t i = 0; i < senders * each; i++) {
		assert_true(f->log[i][0] < senders);
		assert_int_equal(f->log[i][1], next[f->log[i][0]]++);
	}
}

/* READY is bit 0, CLOSED bit 1, and BEGUN, which a message brings, bit 8. The thread that tells may come after what it tells of. */
static void assert_told(struct flow *f, uint32_t closed)
{
	uint64_t start = aw_now_ns();

	while (f->told[0] < 1 || f->told[1] < closed)
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
	assert_int_equal(f->told[0], 1);
	assert_int_equal(f->told[1], closed);
	for (int i = 2; i < 32; i++)
		assert_true(f->told[i] <= (i == 8));
}

static void assert_ends_in_order(struct move *m)
{
	assert_told(&m->a, 0);
	assert_told(&m->b, 0);
	aw_uqp_close(m->p.a.qp);
	assert_told(&m->a, 1);
	assert_told(&m->b, 1);
	assert_int_equal(m->p.a.qp->core.error, AW_OK);
	assert_int_equal(m->p.b.qp->core.error, AW_OK);
}

/* True when one was sent. A sender's places are free again once its sends from there are complete. */
static bool send_next(struct flow *f, uint32_t sender, uint32_t to)
{
	pthread_mutex_lock(&f->lock);
	uint32_t next = f->next[sender];
	bool room = next < to && next - f->sent_by[sender] < SLOTS / THREADS;

	pthread_mutex_unlock(&f->lock);
	if (!room || !send_one(f, sender, next))
		return false;
	f->next[sender]++;
	return true;
}

/* Each way, from one thread, until there have been so many messages. */
static void exchange(struct move *m, uint32_t to)
{
	bool over = false;

	begin_receives(&m->a, to);
	begin_receives(&m->b, to);
	repeat_until(over)
	{
		send_next(&m->a, 0, to);
		send_next(&m->b, 0, to);
		over = poll_once(&m->a, to);
		over = poll_once(&m->b, to) && over;
	}
	assert_false(m->a.wrong || m->b.wrong);
	assert_in_order(&m->a, 1, to);
	assert_in_order(&m->b, 1, to);
}

static void move__messages_before_during_and_after(void **state)
{
	struct move *m = *state;

	exchange(m, MESSAGES / 2);
	wait_moved(m);
	assert_false(m->p.a.qp->core.stream.moves || m->p.b.qp->core.stream.moves);
	exchange(m, MESSAGES);
	assert_ends_in_order(m);
}

/* Where the user asks for it one call is enough; the program sees nothing of the move. */
static void move__behind_the_first_call(void **state)
{
	struct move *m = *state;

	assert_int_equal(aw_policy_host_path_calls(), 1);
	end_post(&m->p.a, AW_OP_WRITE, &m->p.b, 1);
	wait_moved(m);
	assert_int_equal(end_wait_cqe(&m->p.a).cqe.status, AW_WC_SUCCESS);
	assert_ends_in_order(m);
}

#define BULK (BUF_OCTETS / 3)
#define BULKS 16

/* Writes from the middle third of e's memory to the last of the peer's. */
static void post_bulks(struct end *e, struct end *peer)
{
	memset(e->buf + BULK, 0x5a, BULK);
	aw_uqp_send_begin(e->qp);
	for (int i = 0; i < BULKS; i++) {
		struct aw_swqe *w = aw_uqp_send_slot(e->qp);

		assert_non_null(w);
		*w = (struct aw_swqe){ .op = AW_OP_WRITE,
				       .len = BULK,
				       .sge_count = 1,
				       .stag = peer->mr.stag,
				       .to = (uintptr_t)peer->buf + 2 * BULK,
				       .sge = { end_sge(e, BULK, BULK) } };
		aw_uqp_send_commit(e->qp);
	}
	aw_uqp_send_end(e->qp);
}

static void assert_bulk(const struct end *e)
{
	for (size_t i = 2 * BULK; i < 3 * BULK; i++)
		assert_int_equal(e->buf[i], 0x5a);
}

static void push(struct end *e)
{
	aw_lock(&e->qp->lock);
	aw_uqp_push(e->qp);
	aw_uqp_unlock(e->qp);
}

/* Polls until the move has come so far, and, where that is asked for, a message is held. */
static void progress(struct end *e, enum aw_move_state state, bool held)
{
	uint64_t start = aw_now_ns();
	bool is;

	do {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		uqp_poll(e->qp);
		aw_lock(&e->qp->lock);
		is = e->qp->move.state == state && (!held || e->qp->core.rx_held > 0);
		aw_unlock(&e->qp->lock);
	} while (!is);
}

/* What a has to send goes, and b reads, until b has heard a's verdict. a reads nothing meanwhile, so that b's socket is full. */
static void carry_verdict(struct move *m)
{
	repeat_until(end_is_in_memory(&m->p.b, true))
	{
		push(&m->p.a);
		end_fill_socket(&m->p.b, m->p.a.qp->fd);
		uqp_poll(m->p.b.qp);
	}
	assert_true(end_is_in_memory(&m->p.a, false));
	assert_false(end_is_in_memory(&m->p.a, true));
	assert_true(end_is_full(&m->p.b));
	assert_false(end_is_in_memory(&m->p.b, false));
}

/* Both sockets are full as the move begins, and that of b still is as it goes on. */
static void move__sockets_are_full(void **state)
{
	struct move *m = *state;

	pair_stop_progress();
	post_bulks(&m->p.a, &m->p.b);
	end_fill_socket(&m->p.a, m->p.b.qp->fd);
	progress(&m->p.b, AW_MOVE_OFFERED, false);
	post_bulks(&m->p.b, &m->p.a);
	end_fill_socket(&m->p.b, m->p.a.qp->fd);
	end_fill_socket(&m->p.a, m->p.b.qp->fd);
	progress(&m->p.a, AW_MOVE_LEAVES, false);
	assert_false(end_is_in_memory(&m->p.a, false));
	carry_verdict(m);
	pair_start_progress();
	exchange(m, 1);
	wait_moved(m);
	assert_bulk(&m->p.a);
	assert_bulk(&m->p.b);
	assert_ends_in_order(m);
}

/* The verdict comes behind a message for which b's program has no receive, and behind all that a had to send by then. */
static void move__the_responder_has_no_receive(void **state)
{
	struct move *m = *state;

	pair_stop_progress();
	assert_true(send_next(&m->a, 0, 1));
	post_bulks(&m->p.a, &m->p.b);
	end_fill_socket(&m->p.a, m->p.b.qp->fd);
	progress(&m->p.b, AW_MOVE_OFFERED, true);
	end_fill_socket(&m->p.a, m->p.b.qp->fd);
	progress(&m->p.a, AW_MOVE_LEAVES, false);
	assert_false(end_is_in_memory(&m->p.a, false));
	pair_start_progress();
	exchange(m, 2);
	wait_moved(m);
	assert_bulk(&m->p.b);
	assert_ends_in_order(m);
}

/*
 * b's last FPDU over TCP is behind a message for which a's program has no receive, and behind a full socket. What a
 * has to send goes through memory meanwhile, more than there is room for at a time; nobody polls a.
 */
static void move__the_initiator_has_no_receive(void **state)
{
	struct move *m = *state;

	pair_stop_progress();
	assert_true(send_next(&m->a, 0, 1));
	begin_receives(&m->b, 2);
	progress(&m->p.b, AW_MOVE_OFFERED, false);
	assert_true(send_next(&m->b, 0, 1));
	post_bulks(&m->p.b, &m->p.a);
	end_fill_socket(&m->p.b, m->p.a.qp->fd);
	progress(&m->p.a, AW_MOVE_LEAVES, true);
	carry_verdict(m);
	pair_start_progress();
	post_bulks(&m->p.a, &m->p.b);
	assert_true(send_next(&m->a, 0, 2));
	repeat_until(m->b.received >= 2)
	{
		poll_once(&m->b, 2);
	}
	assert_bulk(&m->p.b);
	assert_false(end_is_in_memory(&m->p.a, true));
	exchange(m, 2);
	wait_moved(m);
	assert_bulk(&m->p.a);
	assert_ends_in_order(m);
}

/* Pollers make every step of the move, and then poll no more: the progress thread has the QPs again. */
static void move__the_last_poll_makes_it(void **state)
{
	struct move *m = *state;
	struct aw_cq_entry entry;

	pair_stop_progress();
	begin_receives(&m->b, 2);
	assert_true(send_next(&m->a, 0, 1));
	progress(&m->p.b, AW_MOVE_OFFERED, false);
	progress(&m->p.a, AW_MOVE_LEAVES, false);
	progress(&m->p.b, AW_MOVE_NEVER, false);
	progress(&m->p.a, AW_MOVE_NEVER, false);
	assert_true(has_moved(&m->p.a) && has_moved(&m->p.b));
	pair_start_progress();
	assert_int_equal(aw_cq_take(&m->p.b.cq, &entry, 1), 1);
	assert_true(send_next(&m->a, 0, 2));
	until(aw_cq_take(&m->p.b.cq, &entry, 1) != 0);
}

struct worker {
	struct flow *f;
	uint32_t sender;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t start = aw_now_ns();

	/* A thread that is done polls on for the others. */
	do {
		send_next(w->f, w->sender, MESSAGES);
		if (aw_now_ns() - start > UQP_PAIR_WAIT_NS)
			abort();
	} while (!poll_once(w->f, THREADS * MESSAGES));
	return NULL;
}

static void move__several_threads(void **state)
{
	struct move *m = *state;
	struct worker workers[2 * THREADS];

	begin_receives(&m->a, THREADS * MESSAGES);
	begin_receives(&m->b, THREADS * MESSAGES);
	for (uint32_t i = 0; i < 2 * THREADS; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){ .f = i % 2 ? &m->a : &m->b, .sender = i / 2 };
		assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
	}
	for (uint32_t i = 0; i < 2 * THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_false(m->a.wrong || m->b.wrong);
	assert_in_order(&m->a, THREADS, MESSAGES);
	assert_in_order(&m->b, THREADS, MESSAGES);
	wait_moved(m);
	assert_ends_in_order(m);
}

/* Closes behind so many messages, wherever the move is then: the peer has them all, and then the end. */
static void close_behind(struct flow *closer, struct flow *other, uint32_t count)
{
	begin_receives(other, count);
	while (closer->next[0] < count)
		assert_true(send_next(closer, 0, count));
	aw_uqp_close(closer->e->qp);
	repeat_until(other->received >= count)
	{
		poll_once(other, count);
	}
	end_wait_event(other->e, AW_UQP_CLOSED);
	end_wait_event(closer->e, AW_UQP_CLOSED);
	repeat_until(closer->sent >= count)
	{
		poll_once(closer, closer->posted);
	}
	assert_false(closer->wrong || other->wrong);
	assert_int_equal(other->e->qp->core.error, AW_OK);
	assert_int_equal(closer->e->qp->core.error, AW_OK);
}

static void move__a_close_at_any_time(void **state)
{
	for (uint32_t count = 0; count < SLOTS / THREADS; count++) {
		struct move *m = *state;

		close_behind(&m->a, &m->b, count);
		teardown(state);
		setup(state);
		m = *state;
		begin_receives(&m->b, 1);
		assert_true(send_next(&m->a, 0, 1));
		while (m->b.received < 1)
			poll_once(&m->b, 1);
		close_behind(&m->b, &m->a, count);
		teardown(state);
		setup(state);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(move__messages_before_during_and_after),
		CASE(move__behind_the_first_call),
		CASE(move__sockets_are_full),
		CASE(move__the_responder_has_no_receive),
		CASE(move__the_initiator_has_no_receive),
		CASE(move__the_last_poll_makes_it),
		CASE(move__several_threads),
		CASE(move__a_close_at_any_time),
	};

	setenv("ANYWARP_HOST_PATH", "on", 1);
	return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
