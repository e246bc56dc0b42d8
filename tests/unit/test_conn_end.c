// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An accepted conn that no QP takes, to a peer whose QP of the roce persona is to wait for the next
// connection: a Terminate would end that QP.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

/* Connects with plain_end, and lets the raw peer accept. */
static void connect_accepted(struct scene *s)
{
	uint8_t octets[MPA_FRAME_MAX];
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&s->addr,
		.local = &scene_enhanced,
		.plain_end = true,
	};

	assert_int_equal(aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, &s->conn),
			 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
}

static void assert_plain_end(struct scene *s)
{
	uint8_t octet;

	aw_conn_destroy(s->conn);
	s->conn = NULL;
	assert_int_equal(recv(s->peer, &octet, 1, 0), 0);
}

static void conn_destroy__sends_no_terminate(void **state)
{
	connect_accepted(*state);
	assert_plain_end(*state);
}

static void conn_attach__sends_no_terminate(void **state)
{
	struct scene *s = *state;

	connect_accepted(s);
	s->qp.err = ENOMEM;
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), ENOMEM);
	assert_plain_end(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_destroy__sends_no_terminate),
		TEST(conn_attach__sends_no_terminate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
