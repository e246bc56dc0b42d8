// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that answers a Request after minutes: what the two ends of a conn say to each other until then
// (docs/extensions.md, "Waits"). The clock is the test's.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "../lib/until.h"
#include "base/clock.h"
#include "net/base/bounds.h"
#include "net/conn/conn_machine.h"
#include "net/progress/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define OFFERS (MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER)
#define TAKES (OFFERS | MPA_FLAG_PLACEMENT_OFFER)
#define MINUTE 12 /* waits in it */

static const uint8_t wait_frame[MPA_HDR_LEN] = "MPA ID Rep Frame\x06\x02\0";
static _Atomic int64_t skew_ns;

int64_t __real_aw_now_ns(void);
int64_t __wrap_aw_now_ns(void);

int64_t __wrap_aw_now_ns(void)
{
	return __real_aw_now_ns() + skew_ns;
}

/* The clock goes on, and the progress thread looks at it. */
static void pass_ms(uint32_t ms)
{
	skew_ns += (int64_t)ms * 1000000;
	aw_engine_kick();
}

static struct aw_mpa_local patient(void)
{
	struct aw_mpa_local local = scene_enhanced;

	local.extensions = local.placement = local.waits = true;
	return local;
}

static uint32_t waits_of(struct aw_conn *c)
{
	pthread_mutex_lock(&c->lock);
	uint32_t waits = c->waits;

	pthread_mutex_unlock(&c->lock);
	return waits;
}

static void connect_to_peer(struct scene *s, const struct aw_mpa_local *local)
{
	const struct aw_conn_ask ask = { .peer = (struct sockaddr *)&s->addr, .local = local };
	uint8_t request[MPA_HDR_LEN + MPA_ENH_LEN];

	assert_int_equal(aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, &s->conn),
			 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, request, sizeof(request));
	assert_int_equal(request[16], MPA_FLAG_CRC | TAKES);
}

static void say_wait(struct scene *s, uint32_t already)
{
	tcp_send(s->peer, wait_frame, sizeof(wait_frame));
	until(waits_of(s->conn) == already + 1);
}

static void initiator__is_accepted_after_a_minute(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	connect_to_peer(s, &local);
	for (uint32_t i = 0; i < MINUTE; i++) {
		pass_ms(AW_CONN_WAIT_MS);
		say_wait(s, i);
	}
	assert_int_equal(heard_count(&s->heard), 0);
	tcp_send(s->peer, octets,
		 scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	assert_true(s->qp.stream.extensions);
}

static void initiator__gives_up_after_the_last_wait(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;

	connect_to_peer(s, &local);
	pass_ms(AW_CONN_WAIT_MS);
	say_wait(s, 0);
	pass_ms(AW_CONN_STARTUP_MS);
	scene_failed(s, ETIMEDOUT);
	tcp_assert_over(s->peer);
}

/* A stranger never sends one; it has ten seconds. */
static void initiator__gives_up_on_a_peer_without_waits(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;

	connect_to_peer(s, &local);
	pass_ms(AW_CONN_STARTUP_MS);
	scene_failed(s, ETIMEDOUT);
	assert_int_equal(waits_of(s->conn), 0);
}

static void initiator__takes_waits_up_to_the_bound(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;

	aw_bounds.waits_max = 3;
	aw_bounds.startup_ms = 3600000; /* the bound alone ends it */
	connect_to_peer(s, &local);
	for (uint32_t i = 0; i < 3; i++)
		say_wait(s, i);
	assert_int_equal(heard_count(&s->heard), 0);
	tcp_send(s->peer, wait_frame, sizeof(wait_frame));
	scene_failed(s, ETIMEDOUT);
}

/* The peer breaks off in the middle of a wait. */
static void initiator__half_a_wait(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;

	connect_to_peer(s, &local);
	say_wait(s, 0);
	tcp_send(s->peer, wait_frame, sizeof(wait_frame) - 1);
	close(s->peer);
	s->peer = -1;
	scene_failed(s, ECONNRESET);
}

static void request(struct scene *s, const struct aw_mpa_local *local, uint8_t flags)
{
	uint8_t octets[MPA_FRAME_MAX];

	scene_respond(s, local);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REQUEST, flags, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
}

static void accept_request(struct scene *s, uint8_t flags)
{
	uint8_t octets[MPA_HDR_LEN + MPA_ENH_LEN];

	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 4, 4, NULL, 0), 0);
	tcp_recv(s->peer, octets, sizeof(octets));
	assert_memory_equal(octets, "MPA ID Rep Frame", 16);
	assert_int_equal(octets[16], flags);
}

static void responder__says_every_five_seconds_that_it_lives(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;
	uint8_t octets[MPA_HDR_LEN];

	request(s, &local, TAKES);
	for (int i = 0; i < MINUTE; i++) {
		pass_ms(AW_CONN_WAIT_MS);
		tcp_recv(s->peer, octets, sizeof(octets));
		assert_memory_equal(octets, wait_frame, sizeof(octets));
	}
	accept_request(s, MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_PLACEMENT_AGREE);
}

static _Atomic uint32_t rounds;

static void on_round(struct aw_watch *w, uint32_t events)
{
	(void)w;
	assert_int_equal(events, AW_WATCH_TIMEOUT);
	rounds++;
}

/* The progress thread has looked at all deadlines that are due by now. */
static void await_round(void)
{
	static struct aw_watch round;
	uint32_t before = rounds;

	assert_int_equal(aw_watch_add(&round, -1, 0, on_round, NULL), 0);
	aw_watch_deadline(&round, AW_CONN_STARTUP_MS);
	pass_ms(AW_CONN_STARTUP_MS);
	until(rounds > before);
	aw_watch_remove_wait(&round);
}

static void assert_silent(struct scene *s)
{
	uint8_t octet;

	assert_int_equal(recv(s->peer, &octet, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void responder__stops_at_the_bound(void **state)
{
	struct aw_mpa_local local = patient();
	struct scene *s = *state;
	uint8_t octets[2 * MPA_HDR_LEN];

	aw_bounds.waits_max = 2;
	request(s, &local, TAKES);
	for (int i = 0; i < 4; i++)
		await_round();
	tcp_recv(s->peer, octets, sizeof(octets));
	assert_silent(s);
	accept_request(s, MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_PLACEMENT_AGREE);
}

static void stranger(struct scene *s, bool extensions, uint8_t flags, uint8_t reply)
{
	struct aw_mpa_local local = patient();

	local.extensions = extensions;
	request(s, &local, flags);
	for (int i = 0; i < 3; i++)
		await_round();
	assert_silent(s);
	accept_request(s, MPA_FLAG_CRC | reply);
}

static void responder__says_nothing_to_a_stranger(void **state)
{
	stranger(*state, true, MPA_FLAG_ENHANCED, MPA_FLAG_ENHANCED);
}

/* An anywarp that knows the extensions but no waits. */
static void responder__says_nothing_to_an_older_end(void **state)
{
	stranger(*state, true, OFFERS, MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE);
}

static void responder__says_nothing_where_the_bit_stands_alone(void **state)
{
	stranger(*state, true, MPA_FLAG_ENHANCED | MPA_FLAG_HOST, MPA_FLAG_ENHANCED);
}

static void responder__says_nothing_without_extensions(void **state)
{
	stranger(*state, false, TAKES, MPA_FLAG_ENHANCED);
}

static int teardown(void **state)
{
	aw_bounds.waits_max = AW_CONN_WAITS_MAX;
	return scene_teardown(state);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, scene_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(initiator__is_accepted_after_a_minute),
		WITH(initiator__gives_up_after_the_last_wait),
		WITH(initiator__gives_up_on_a_peer_without_waits),
		WITH(initiator__takes_waits_up_to_the_bound),
		WITH(initiator__half_a_wait),
		WITH(responder__says_every_five_seconds_that_it_lives),
		WITH(responder__stops_at_the_bound),
		WITH(responder__says_nothing_to_a_stranger),
		WITH(responder__says_nothing_to_an_older_end),
		WITH(responder__says_nothing_where_the_bit_stands_alone),
		WITH(responder__says_nothing_without_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
