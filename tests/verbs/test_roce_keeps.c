// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What waits behind a message without a receive, towards peers that are no anywarp of this version, or dishonest: a core of the
// test's own behind a socket.
#include "../lib/core_pair.h"
#include "walk.h"

#include "net/qp/rnr.h"
#include "verbs/private.h"
#include "wire/fpdu.h"
#include "wire/mpa.h"
#include "wire/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PEER_QPN =
		0x000102, /* a number below any other, so that the peer calls; nobody has port 1 */
	WAIT_MS = 10000,
	POLLS = 1000,
	FLOOD = 60000, /* octets of a Send */
};

/* The peer: a core, its socket, and what it has read of an FPDU. */
struct peer {
	struct core_end *end;
	int fd;
	uint8_t stage[2 * FPDU_MAX];
	size_t staged;
};

static int call(uint32_t qpn)
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

static void ask(int fd, uint32_t qpn, bool keeps)
{
	const struct mpa_enhanced enh = { .p2p = true, .rtr = MPA_RTR_WRITE, .ird = 4, .ord = 4 };
	const struct pair pair = {
		.src_qpn = PEER_QPN,
		.dst_qpn = qpn,
		.incarnation = 1,
		.src_gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
		.keeps = keeps,
	};
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
	pair_put(&pair, pd + MPA_ENH_LEN);
	len = mpa_build(&frame, octets);
	assert_int_equal(send(fd, octets, len, MSG_NOSIGNAL), len);
}

/* The Reply, and not an octet more: the responder transmits nothing before the peer. */
static void hear(int fd)
{
	uint8_t octets[MPA_FRAME_MAX];
	struct mpa_frame frame;
	enum mpa_parse parse;
	struct pair pair;
	size_t len = 0, used;
	ssize_t n;

	do {
		n = recv(fd, octets + len, sizeof(octets) - len, 0);
		assert_true(n > 0);
		len += (size_t)n;
		parse = mpa_parse(octets, len, &frame, &used);
	} while (parse == MPA_PARSE_MORE);
	assert_int_equal(parse, MPA_PARSE_OK);
	assert_int_equal(used, len);
	assert_false(frame.flags & MPA_FLAG_REJECT);
	assert_true(pair_get(frame.pd + MPA_ENH_LEN, frame.pd_len - MPA_ENH_LEN, &pair));
	assert_int_equal(pair.answer, PAIR_OK);
	assert_true(pair.keeps);
}

/* Gives what the core has to send to the socket, as far as that takes it; true when it took all. */
static bool flush(struct peer *p)
{
	struct core_end *end = p->end;
	ssize_t n;

	core_tx(end);
	n = send(p->fd, end->wire, end->wire_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0) {
		assert_int_equal(errno, EAGAIN);
		return false;
	}
	end->wire_len -= (size_t)n;
	memmove(end->wire, end->wire + n, end->wire_len);
	return end->wire_len == 0;
}

/* Takes what has come, and answers it. */
static void turn(struct peer *p)
{
	ssize_t n = recv(p->fd, p->stage + p->staged, sizeof(p->stage) - p->staged, MSG_DONTWAIT);

	if (n > 0) {
		size_t used;

		p->staged += (size_t)n;
		used = aw_rx_octets(&p->end->qp, p->stage, p->staged);
		p->staged -= used;
		memmove(p->stage, p->stage + used, p->staged);
	}
	(void)flush(p);
}

static void meet(struct peer *p, struct walker *w, struct fixture *f, bool keeps)
{
	struct route route = route_loopback(f);
	struct aw_stream stream = core_stream(true, 16384);

	walker_make(w, f);
	walk(w, &route, PEER_QPN);
	*p = (struct peer){ .fd = call(w->qp->qp_num) };
	ask(p->fd, w->qp->qp_num, keeps);
	hear(p->fd);
	stream.p2p = true;
	stream.rtr = MPA_RTR_WRITE;
	stream.extensions = true;
	p->end = core_end_create(NULL);
	p->end->qp.keeps = keeps;
	aw_qp_start(&p->end->qp, &stream);
	assert_true(flush(p));
}

static void part(struct peer *p, struct walker *w)
{
	close(p->fd);
	core_end_destroy(p->end);
	walker_destroy(w);
}

/* One of the peer's messages waits: true when it is in the driver's buffer, and nothing more is read. */
static bool waits(const struct walker *w)
{
	struct aw_uqp *qp = avb_qp_uqp(w->qp);
	bool waiting = false, stops = false;

	while (!waiting && sched_yield() == 0) {
		aw_lock(&qp->lock);
		waiting = aw_rnr_waits(qp);
		stops = waiting && aw_rnr_stops_reading(qp);
		aw_unlock(&qp->lock);
	}
	return stops;
}

/* The peer's memory is all of one region, with every right. */
static void post_read(struct walker *w)
{
	struct ibv_sge sge = { (uintptr_t)w->memory, 64, w->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = CORE_IOVA + 5000, .rkey = CORE_STAG },
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(w->qp, &wr, &bad), 0);
}

/* True when the Read is complete; its peer answers meanwhile. */
static bool is_read(struct peer *p, struct walker *w)
{
	struct ibv_wc wc;

	for (int i = 0; i < POLLS; i++) {
		turn(p);
		if (ibv_poll_cq(w->send_cq, 1, &wc) == 0)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
		return true;
	}
	return false;
}

static void must_be_read(struct peer *p, struct walker *w)
{
	struct pollfd in = { .fd = p->fd, .events = POLLIN };

	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (is_read(p, w))
			return;
		poll(&in, 1, 1);
	}
	fail_msg("the Read is not answered");
}

static void send_from(struct peer *p, uint32_t len)
{
	core_post(p->end, AW_OP_SEND, 0, len, 0);
	assert_true(flush(p));
}

/* It knows nothing of the messages, and gets none; the answer waits behind its Send, as ever. */
static void earlier_version__stops_the_stream(void **state)
{
	struct walker w;
	struct peer p;

	meet(&p, &w, *state, false);
	send_from(&p, 16);
	assert_true(waits(&w));
	post_read(&w);
	assert_false(is_read(&p, &w));
	walker_recv(&w, 1);
	walker_received(&w, IBV_WC_SUCCESS);
	must_be_read(&p, &w);
	assert_int_equal(p.end->qp.state, AW_QP_RTS);
	part(&p, &w);
}

static void this_version__reads_on(void **state)
{
	struct walker w;
	struct peer p;

	meet(&p, &w, *state, true);
	send_from(&p, 16);
	assert_false(waits(&w));
	post_read(&w);
	must_be_read(&p, &w);
	walker_recv(&w, 1);
	walker_received(&w, IBV_WC_SUCCESS);
	part(&p, &w);
}

static bool is_full(const struct walker *w)
{
	struct aw_uqp *qp = avb_qp_uqp(w->qp);
	bool full;

	aw_lock(&qp->lock);
	full = aw_rnr_stops_reading(qp);
	assert_true(qp->core.stash.octets <= AW_STASH_MAX);
	aw_unlock(&qp->lock);
	return full;
}

/* It is told to hold its requests back, and does not: the stash has its bound, and TCP stops the peer. */
static void flood__is_stopped_at_the_bound(void **state)
{
	struct pollfd room = { .events = POLLOUT };
	bool told = false;
	struct walker w;
	struct peer p;

	meet(&p, &w, *state, true);
	room.fd = p.fd;
	while (!is_full(&w)) {
		if (p.end->wire_len == 0)
			core_post(p.end, AW_OP_SEND, 0, FLOOD, 0);
		turn(&p);
		told |= p.end->qp.peer_not_ready;
		p.end->qp.peer_not_ready = false;
		p.end->logged = 0;
		if (p.end->wire_len > 0)
			poll(&room, 1, 1);
	}
	assert_true(told);
	walker_recv(&w, 1);
	walker_received(&w, IBV_WC_LOC_LEN_ERR);
	part(&p, &w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(earlier_version__stops_the_stream),
		WITH(this_version__reads_on),
		WITH(flood__is_stopped_at_the_bound),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
