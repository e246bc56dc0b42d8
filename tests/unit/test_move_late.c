// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What comes late beside a move: a turn for which the socket is not writable, room in a ring that was full before the peer's
// last FPDU over TCP, the peer's end before it has read all. A QP that nobody wakes would find it after ten seconds, when a
// deadline runs out.
#include "../lib/move_peer.h"
#include "../lib/tcp.h"
#include "base/clock.h"
#include "net/base/io_now.h"
#include "net/base/policy_env.h"
#include "net/qp/carrier.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_sock.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

/* Less than the deadlines of an end (AW_CLOSE_MS, AW_TERMINATE_MS). */
#define SOON_NS UINT64_C(3000000000)

static void assert_soon(uint64_t start)
{
	assert_true(aw_now_ns() - start < SOON_NS);
	sched_yield();
}

static enum aw_error end_soon(struct peer *p)
{
	uint64_t start = aw_now_ns();

	while (aw_uqp_state(p->e.qp) != AW_QP_ERROR)
		assert_soon(start);
	return peer_error(p);
}

/* The initiator's ring is full; the peer leaves in order, before or behind its last FPDU over TCP. */
static void leave(bool behind)
{
	struct peer p;

	peer_join(&p, true, true);
	if (behind)
		peer_move(&p);
	else
		peer_move_halfway(&p);
	end_post(&p.e, AW_OP_WRITE, &p.e, BUF_OCTETS);
	assert_true(end_is_full(&p.e));
	aw_duplex_leave(&p.ring->duplex);
	peer_shut(&p);
	end_soon(&p);
	peer_part(&p);
}

static void late__the_peer_leaves_a_full_ring(void **state)
{
	(void)state;
	leave(false);
	leave(true);
}

static void await_move(struct peer *p)
{
	uint64_t start = aw_now_ns();

	peer_put_move(p, MOVE_VERDICT, p->verdict);
	p->sends_memory = true;
	while (!peer_qp_is_over(p, true))
		assert_soon(start);
}

/* The peer dies, and has not read the responder's last FPDUs over TCP: a reset, with a move and without one. */
static void late__a_death_before_the_last_fpdus_are_read(void **state)
{
	struct peer p;

	(void)state;
	for (int moves = 0; moves < 2; moves++) {
		peer_join(&p, false, true);
		peer_take_offer(&p);
		end_post(&p.e, AW_OP_SEND, &p.e, 700);
		if (moves)
			await_move(&p);
		peer_hang_up(&p);
		assert_int_equal(end_soon(&p), AW_E_MPA_CLOSED);
		peer_part(&p);
	}
}

/* The responder has moved, and its socket is not writable, since the peer reads nothing of it. */
static void make_unwritable(struct peer *p)
{
	uint64_t start = aw_now_ns();
	int small = 4096;

	peer_join(p, false, true);
	setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	peer_take_offer(p);
	while (aw_poll_now(p->e.qp->fd, POLLOUT) != 0) {
		end_post(&p->e, AW_OP_WRITE, &p->e, 8192);
		end_wait_cqe(&p->e);
		assert_soon(start);
	}
	aw_lock(&p->e.qp->lock);
	bool all_sent = !p->e.qp->batch;

	aw_unlock(&p->e.qp->lock);
	assert_true(all_sent);
	await_move(p);
	assert_int_equal(aw_poll_now(p->e.qp->fd, POLLOUT), 0);
	peer_post_recv(p, 500);
}

/* The responder's last FPDU over TCP waits behind others that the socket has no room for. */
static void make_full(struct peer *p)
{
	uint64_t start = aw_now_ns();

	peer_join(p, false, true);
	peer_take_offer(p);
	for (int posts = 0; !end_is_full(&p->e); assert_soon(start))
		if (posts++ < 32)
			end_post(&p->e, AW_OP_WRITE, &p->e, BUF_OCTETS);
	end_fill_socket(&p->e, p->fd);
	peer_put_move(p, MOVE_VERDICT, p->verdict);
	p->sends_memory = true;
	peer_wait_state(p, AW_MOVE_NEVER);
	peer_post_recv(p, 500);
}

static uint64_t rx_pos(struct peer *p)
{
	aw_lock(&p->e.qp->lock);
	uint64_t pos = p->e.qp->core.rx_pos;

	aw_unlock(&p->e.qp->lock);
	return pos;
}

/* A Send comes while pollers have the QP, so that no bell is rung for it. */
static void put_for_pollers(struct peer *p)
{
	struct aw_uqp *qp = p->e.qp;

	aw_lock(&qp->lock);
	uqp_leave_to_pollers(qp);
	peer_put_send(p, 500);
	aw_unlock(&qp->lock);
}

static void late__a_turn_without_room_in_the_socket(void **state)
{
	static void (*const makes[])(struct peer *) = { make_unwritable, make_full };
	struct peer p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		makes[i](&p);
		uint64_t from = rx_pos(&p), start = aw_now_ns();

		put_for_pollers(&p);
		aw_cq_arm(&p.e.cq, AW_ARM_NEXT);
		while (rx_pos(&p) == from)
			assert_soon(start);
		peer_part(&p);
	}
}

static void late__such_a_turn_while_the_qp_closes(void **state)
{
	struct peer p;

	(void)state;
	make_unwritable(&p);
	aw_uqp_close(p.e.qp);
	put_for_pollers(&p);
	aw_duplex_close(&p.ring->duplex);
	aw_cq_arm(&p.e.cq, AW_ARM_NEXT);
	end_soon(&p);
	peer_part(&p);
}

/* Half an FPDU counts as a receive, and the hello waits for a whole one: a close does not. */
static void late__a_close_behind_half_an_fpdu(void **state)
{
	uint8_t octets[PEER_FPDU_MAX];
	struct peer p;
	uint64_t start;

	(void)state;
	peer_join(&p, false, true);
	peer_put_socket(&p, octets, peer_send_fpdu(&p, octets, 300) / 2);
	peer_wait_state(&p, AW_MOVE_OFFERED);
	start = aw_now_ns();
	aw_uqp_close(p.e.qp);
	peer_assert_over(&p);
	assert_soon(start);
	peer_part(&p);
}

static bool has_whole(const struct peer *p)
{
	struct aw_duplex *d = &p->ring->duplex;
	size_t ready = aw_duplex_ready(d);

	return ready > FPDU_LEN_FIELD && ready >= fpdu_size(get_be16(aw_duplex_rx(d)));
}

/* The ring is full as the initiator terminates the stream, and the peer's last FPDU over TCP comes before there is room. */
static void late__a_terminate_behind_a_full_ring(void **state)
{
	uint8_t *ulpdu = malloc(PEER_ULPDU_MAX);
	uint64_t start = aw_now_ns();
	struct peer p;

	(void)state;
	peer_join(&p, true, true);
	peer_move_halfway(&p);
	end_post(&p.e, AW_OP_WRITE, &p.e, BUF_OCTETS);
	assert_true(end_is_full(&p.e));
	peer_terminate_qp(&p);
	peer_put_move(&p, MOVE_LAST, NULL);
	do {
		while (!has_whole(&p))
			assert_soon(start);
	} while (peer_take(&p, ulpdu) > 200);
	peer_part(&p);
	free(ulpdu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late__the_peer_leaves_a_full_ring),
		cmocka_unit_test(late__a_death_before_the_last_fpdus_are_read),
		cmocka_unit_test(late__a_turn_without_room_in_the_socket),
		cmocka_unit_test(late__such_a_turn_while_the_qp_closes),
		cmocka_unit_test(late__a_close_behind_half_an_fpdu),
		cmocka_unit_test(late__a_terminate_behind_a_full_ring),
	};

	setenv("ANYWARP_HOST_PATH", "on", 1);
	return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
