// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ends of a stream that is about to move, or moves: each is the same end that it would be over TCP.
#include "../lib/move_peer.h"
#include "../lib/tcp.h"
#include "../lib/until.h"
#include "base/array.h"
#include "base/clock.h"
#include "net/base/policy_env.h"
#include "net/qp/carrier.h"
#include "net/qp/uqp_sock.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t zeros[MOVE_VERDICT_LEN];

static void assert_ended(struct peer *p, enum aw_error error)
{
	end_wait_event(&p->e, AW_UQP_CLOSED);
	until(aw_uqp_state(p->e.qp) == AW_QP_ERROR);
	assert_int_equal(peer_error(p), error);
	peer_part(p);
}

/* Through the memory, as a peer closes in order. */
static void close_memory(struct peer *p)
{
	aw_duplex_close(&p->ring->duplex);
	peer_ring_bells(p, 1);
}

static void await_closed_memory(struct peer *p)
{
	until(aw_duplex_peer_closed(&p->ring->duplex));
}

static void end__fin_before_the_verdict(void **state)
{
	uint8_t octets[PEER_FPDU_MAX];
	struct peer p;

	(void)state;
	for (size_t len = 0; len < 2; len++) {
		peer_join(&p, false, true);
		peer_take_offer(&p);
		peer_move_fpdu(&p, octets, MOVE_VERDICT, p.verdict);
		peer_put(&p, octets, len * 10);
		peer_shut(&p);
		peer_assert_over(&p);
		assert_ended(&p, len ? AW_E_MPA_CLOSED : AW_OK);
	}
}

static void close_before_verdict(struct peer *p)
{
	peer_join(p, false, true);
	peer_take_offer(p);
	peer_post_recv(p, 500);
	end_post(&p->e, AW_OP_SEND, &p->e, 700);
	aw_uqp_close(p->e.qp);
	peer_take_send(p, 700);
	assert_int_equal(end_wait_cqe(&p->e).cqe.status, AW_WC_SUCCESS);
}

/* What the peer needs to know is where the stream ends: in memory. */
static void end__a_close_before_the_verdict(void **state)
{
	struct peer p;

	(void)state;
	close_before_verdict(&p);
	peer_put_move(&p, MOVE_VERDICT, p.verdict);
	p.sends_memory = true;
	peer_put_send(&p, 500);
	peer_take_move(&p, MOVE_LAST);
	peer_assert_received(&p, 500);
	await_closed_memory(&p);
	assert_int_equal(aw_duplex_ready(&p.ring->duplex), 0);
	close_memory(&p);
	peer_assert_over(&p);
	assert_ended(&p, AW_OK);
}

static void end__a_close_before_a_verdict_of_zeros(void **state)
{
	struct peer p;

	(void)state;
	close_before_verdict(&p);
	peer_put_send(&p, 500);
	peer_put_move(&p, MOVE_VERDICT, zeros);
	peer_assert_received(&p, 500);
	peer_assert_over(&p);
	peer_shut(&p);
	assert_ended(&p, AW_OK);
}

/* A peer that ends its direction gives no verdict any more. */
static void end__a_close_without_a_verdict(void **state)
{
	struct peer p;

	(void)state;
	close_before_verdict(&p);
	peer_put_send(&p, 500);
	peer_shut(&p);
	peer_assert_received(&p, 500);
	peer_assert_over(&p);
	assert_ended(&p, AW_OK);
}

/* The hello comes behind the QP's own end. */
static void end__a_hello_after_the_close(void **state)
{
	struct peer p;

	(void)state;
	peer_join(&p, true, true);
	aw_uqp_close(p.e.qp);
	peer_make_offer(&p);
	peer_put_move(&p, MOVE_HELLO, p.hello);
	peer_assert_over(&p);
	peer_shut(&p);
	assert_ended(&p, AW_OK);
}

static void end__the_initiator_closes_halfway(void **state)
{
	struct peer p;

	(void)state;
	peer_join(&p, true, true);
	peer_move_halfway(&p);
	peer_post_recv(&p, 400);
	peer_post_recv(&p, 500);
	end_post(&p.e, AW_OP_SEND, &p.e, 700);
	aw_uqp_close(p.e.qp);
	peer_take_send(&p, 700);
	await_closed_memory(&p);
	assert_int_equal(end_wait_cqe(&p.e).cqe.status, AW_WC_SUCCESS);
	peer_put_send(&p, 400);
	peer_put_move(&p, MOVE_LAST, NULL);
	p.sends_memory = true;
	peer_put_send(&p, 500);
	peer_assert_received(&p, 400);
	peer_assert_received(&p, 500);
	close_memory(&p);
	assert_ended(&p, AW_OK);
}

/* Ways to die, none of which TLS takes for an end; with bytes in the memory that it has not read the peer's end is a reset in each. */
enum death {
	CLOSE,
	RESET,
	HALF_CLOSE,
	DEATHS,
};

static void die(struct peer *p, enum death death)
{
	switch (death) {
	case CLOSE:
		peer_hang_up(p);
		break;
	case RESET:
		tcp_reset(p->fd);
		p->fd = -1;
		break;
	case HALF_CLOSE:
		shutdown(p->fd, SHUT_WR);
		break;
	case DEATHS:
		break;
	}
}

/* At an initiator halfway, and at one or the other behind the move. */
static void end__the_peer_dies_with_bytes_unread(void **state)
{
	struct peer p;

	(void)state;
	for (unsigned int i = 0; i < 3 * DEATHS; i++) {
		peer_join(&p, i % 3 != 0, true);
		if (i % 3 == 1)
			peer_move_halfway(&p);
		else
			peer_move(&p);
		end_post(&p.e, AW_OP_SEND, &p.e, 700);
		until(aw_duplex_ready(&p.ring->duplex) >= 700);
		die(&p, (enum death)(i / 3));
		assert_ended(&p, AW_E_MPA_CLOSED);
	}
}

/* The peer has read all. */
static void end__the_peer_dies_halfway(void **state)
{
	struct peer p;

	(void)state;
	for (enum death death = CLOSE; death < DEATHS; death++) {
		peer_join(&p, true, true);
		peer_move_halfway(&p);
		end_post(&p.e, AW_OP_SEND, &p.e, 700);
		peer_take_send(&p, 700);
		die(&p, death);
		assert_ended(&p, death == RESET || p.tls ? AW_E_MPA_CLOSED : AW_OK);
	}
}

/* The QP is in memory one way, or has made its offer. */
static void join_midway(struct peer *p, bool initiates)
{
	peer_join(p, initiates, true);
	if (initiates)
		peer_move_halfway(p);
	else
		peer_take_offer(p);
}

/* What it had written before comes first, also where it was the QP that had not read so far. */
static void end__bytes_before_the_death_come_first(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool initiates = i & 1, held = i & 2;
		uint8_t octets[2 * PEER_FPDU_MAX];
		struct peer p;
		size_t size = 0;

		join_midway(&p, initiates);
		if (held)
			size = peer_send_fpdu(&p, octets, 300);
		if (initiates)
			size += peer_move_fpdu(&p, octets + size, MOVE_LAST, NULL);
		else
			size += peer_move_fpdu(&p, octets + size, MOVE_VERDICT, p.verdict);
		if (!held)
			peer_post_recv(&p, 200);
		peer_put_socket(&p, octets, size);
		if (held)
			end_wait_held(&p.e);
		p.sends_memory = true;
		peer_put_send(&p, 200);
		die(&p, HALF_CLOSE);
		if (held) {
			peer_post_recv(&p, 300);
			peer_assert_received(&p, 300);
			peer_post_recv(&p, 200);
		}
		peer_assert_received(&p, 200);
		assert_ended(&p, p.tls ? AW_E_MPA_CLOSED : AW_OK);
	}
}

/* Over TCP while the verdict is due, through memory behind it. */
static void end__the_qp_terminates(void **state)
{
	struct peer p;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		join_midway(&p, initiates);
		peer_terminate_qp(&p);
		assert_int_equal(peer_take_terminate(&p), AW_E_LOCAL_CATASTROPHIC);
		peer_assert_over(&p);
		assert_ended(&p, AW_E_LOCAL_CATASTROPHIC);
	}
}

static void put_terminate(struct peer *p)
{
	const struct ddp_hdr hdr = { .last = true,
				     .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
				     .qn = DDP_QN_TERMINATE,
				     .msn = 1 };
	const struct term_msg term = { .error = AW_E_RDMAP_ACCESS };
	uint8_t ulpdu[PEER_ULPDU_MAX], fpdu[PEER_FPDU_MAX];

	ddp_put(&hdr, ulpdu);
	peer_put(p, fpdu,
		 peer_fpdu(p, fpdu, ulpdu,
			   DDP_UNTAGGED_LEN + term_put(&term, ulpdu + DDP_UNTAGGED_LEN)));
}

static void end__the_peer_terminates(void **state)
{
	struct peer p;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		join_midway(&p, initiates);
		put_terminate(&p);
		end_wait_event(&p.e, AW_UQP_FATAL);
		assert_int_equal(p.e.qp->core.peer_error, AW_E_RDMAP_ACCESS);
		assert_ended(&p, peer_error(&p));
	}
}

static void leave_it(struct aw_uqp *qp)
{
	(void)qp;
}

/* At each step the program gives the stream up; peer_part sees that all is given back. */
static void end__the_program_gives_up(void **state)
{
	static void (*const steps[])(struct peer *) = {
		peer_take_offer, peer_move_halfway, peer_move, peer_stay, /* responder */
		peer_make_offer, peer_move_halfway, peer_move, peer_stay, /* initiator */
	};
	static void (*const ends[])(struct aw_uqp *) = { leave_it, aw_uqp_abort, aw_uqp_reset };
	struct peer p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps) * ARRAY_LEN(ends); i++) {
		size_t step = i % ARRAY_LEN(steps);

		peer_join(&p, step >= ARRAY_LEN(steps) / 2, true);
		steps[step](&p);
		ends[i / ARRAY_LEN(steps)](p.e.qp);
		peer_part(&p);
	}
}

/* Posts until the socket takes no more. */
static void fill_socket(struct peer *p)
{
	uint64_t start = aw_now_ns();

	for (int posts = 0; !end_is_full(&p->e);) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		if (posts++ < 32)
			end_post(&p->e, AW_OP_WRITE, &p->e, BUF_OCTETS);
	}
	end_fill_socket(&p->e, p->fd);
}

/* The QP's last FPDU over TCP cannot be sent before the peer is gone. */
static void end__the_peer_dies_before_the_last_fpdu(void **state)
{
	struct peer p;

	(void)state;
	for (enum death death = CLOSE; death < HALF_CLOSE; death++) {
		peer_join(&p, false, true);
		peer_take_offer(&p);
		fill_socket(&p);
		peer_put_move(&p, MOVE_VERDICT, p.verdict);
		peer_wait_state(&p, AW_MOVE_NEVER);
		die(&p, death);
		assert_ended(&p, AW_E_MPA_CLOSED);
	}
}

static _Atomic bool struck;

static void strike(struct aw_watch *w, uint32_t events)
{
	(void)w;
	(void)events;
	struck = true;
}

/* Every deadline that is set by now, of a few milliseconds, is met before. */
static void pass_short_deadlines(void)
{
	struct aw_watch clock;

	struck = false;
	assert_int_equal(aw_watch_add(&clock, -1, 0, strike, NULL), 0);
	aw_watch_deadline(&clock, 10);
	until(struck);
	aw_watch_remove_wait(&clock);
}

/*
 * The QP's socket is full, so that its last FPDU over TCP is due, and the progress thread owes it a turn in memory, as
 * after it has taken the QP back from pollers. The socket brings none.
 */
static void owe_turn(struct peer *p, bool closes)
{
	struct aw_uqp *qp;

	peer_join(p, false, true);
	peer_take_offer(p);
	qp = p->e.qp;
	fill_socket(p);
	peer_put_move(p, MOVE_VERDICT, p->verdict);
	peer_wait_state(p, AW_MOVE_NEVER);
	if (closes)
		aw_uqp_close(qp);
	aw_lock(&qp->lock);
	assert_true(qp->tx_blocked && qp->out->is_socket && !qp->in->is_socket);
	uqp_leave_to_pollers(qp);
	uqp_take_back(qp);
	assert_true(qp->ring->more);
	aw_uqp_push(qp);
	aw_uqp_unlock(qp);
	pass_short_deadlines();
}

static void end__a_turn_that_is_due_comes(void **state)
{
	struct peer p;

	(void)state;
	owe_turn(&p, false);
	aw_lock(&p.e.qp->lock);
	assert_false(p.e.qp->ring->more);
	aw_unlock(&p.e.qp->lock);
	peer_part(&p);
}

/* The deadline that brings such a turn is not taken for that of the close, which has ten seconds. */
static void end__a_turn_that_is_due_ends_no_close(void **state)
{
	struct peer p;

	(void)state;
	owe_turn(&p, true);
	assert_int_equal(aw_uqp_state(p.e.qp), AW_QP_CLOSING);
	peer_part(&p);
}

/* The QP has bytes to send, and closes behind them: it stays where it is, and says so. */
static void end__a_hello_while_the_close_waits(void **state)
{
	struct peer p;

	(void)state;
	peer_join(&p, true, true);
	fill_socket(&p);
	aw_uqp_close(p.e.qp);
	peer_make_offer(&p);
	peer_put_move(&p, MOVE_HELLO, p.hello);
	assert_memory_equal(peer_await_move(&p, MOVE_VERDICT).data, zeros, sizeof(zeros));
	aw_uqp_abort(p.e.qp);
	peer_part(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(end__fin_before_the_verdict),
		cmocka_unit_test(end__a_close_before_the_verdict),
		cmocka_unit_test(end__a_close_before_a_verdict_of_zeros),
		cmocka_unit_test(end__a_close_without_a_verdict),
		cmocka_unit_test(end__a_hello_after_the_close),
		cmocka_unit_test(end__the_initiator_closes_halfway),
		cmocka_unit_test(end__the_peer_dies_with_bytes_unread),
		cmocka_unit_test(end__the_peer_dies_halfway),
		cmocka_unit_test(end__bytes_before_the_death_come_first),
		cmocka_unit_test(end__the_qp_terminates),
		cmocka_unit_test(end__the_peer_terminates),
		cmocka_unit_test(end__the_program_gives_up),
		cmocka_unit_test(end__the_peer_dies_before_the_last_fpdu),
		cmocka_unit_test(end__a_turn_that_is_due_comes),
		cmocka_unit_test(end__a_turn_that_is_due_ends_no_close),
		cmocka_unit_test(end__a_hello_while_the_close_waits),
	};

	setenv("ANYWARP_HOST_PATH", "on", 1);
	return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
