// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs of the roce persona whose peer does not come, leaves, or is somebody else.
#include "walk.h"

#include "net/base/bounds.h"
#include "wire/mpa.h"
#include "wire/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	POST_WAIT_MS = 300,
	WAIT_MS = 5000, /* less than a call may take that a stranger could be held for */
	STRANGERS = 20, /* more than a QP lets wait */
};

static int setup(void **state)
{
	aw_bounds.post_wait_ms = POST_WAIT_MS;
	return fixture_setup(state);
}

/* A number of a QP that there was. */
static uint32_t qpn_of_nobody(struct fixture *f)
{
	struct ibv_qp *qp = qp_make(f);
	uint32_t qpn = qp->qp_num;

	assert_int_equal(ibv_destroy_qp(qp), 0);
	return qpn;
}

static void fails(struct walker *w)
{
	walker_sent(w, IBV_WC_RETRY_EXC_ERR);
	walker_sent(w, IBV_WC_WR_FLUSH_ERR);
	walker_received(w, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(w->qp), IBV_QPS_ERR);
	walker_post(w, IBV_WR_SEND, 1, NULL);
	walker_sent(w, IBV_WC_WR_FLUSH_ERR);
}

static void fails_towards(struct fixture *f, uint32_t qpn)
{
	struct route route = route_loopback(f);
	struct walker w;

	walker_make(&w, f);
	walk(&w, &route, qpn);
	walker_recv(&w, 1);
	walker_post(&w, IBV_WR_SEND, 1, NULL);
	walker_post(&w, IBV_WR_SEND, 1, NULL);
	fails(&w);
	walker_destroy(&w);
}

static void connect__to_nobody(void **state)
{
	fails_towards(*state, qpn_of_nobody(*state));
}

/* A port that listens, without a QP of that number. */
static void connect__to_a_wrong_number(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *other = qp_make(f);

	fails_towards(f, other->qp_num ^ 0x80);
	assert_int_equal(ibv_destroy_qp(other), 0);
}

/* It was told to connect to another one. */
static void connect__to_who_wants_another(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker other;

	walker_make(&other, f);
	walk(&other, &route, other.qp->qp_num ^ 0x80);
	fails_towards(f, other.qp->qp_num);
	walker_destroy(&other);
}

/* Nothing is posted, or timeout is 0: nothing fails. A QP beside it tells that the time is over. */
static void connect__to_nobody_for_ever(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr attr = walk_attr_rts();
	struct walker idle, endless;
	struct ibv_wc wc;
	uint32_t qpn = qpn_of_nobody(f);

	walker_make(&idle, f);
	walker_make(&endless, f);
	walk(&idle, &route, qpn);
	walk_init(&endless);
	walk_rtr(&endless, &route, qpn);
	attr.timeout = 0;
	assert_int_equal(ibv_modify_qp(endless.qp, &attr, WALK_RTS), 0);
	walker_post(&endless, IBV_WR_SEND, 1, NULL);
	fails_towards(f, qpn);
	assert_int_equal(qp_state(idle.qp), IBV_QPS_RTS);
	assert_int_equal(qp_state(endless.qp), IBV_QPS_RTS);
	assert_int_equal(ibv_poll_cq(endless.send_cq, 1, &wc), 0);
	walker_destroy(&idle);
	walker_destroy(&endless);
}

/* As on InfiniBand, where nobody would notice: what tells is a post. */
static void peer_destroyed__the_next_post_fails(void **state)
{
	struct fixture *f = *state;
	struct two t;
	struct ibv_wc wc;

	two_connect(&t, f);
	walker_recv(&t.a, 1);
	walker_destroy(&t.b);
	fails_towards(f, t.a.qp->qp_num ^ 0x80); /* time goes by */
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_RTS);
	assert_int_equal(ibv_poll_cq(t.a.recv_cq, 1, &wc), 0);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	fails(&t.a);
	walker_destroy(&t.a);
}

/* A message that was sent before the peer left is received all the same, whenever the program likes. */
static void peer_destroyed__what_it_sent_is_received(void **state)
{
	struct two t;

	two_connect(&t, *state);
	memset(t.b.memory, 5, 16);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	walker_destroy(&t.b);
	walker_recv(&t.a, 1);
	walker_received(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(t.a.memory[15], 5);
	walker_destroy(&t.a);
}

/* A Read that the peer cannot answer any more. */
static void peer_in_error__a_read_under_way_fails(void **state)
{
	struct two t;

	two_connect(&t, *state);
	assert_int_equal(qp_move(t.b.qp, IBV_QPS_ERR), 0);
	walker_recv(&t.a, 1);
	walker_post(&t.a, IBV_WR_RDMA_READ, 16, &t.b);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	fails(&t.a);
	two_destroy(&t);
}

/* A WR of the peer's own has failed: InfiniBand's peer sends nothing of it, and is not heard of from then on. */
static void peer_failed_by_itself__the_next_post_fails(void **state)
{
	struct fixture *f = *state;
	struct two t;
	struct ibv_wc wc;

	two_connect(&t, f);
	two_talk(&t);
	walker_recv(&t.a, 1);
	t.b.mr->lkey ^= 0x55;
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	walker_sent(&t.b, IBV_WC_LOC_PROT_ERR);
	t.b.mr->lkey ^= 0x55;
	fails_towards(f, t.a.qp->qp_num ^ 0x80); /* time goes by */
	assert_int_equal(qp_state(t.b.qp), IBV_QPS_ERR);
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_RTS);
	assert_int_equal(ibv_poll_cq(t.a.recv_cq, 1, &wc), 0);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	fails(&t.a);
	two_destroy(&t);
}

/* Strangers. */

static int stranger_connect(uint32_t qpn)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)(qpn >> 8)),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* A Request as anywarp sends it, but for who it says it is. */
static void stranger_ask(int fd, const struct pair *pair)
{
	const struct mpa_enhanced enh = { .p2p = true, .rtr = MPA_RTR_WRITE, .ird = 4, .ord = 4 };
	uint8_t pd[MPA_ENH_LEN + PAIR_LEN], octets[MPA_FRAME_MAX];
	const struct mpa_frame frame = {
		.kind = MPA_REQUEST,
		.flags = MPA_FLAG_CRC | MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER,
		.revision = 2,
		.pd = pd,
		.pd_len = sizeof(pd),
	};
	size_t len;

	mpa_enhanced_put(&enh, pd);
	pair_put(pair, pd + MPA_ENH_LEN);
	len = mpa_build(&frame, octets);
	assert_int_equal(send(fd, octets, len, MSG_NOSIGNAL), len);
}

/* The rejecting Reply's answer; the connection ends behind it. */
static enum pair_answer stranger_hears(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct mpa_frame frame;
	uint8_t octets[MPA_FRAME_MAX + 1];
	struct pair pair;
	size_t len = 0, used;
	ssize_t n;

	do {
		assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
		n = recv(fd, octets + len, sizeof(octets) - len, 0);
		assert_true(n >= 0);
		len += (size_t)n;
	} while (n > 0);
	assert_int_equal(mpa_parse(octets, len, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, len);
	assert_true(frame.flags & MPA_FLAG_REJECT);
	assert_true(pair_get(frame.pd + MPA_ENH_LEN, frame.pd_len - MPA_ENH_LEN, &pair));
	close(fd);
	return pair.answer;
}

static struct pair forged(uint32_t from, uint32_t to)
{
	return (struct pair){
		.src_qpn = from,
		.dst_qpn = to,
		.incarnation = 1000,
		.src_gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
	};
}

static enum pair_answer answer_to(struct pair pair)
{
	int fd = stranger_connect(pair.dst_qpn);

	stranger_ask(fd, &pair);
	return stranger_hears(fd);
}

/* To a QP that waits for its peer, whose number nobody knows. */
static void stranger__is_told_no(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;
	struct pair pair;

	two_make(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	assert_int_equal(answer_to(forged(t.b.qp->qp_num ^ 1, t.a.qp->qp_num)), PAIR_OTHER_PEER);
	assert_int_equal(answer_to(forged(t.b.qp->qp_num, t.a.qp->qp_num ^ 0x80)), PAIR_NO_QP);
	pair = forged(t.b.qp->qp_num, t.a.qp->qp_num);
	pair.src_gid[15] = 2;
	assert_int_equal(answer_to(pair), PAIR_ADDRESS);
	walk(&t.b, &route, t.a.qp->qp_num);
	two_talk(&t);
	two_destroy(&t);
}

/* More than a QP lets wait, before it is told and while it is connected. */
static void stranger__many_wait_and_disturb_nobody(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	int fds[2][STRANGERS];
	struct two t;

	two_make(&t, f);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < STRANGERS; i++) {
			struct pair pair = forged(0x100 + i, t.a.qp->qp_num);

			fds[round][i] = stranger_connect(t.a.qp->qp_num);
			stranger_ask(fds[round][i], &pair);
		}
		assert_int_equal(stranger_hears(fds[round][0]), PAIR_BUSY);
		if (round == 0) {
			two_walk(&t, &route);
		}
		two_talk(&t);
	}
	for (int i = 1; i < STRANGERS; i++) {
		close(fds[0][i]);
		close(fds[1][i]);
	}
	two_destroy(&t);
}

static void stranger__speaks_another_protocol(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;
	uint8_t octet;
	int fd;

	two_make(&t, f);
	fd = stranger_connect(t.a.qp->qp_num);
	assert_int_equal(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	assert_true(recv(fd, &octet, 1, 0) <= 0);
	close(fd);
	two_walk(&t, &route);
	walker_talk(&t.a, &t.b);
	two_destroy(&t);
}

/* A peer at 127.0.0.2, whose QPN is its TCP port's. */

static const union ibv_gid deaf_gid = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 2 } };

static struct sockaddr_in deaf_address(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
}

static int deaf_listen(uint32_t *qpn)
{
	struct sockaddr_in addr = deaf_address();
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*qpn = (uint32_t)ntohs(addr.sin_port) << 8;
	return fd;
}

static int deaf_call(uint32_t from, uint32_t to)
{
	struct sockaddr_in addr = deaf_address();
	struct pair pair = forged(from, to);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)(to >> 8));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	memcpy(pair.src_gid, deaf_gid.raw, sizeof(pair.src_gid));
	stranger_ask(fd, &pair);
	return fd;
}

/* Its answer to our call is lost on the way; its own call, which waits for ours, goes on before a post fails. */
static void peer_deaf__its_call_is_taken_before_a_post_fails(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct mpa_frame frame;
	uint8_t octets[MPA_FRAME_MAX];
	struct pollfd pollfd = { .events = POLLIN };
	int listener, called;
	struct walker w;
	uint32_t qpn;
	size_t used;
	ssize_t len;

	listener = deaf_listen(&qpn);
	route.gid = deaf_gid;
	walker_make(&w, f);
	walk(&w, &route, qpn);
	called = accept(listener, NULL, NULL);
	assert_int_equal(recv(called, octets, 1, MSG_PEEK), 1);
	pollfd.fd = deaf_call(qpn, w.qp->qp_num);
	walker_post(&w, IBV_WR_SEND, 1, NULL);
	assert_int_equal(poll(&pollfd, 1, WAIT_MS), 1);
	len = recv(pollfd.fd, octets, sizeof(octets), 0);
	assert_true(len > 0);
	assert_int_equal(mpa_parse(octets, (size_t)len, &frame, &used), MPA_PARSE_OK);
	assert_false(frame.flags & MPA_FLAG_REJECT);
	assert_int_equal(qp_state(w.qp), IBV_QPS_RTS);
	close(pollfd.fd);
	close(called);
	close(listener);
	walker_destroy(&w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(connect__to_nobody),
		WITH(connect__to_a_wrong_number),
		WITH(connect__to_who_wants_another),
		WITH(connect__to_nobody_for_ever),
		WITH(peer_destroyed__the_next_post_fails),
		WITH(peer_destroyed__what_it_sent_is_received),
		WITH(peer_in_error__a_read_under_way_fails),
		WITH(peer_failed_by_itself__the_next_post_fails),
		WITH(peer_deaf__its_call_is_taken_before_a_post_fails),
		WITH(stranger__is_told_no),
		WITH(stranger__many_wait_and_disturb_nobody),
		WITH(stranger__speaks_another_protocol),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
