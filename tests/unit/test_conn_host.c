// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A move into memory in common, as a conn offers it and agrees to it, against a raw TCP peer. The stream's QP makes the move.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

static struct aw_mpa_local near(void)
{
	struct aw_mpa_local local = scene_enhanced;

	local.extensions = local.host = true;
	return local;
}

static void read_reply(struct scene *s, uint8_t *octets, size_t len, struct mpa_frame *frame)
{
	size_t used;

	tcp_recv(s->peer, octets, len);
	assert_int_equal(mpa_parse(octets, len, frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, len);
}

/* The Reply that answers an offer of memory with these flags. */
static struct mpa_frame answer_offer(struct scene *s, const struct aw_mpa_local *local,
				     uint8_t offer, uint8_t *octets)
{
	struct mpa_frame frame;

	scene_respond(s, local);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED | offer, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 3, 2, NULL, 0), 0);
	read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN, &frame);
	return frame;
}

/* From the QP's socket, which does not wait. */
static void recv_at_qp(struct scene *s, void *octets, size_t len)
{
	struct pollfd pollfd = { .fd = s->qp.fd, .events = POLLIN };

	assert_int_equal(poll(&pollfd, 1, TCP_WAIT_S * 1000), 1);
	tcp_recv(s->qp.fd, octets, len);
}

/* Each way, what the ends send next is the stream's. */
static void assert_stream_follows(struct scene *s)
{
	uint8_t octets[6];

	tcp_send(s->qp.fd, "of QP", 6);
	tcp_recv(s->peer, octets, sizeof(octets));
	assert_memory_equal(octets, "of QP", 6);
	tcp_send(s->peer, "a peer", 6);
	recv_at_qp(s, octets, sizeof(octets));
	assert_memory_equal(octets, "a peer", 6);
}

static void conn_accept__memory(void **state)
{
	struct scene *s = *state;
	const struct aw_mpa_local local = near();
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame =
		answer_offer(s, &local, MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST, octets);

	assert_int_equal(frame.flags,
			 MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE | MPA_FLAG_HOST);
	assert_true(s->qp.stream.moves);
	assert_stream_follows(s);
}

static void assert_no_memory(void **state, const struct aw_mpa_local *local, uint8_t offer)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame = answer_offer(s, local, offer, octets);

	assert_false(frame.flags & MPA_FLAG_HOST);
	assert_false(s->qp.stream.moves);
	assert_stream_follows(s);
}

static void conn_accept__memory_not_offered(void **state)
{
	const struct aw_mpa_local local = near();

	assert_no_memory(state, &local, MPA_FLAG_EXT_OFFER);
}

static void conn_accept__memory_offered_alone(void **state)
{
	const struct aw_mpa_local local = near();

	assert_no_memory(state, &local, MPA_FLAG_HOST);
}

static void conn_accept__memory_with_markers(void **state)
{
	const struct aw_mpa_local local = near();

	assert_no_memory(state, &local, MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST | MPA_FLAG_MARKERS);
}

static void conn_accept__memory_not_wanted(void **state)
{
	struct aw_mpa_local local = near();

	local.host = false;
	assert_no_memory(state, &local, MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST);
}

static void start(struct scene *s, const struct aw_mpa_local *local)
{
	const struct aw_conn_ask ask = { .peer = (struct sockaddr *)&s->addr, .local = local };

	assert_int_equal(aw_conn_connect(tcp_socket(AF_INET), &ask, heard_fn, &s->heard, &s->conn),
			 0);
}

/* Offers memory, and is given this answer, behind which the stream follows at once. */
static void offer_memory(struct scene *s, uint8_t answer)
{
	const struct aw_mpa_local local = near();
	uint8_t octets[MPA_FRAME_MAX];
	size_t len;

	start(s, &local);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	assert_int_equal(octets[16],
			 MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST);
	len = scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED | answer, 2);
	memcpy(octets + len, "stream", 6);
	tcp_send(s->peer, octets, len + 6);
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
	recv_at_qp(s, octets, 6);
	assert_memory_equal(octets, "stream", 6);
	assert_stream_follows(s);
}

static void conn_attach__memory(void **state)
{
	struct scene *s = *state;

	offer_memory(s, MPA_FLAG_EXT_AGREE | MPA_FLAG_HOST);
	assert_true(s->qp.stream.moves);
}

static void assert_not_agreed(struct scene *s, uint8_t answer)
{
	offer_memory(s, answer);
	assert_false(s->qp.stream.moves);
}

static void conn_attach__memory_as_siw_answers(void **state)
{
	assert_not_agreed(*state, MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST);
}

static void conn_attach__memory_not_agreed(void **state)
{
	assert_not_agreed(*state, MPA_FLAG_EXT_AGREE);
}

static void conn_attach__memory_without_extensions(void **state)
{
	assert_not_agreed(*state, MPA_FLAG_HOST);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(conn_accept__memory),
		TEST(conn_accept__memory_not_offered),
		TEST(conn_accept__memory_offered_alone),
		TEST(conn_accept__memory_with_markers),
		TEST(conn_accept__memory_not_wanted),
		TEST(conn_attach__memory),
		TEST(conn_attach__memory_as_siw_answers),
		TEST(conn_attach__memory_not_agreed),
		TEST(conn_attach__memory_without_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
