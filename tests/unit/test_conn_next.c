// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The revision with which an initiator may ask once more, when the peer gave no Reply of revision 2.
#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "net/conn/conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>

/* Connects, and lets the raw peer read the Request. */
static void start_and_read(struct scene *s, const struct aw_mpa_local *local, bool again)
{
	uint8_t request[MPA_HDR_LEN + MPA_ENH_LEN];
	const struct aw_conn_ask ask = {
		.peer = (struct sockaddr *)&s->addr,
		.local = local,
		.again = again,
	};

	assert_int_equal(aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, &s->conn),
			 0);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, request, local == &scene_plain ? MPA_HDR_LEN : sizeof(request));
}

static void conn_connect__closed_without_a_reply(void **state)
{
	struct scene *s = *state;

	start_and_read(s, &scene_enhanced, false);
	shutdown(s->peer, SHUT_WR);
	assert_int_equal(scene_failed(s, ECONNRESET).next_revision, 2);
}

static void conn_connect__reset_without_a_reply(void **state)
{
	struct scene *s = *state;

	start_and_read(s, &scene_enhanced, false);
	tcp_reset(s->peer);
	s->peer = -1;
	assert_int_equal(scene_failed(s, ECONNRESET).next_revision, 2);
}

/* The first time its listener may have been closed. */
static void conn_connect__closed_without_a_reply_again(void **state)
{
	struct scene *s = *state;

	start_and_read(s, &scene_enhanced, true);
	shutdown(s->peer, SHUT_WR);
	assert_int_equal(scene_failed(s, ECONNRESET).next_revision, 1);
}

static void conn_connect__closed_without_a_reply_revision_1(void **state)
{
	struct scene *s = *state;

	start_and_read(s, &scene_plain, false);
	shutdown(s->peer, SHUT_WR);
	assert_int_equal(scene_failed(s, ECONNRESET).next_revision, 0);
}

static void conn_connect__reply_of_revision_1(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct aw_conn_info info;

	start_and_read(s, &scene_enhanced, false);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, 0, 1));
	info = scene_failed(s, EPROTO);
	assert_int_equal(info.next_revision, 1);
}

/* A rejection is an answer, whatever its revision. */
static void conn_connect__reject_of_revision_1(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	start_and_read(s, &scene_enhanced, false);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_REJECT, 1));
	s->conn = heard_await(&s->heard, 0, AW_CONN_REJECTED);
	assert_int_equal(aw_conn_info(s->conn)->next_revision, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_connect__closed_without_a_reply),
		TEST(conn_connect__reset_without_a_reply),
		TEST(conn_connect__closed_without_a_reply_again),
		TEST(conn_connect__closed_without_a_reply_revision_1),
		TEST(conn_connect__reply_of_revision_1),
		TEST(conn_connect__reject_of_revision_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
