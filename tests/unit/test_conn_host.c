// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory in common, as a conn offers it, agrees to it and finds it, against a raw TCP peer.
#include "net/conn/conn.h"

#include "../lib/conn_scene.h"
#include "../lib/tcp.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

static struct aw_mpa_local near(void)
{
	struct aw_mpa_local local = scene_enhanced;

	local.extensions = local.host = true;
	return local;
}

static void respond(struct scene *s, const struct aw_mpa_local *local)
{
	int fd;

	s->peer = tcp_connect(&s->addr);
	fd = tcp_accept(s->listener);
	tcp_unblock(fd);
	assert_int_equal(aw_conn_respond(fd, false, local, heard_fn, &s->heard, &s->conn), 0);
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

	respond(s, local);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REQUEST, MPA_FLAG_ENHANCED | offer, 2));
	heard_await(&s->heard, 0, AW_CONN_REQUEST);
	assert_int_equal(aw_conn_accept(s->conn, &s->qp.uqp, 3, 2, NULL, 0), 0);
	read_reply(s, octets, MPA_HDR_LEN + MPA_ENH_LEN, &frame);
	return frame;
}

/* Behind the Reply comes a hello, of which the initiator can open the memory. */
static void conn_accept__memory(void **state)
{
	struct scene *s = *state;
	const struct aw_mpa_local local = near();
	uint8_t octets[MPA_FRAME_MAX], verdict[AW_HOST_VERDICT_LEN];
	struct mpa_frame frame =
		answer_offer(s, &local, MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST, octets);
	struct aw_host_ring *ring;
	const char *cause;

	assert_int_equal(frame.flags,
			 MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE | MPA_FLAG_HOST);
	tcp_recv(s->peer, octets, AW_HOST_HELLO_LEN);
	assert_true(aw_host_are_ports(octets, (const struct sockaddr *)&aw_conn_info(s->conn)->peer,
				      (const struct sockaddr *)&aw_conn_info(s->conn)->local));
	assert_false(aw_host_are_ports(octets,
				       (const struct sockaddr *)&aw_conn_info(s->conn)->local,
				       (const struct sockaddr *)&aw_conn_info(s->conn)->peer));
	ring = aw_host_ring_open(octets, verdict, &cause);
	assert_non_null(ring);
	assert_non_null(s->qp.ring);
	assert_int_equal(aw_host_ring_decide(s->qp.ring, verdict), AW_HOST_RING);
	aw_host_ring_free(ring);
	aw_host_ring_free(s->qp.ring);
}

static void assert_no_memory(void **state, const struct aw_mpa_local *local, uint8_t offer)
{
	struct scene *s = *state;
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame = answer_offer(s, local, offer, octets);

	assert_false(frame.flags & MPA_FLAG_HOST);
	assert_null(s->qp.ring);
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

/* Offers memory, and is given this answer and what follows it. The conn's first event is told then. */
static void offer_memory(struct scene *s, uint8_t answer, const uint8_t *more, size_t len)
{
	const struct aw_mpa_local local = near();
	uint8_t octets[MPA_FRAME_MAX];

	start(s, &local);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	assert_int_equal(octets[16],
			 MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER | MPA_FLAG_HOST);
	tcp_send(s->peer, octets, scene_frame(octets, MPA_REPLY, MPA_FLAG_ENHANCED | answer, 2));
	tcp_send_slowly(s->peer, more, len);
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	assert_int_equal(aw_conn_attach(s->conn, &s->qp.uqp), 0);
}

/* The hello is waited for, and what is made of it said first. */
static void assert_verdict(struct scene *s, const uint8_t *hello, const uint8_t *wanted)
{
	uint8_t verdict[AW_HOST_VERDICT_LEN];

	offer_memory(s, MPA_FLAG_EXT_AGREE | MPA_FLAG_HOST, hello, AW_HOST_HELLO_LEN);
	tcp_recv(s->peer, verdict, sizeof(verdict));
	assert_memory_equal(verdict, wanted, sizeof(verdict));
}

/* No memory that the peer's hello would lead to is between these ports. */
static void conn_attach__hello_over_a_relay(void **state)
{
	static const uint8_t tcp[AW_HOST_VERDICT_LEN];
	struct scene *s = *state;
	uint8_t hello[AW_HOST_HELLO_LEN];
	const char *cause;
	struct aw_host_ring *ring = aw_host_ring_make(hello, &cause);

	assert_non_null(ring);
	memset(hello + 8, 0, 4);
	assert_verdict(s, hello, tcp);
	assert_null(s->qp.ring);
	aw_host_ring_free(ring);
}

static void conn_attach__hello_of_nothing(void **state)
{
	static const uint8_t tcp[AW_HOST_VERDICT_LEN];
	struct scene *s = *state;
	uint8_t hello[AW_HOST_HELLO_LEN];

	memset(hello, 0xff, sizeof(hello));
	assert_verdict(s, hello, tcp);
	assert_null(s->qp.ring);
}

/* What follows such an answer is the stream's. */
static void assert_not_agreed(struct scene *s, uint8_t answer)
{
	uint8_t octets[6];

	offer_memory(s, answer, (const uint8_t *)"stream", 6);
	tcp_recv(s->qp.fd, octets, sizeof(octets));
	assert_memory_equal(octets, "stream", 6);
	assert_null(s->qp.ring);
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

/* Who never takes the connection leaves a Terminate behind a verdict for TCP. */
static void conn_destroy__behind_a_hello(void **state)
{
	static const uint8_t tcp[AW_HOST_VERDICT_LEN];
	const struct aw_mpa_local local = near();
	uint8_t octets[MPA_FRAME_MAX], hello[AW_HOST_HELLO_LEN] = { 0 };
	struct scene *s = *state;

	start(s, &local);
	s->peer = tcp_accept(s->listener);
	tcp_recv(s->peer, octets, MPA_HDR_LEN + MPA_ENH_LEN);
	tcp_send(s->peer, octets,
		 scene_frame(octets, MPA_REPLY,
			     MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE | MPA_FLAG_HOST, 2));
	tcp_send(s->peer, hello, sizeof(hello));
	heard_await(&s->heard, 0, AW_CONN_ACCEPTED);
	aw_conn_destroy(s->conn);
	s->conn = NULL;
	tcp_recv(s->peer, octets, AW_HOST_VERDICT_LEN + 2);
	assert_memory_equal(octets, tcp, sizeof(tcp));
	assert_true(get_be16(octets + AW_HOST_VERDICT_LEN) > 0);
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
		TEST(conn_attach__hello_over_a_relay),
		TEST(conn_attach__hello_of_nothing),
		TEST(conn_attach__memory_as_siw_answers),
		TEST(conn_attach__memory_not_agreed),
		TEST(conn_attach__memory_without_extensions),
		TEST(conn_destroy__behind_a_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
