// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A conn as responder, against a raw TCP peer that does everything an initiator can do in MPA
// start-up.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "net/base/bounds.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/epoll.h>

static void request(struct scene *s, uint8_t flags, uint8_t revision)
{
	uint8_t octets[MPA_FRAME_MAX];

	scene_respond(s, &scene_enhanced);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REQUEST, flags, revision));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
}

static struct mpa_frame read_reply(struct scene *s, uint8_t *octets, size_t len)
{
	struct mpa_frame frame;
	size_t used;

	tcp_recv(s->peer, octets, len);
	assert_int_equal(mpa_parse(octets, len, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, len);
	assert_int_equal(frame.kind, MPA_REPLY);
	return frame;
}

static void conn_accept__reply_then_qp(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame;
	struct mpa_enhanced enh;

	scene_respond(s, &scene_enhanced);
	tcp_send_slowly(s->peer, octets, scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(aw_conn_info(s->conn)->result.ird, 4);
	tcp_send(s->peer, "early", 5);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 3, 2, "yes", 3), 0);
	frame = read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN + 3);
	assert_memory_equal(frame.pd + MPA_ENH_LEN, "yes", 3);
	enh = mpa_enhanced_get(frame.pd);
	assert_int_equal(enh.ird, 3);
	assert_int_equal(enh.ord, 2);
	assert_false(s->qp.stream.initiator);
	assert_true(s->qp.stream.crc && s->qp.stream.p2p);
	assert_int_equal(s->qp.stream.ird, 3);
	assert_int_equal(s->qp.stream.ord, 2);
	assert_int_equal(recv(s->qp.fd, octets, sizeof(octets), 0), 5);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 0, 0, NULL, 0), EINVAL);
	assert_int_equal(aw_conn_reject(s->conn, NULL, 0), EINVAL);
}

/* What start-up came to reaches the peer and the QP. */
static void conn_accept__extensions(void **state)
{
	struct aw_mpa_local local = scene_enhanced;
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame;

	local.extensions = local.placement = true;
	scene_respond(s, &local);
	tcp_send(s->peer, octets,
		 scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 3, 2, NULL, 0), 0);
	frame = read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	assert_int_equal(frame.flags, MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE);
	assert_true(s->qp.stream.extensions);
	assert_false(s->qp.stream.placement);
}

/* Nor more than that, where the peer offers no more. */
static void conn_accept__placement(void **state)
{
	struct aw_mpa_local local = scene_enhanced;
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame;

	local.extensions = local.placement = true;
	scene_respond(s, &local);
	tcp_send(s->peer, octets,
		 scene_frame(octets, MPA_REQUEST,
			     MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER | MPA_FLAG_PLACEMENT_OFFER, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 3, 2, NULL, 0), 0);
	frame = read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	assert_int_equal(frame.flags, MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_PLACEMENT_AGREE);
	assert_true(s->qp.stream.placement);
}

static void conn_accept__bounds(void **state)
{
	struct scene *s = *state;
	uint8_t pd[MPA_PD_MAX] = { 0 }, octets[MPA_FRAME_MAX];

	request(s, MPA_FLAG_ENHANCED, 2);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 5, 4, NULL, 0), EINVAL);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 4, 5, NULL, 0), EINVAL);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 4, 4, pd, 509), EINVAL);
	assert_int_equal(aw_conn_reject(s->conn, pd, 509), EINVAL);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 4, 4, pd, 508), 0);
	read_reply(s, octets, MPA_FRAME_MAX);
}

static void conn_accept__revision_1(void **state)
{
	struct scene *s = *state;
	uint8_t pd[MPA_PD_MAX] = { 0 }, octets[MPA_FRAME_MAX];
	struct mpa_frame frame;

	request(s, 0, 1);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 16, 8, pd, 512), 0);
	frame = read_reply(s, octets, MPA_FRAME_MAX);
	assert_int_equal(frame.revision, 1);
	assert_int_equal(s->qp.stream.ird, 16);
	assert_false(s->qp.stream.p2p);
}

static void conn_accept__peer_left(void **state)
{
	struct scene *s = *state;
	struct heard later = HEARD_INIT;

	request(s, MPA_FLAG_ENHANCED, 2);
	tcp_reset(s->peer);
	s->peer = -1;
	/* Nobody was told of the failure; the next owner is. */
	aw_conn_listen_to(s->conn, heard_fn, &later);
	assert_ptr_equal(heard_await(&later, 0, AW_CONN_FAILED), s->conn);
	assert_int_equal(aw_conn_info(s->conn)->err, ECONNRESET);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 4, 4, NULL, 0), ECONNRESET);
	assert_int_equal(aw_conn_reject(s->conn, NULL, 0), 0);
	assert_int_equal(heard_count(&s->heard), 1);
}

/* What comes while the program decides waits in the socket; the progress thread sleeps until the peer leaves. */
static void conn_accept__early_bytes_then_peer_left(void **state)
{
	struct scene *s = *state;
	struct heard later = HEARD_INIT;

	request(s, MPA_FLAG_ENHANCED, 2);
	aw_conn_listen_to(s->conn, heard_fn, &later);
	scene_await_events(s, EPOLLIN | EPOLLRDHUP);
	tcp_send(s->peer, "early", 5);
	scene_await_events(s, EPOLLRDHUP);
	assert_int_equal(heard_count(&later), 0);
	shutdown(s->peer, SHUT_WR);
	heard_await(&later, 0, AW_CONN_FAILED);
	assert_int_equal(aw_conn_info(s->conn)->err, ECONNRESET);
}

static void conn_accept__qp_refuses(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];

	request(s, 0, 1);
	s->qp.err = EINVAL;
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 0, 0, "yes", 3), EINVAL);
	assert_true(read_reply(s, octets, MPA_HDR_LEN).flags & MPA_FLAG_REJECT);
	tcp_assert_over(s->peer);
}

static void conn_reject__reply_arrives(void **state)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame;

	request(s, MPA_FLAG_ENHANCED, 2);
	tcp_send(s->peer, "unread", 6); /* must not turn the close into a reset */
	assert_int_equal(aw_conn_reject(s->conn, "no", 2), 0);
	frame = read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN + 2);
	assert_true(frame.flags & MPA_FLAG_REJECT);
	assert_memory_equal(frame.pd + MPA_ENH_LEN, "no", 2);
	assert_int_equal(recv(s->peer, octets, 1, 0), 0);
}

static void conn_respond__silent_peer(void **state)
{
	struct scene *s = *state;

	aw_bounds.startup_ms = 30;
	scene_respond(s, &scene_enhanced);
	tcp_send(s->peer, "MPA", 3);
	scene_failed(s, ETIMEDOUT);
	tcp_assert_over(s->peer);
}

static void conn_respond__half_a_request_and_fin(void **state)
{
	struct scene *s = *state;

	scene_respond(s, &scene_enhanced);
	tcp_send(s->peer, "MPA ID", 6);
	shutdown(s->peer, SHUT_WR);
	scene_failed(s, ECONNRESET);
}

static void refuse(struct scene *s, const void *octets, size_t len)
{
	scene_respond(s, &scene_enhanced);
	tcp_send(s->peer, octets, len);
	scene_failed(s, EPROTO);
	tcp_assert_over(s->peer);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 0, 0, NULL, 0), ECONNRESET);
}

static void conn_respond__wrong_key(void **state)
{
	refuse(*state, "GET / HTTP/1.1\r\n\r\n", 18);
}

static void conn_respond__private_data_too_long(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	scene_frame(octets, MPA_REQUEST, 0, 1);
	put_be16(octets + 18, 0xffff);
	refuse(*state, octets, MPA_HDR_LEN);
}

static void conn_respond__reply_for_a_request(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	refuse(*state, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED, 2));
}

static void conn_respond__revision_0(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	refuse(*state, octets, scene_frame(octets, MPA_REQUEST, 0, 0));
}

static void conn_respond__enhanced_without_its_octets(void **state)
{
	uint8_t octets[MPA_FRAME_MAX];

	scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED, 2);
	put_be16(octets + 18, 3);
	refuse(*state, octets, MPA_HDR_LEN + 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_accept__reply_then_qp),
		TEST(conn_accept__extensions),
		TEST(conn_accept__placement),
		TEST(conn_accept__bounds),
		TEST(conn_accept__revision_1),
		TEST(conn_accept__peer_left),
		TEST(conn_accept__early_bytes_then_peer_left),
		TEST(conn_accept__qp_refuses),
		TEST(conn_reject__reply_arrives),
		TEST(conn_respond__silent_peer),
		TEST(conn_respond__half_a_request_and_fin),
		TEST(conn_respond__wrong_key),
		TEST(conn_respond__private_data_too_long),
		TEST(conn_respond__reply_for_a_request),
		TEST(conn_respond__revision_0),
		TEST(conn_respond__enhanced_without_its_octets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
