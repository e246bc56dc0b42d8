// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer of move_peer.h.
#include "move_peer.h"

#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/carrier.h"
#include "net/qp/uqp_sock.h"
#include "proc.h"
#include "tcp.h"
#include "tls_ends.h"
#include "until.h"
#include "wire/crc32c.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PLACES 16
#define PLACE_LEN 1024u

static int count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:anywarp-host") != NULL;
	fclose(maps);
	return count;
}

void peer_join(struct peer *p, bool qp_initiates, bool moves)
{
	struct aw_stream stream = {
		.initiator = qp_initiates, .crc = true, .ird = 4, .ord = 4, .moves = moves
	};
	struct aw_tls *tls[2] = { NULL, NULL };
	struct sockaddr_storage addr;
	int listener, fd;

	*p = (struct peer){
		.qp_initiates = qp_initiates, .msn = 1, .fds = proc_fds(), .maps = count_maps()
	};
	listener = tcp_listen(1, &addr);
	p->fd = tcp_connect(&addr);
	fd = tcp_accept(listener);
	close(listener);
	tcp_unblock(fd);
	if (tls_is_asked()) {
		tcp_unblock(p->fd);
		tls_shake_hands((int[2]){ p->fd, fd }, tls);
	}
	p->tls = tls[0];
	end_make(&p->e, &p->pd, NULL);
	const struct aw_uqp_socket to = { .fd = fd, .tls = tls[1] };

	assert_int_equal(aw_uqp_attach_to(p->e.qp, &to, &stream), 0);
}

void peer_hang_up(struct peer *p)
{
	close(p->fd);
	p->fd = -1;
}

void peer_shut(struct peer *p)
{
	if (p->tls)
		until(aw_tls_finish(p->tls));
	shutdown(p->fd, SHUT_WR);
}

/* As aw_tls_recv, which may wait. */
static ssize_t recv_tls(struct peer *p, uint8_t *octets, size_t len)
{
	bool waits = true;
	ssize_t n = 0;

	repeat_until(!waits)
	{
		aw_tls_begin_turn(p->tls);
		n = aw_tls_recv(p->tls, octets, len);
		waits = n < 0 && errno == EAGAIN;
	}
	return n;
}

void peer_assert_over(struct peer *p)
{
	uint8_t octet;
	ssize_t n;

	if (!p->tls) {
		tcp_assert_over(p->fd);
		return;
	}
	n = recv_tls(p, &octet, 1);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

void peer_part(struct peer *p)
{
	aw_tls_free(p->tls);
	if (p->fd >= 0)
		close(p->fd);
	aw_host_ring_free(p->ring);
	end_destroy(&p->e);
	until(proc_fds() == p->fds && peer_maps(p) == 0);
}

size_t peer_fpdu(const struct peer *p, uint8_t *at, const uint8_t *ulpdu, size_t len)
{
	size_t size = fpdu_size(len);
	uint32_t crc = 0;

	put_be16(at, (uint16_t)len);
	memcpy(at + FPDU_LEN_FIELD, ulpdu, len);
	memset(at + FPDU_LEN_FIELD + len, 0, fpdu_pad(len));
	if (!p->sends_memory)
		crc = crc32c_final(crc32c_update(CRC32C_INIT, at, size - FPDU_CRC_LEN));
	put_le32(at + size - FPDU_CRC_LEN, crc);
	return size;
}

size_t peer_move_fpdu(const struct peer *p, uint8_t *at, enum move_kind kind, const uint8_t *data)
{
	struct move_msg msg = { .kind = kind };
	uint8_t ulpdu[MOVE_HDR_LEN + MOVE_DATA_MAX];

	if (data)
		memcpy(msg.data, data, move_data_len(kind));
	return peer_fpdu(p, at, ulpdu, move_put(&msg, ulpdu));
}

size_t peer_send_fpdu(struct peer *p, uint8_t *at, size_t len)
{
	const struct ddp_hdr hdr = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .qn = DDP_QN_SEND, .msn = p->msn++
	};
	uint8_t ulpdu[PEER_ULPDU_MAX];

	ddp_put(&hdr, ulpdu);
	memset(ulpdu + DDP_UNTAGGED_LEN, 0x5a, len);
	return peer_fpdu(p, at, ulpdu, DDP_UNTAGGED_LEN + len);
}

void peer_ring_bells(struct peer *p, size_t count)
{
	static const uint8_t bells[PEER_FPDU_MAX];

	if (count > 0)
		peer_put_socket(p, bells, count);
}

void peer_put_socket(struct peer *p, const uint8_t *octets, size_t len)
{
	if (!p->tls) {
		tcp_send(p->fd, octets, len);
		return;
	}
	repeat_until(len == 0)
	{
		ssize_t n = aw_tls_send(p->tls, octets, len);

		assert_true(n >= 0 || errno == EAGAIN);
		octets += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

void peer_put_slowly(struct peer *p, const uint8_t *octets, size_t len)
{
	if (!p->tls)
		tcp_send_slowly(p->fd, octets, len);
	for (size_t i = 0; p->tls && i < len; i++)
		peer_put_socket(p, octets + i, 1);
}

static void take_socket(struct peer *p, uint8_t *octets, size_t len)
{
	if (!p->tls)
		tcp_recv(p->fd, octets, len);
	while (p->tls && len > 0) {
		ssize_t n = recv_tls(p, octets, len);

		assert_true(n > 0);
		octets += n;
		len -= (size_t)n;
	}
}

static void put_memory(struct peer *p, const uint8_t *octets, size_t len)
{
	assert_true(aw_duplex_room(&p->ring->duplex) >= len);
	memcpy(aw_duplex_tx(&p->ring->duplex), octets, len);
	aw_duplex_produce(&p->ring->duplex, len);
	if (aw_duplex_wakes_reader(&p->ring->duplex))
		peer_ring_bells(p, 1);
}

void peer_put(struct peer *p, const uint8_t *octets, size_t len)
{
	if (p->sends_memory)
		put_memory(p, octets, len);
	else
		peer_put_socket(p, octets, len);
}

void peer_put_move(struct peer *p, enum move_kind kind, const uint8_t *data)
{
	uint8_t fpdu[PEER_FPDU_MAX];

	peer_put(p, fpdu, peer_move_fpdu(p, fpdu, kind, data));
}

void peer_put_send(struct peer *p, size_t len)
{
	uint8_t fpdu[PEER_FPDU_MAX];

	peer_put(p, fpdu, peer_send_fpdu(p, fpdu, len));
}

static void take_octets(struct peer *p, uint8_t *octets, size_t len)
{
	struct aw_duplex *d = p->ring ? &p->ring->duplex : NULL;

	if (!p->takes_memory) {
		take_socket(p, octets, len);
		return;
	}
	until(aw_duplex_ready(d) >= len);
	memcpy(octets, aw_duplex_rx(d), len);
	aw_duplex_consume(d, len);
	if (aw_duplex_wakes_writer(d))
		peer_ring_bells(p, 1);
}

size_t peer_take(struct peer *p, uint8_t *ulpdu)
{
	uint8_t fpdu[PEER_FPDU_MAX];
	size_t len, size;
	uint32_t crc = 0;

	take_octets(p, fpdu, FPDU_LEN_FIELD);
	len = get_be16(fpdu);
	size = fpdu_size(len);
	assert_true(len <= PEER_ULPDU_MAX);
	take_octets(p, fpdu + FPDU_LEN_FIELD, size - FPDU_LEN_FIELD);
	if (!p->takes_memory)
		crc = crc32c_final(crc32c_update(CRC32C_INIT, fpdu, size - FPDU_CRC_LEN));
	assert_int_equal(get_le32(fpdu + size - FPDU_CRC_LEN), crc);
	memcpy(ulpdu, fpdu + FPDU_LEN_FIELD, len);
	return len;
}

struct move_msg peer_take_move(struct peer *p, enum move_kind kind)
{
	uint8_t ulpdu[PEER_ULPDU_MAX];
	struct move_msg msg;

	assert_true(move_get(ulpdu, peer_take(p, ulpdu), &msg));
	assert_int_equal(msg.kind, kind);
	return msg;
}

struct move_msg peer_await_move(struct peer *p, enum move_kind kind)
{
	uint8_t ulpdu[PEER_ULPDU_MAX];
	struct move_msg msg;

	while (!move_get(ulpdu, peer_take(p, ulpdu), &msg))
		;
	assert_int_equal(msg.kind, kind);
	return msg;
}

void peer_take_send(struct peer *p, size_t len)
{
	uint8_t ulpdu[PEER_ULPDU_MAX];
	struct ddp_hdr hdr;

	assert_int_equal(peer_take(p, ulpdu), DDP_UNTAGGED_LEN + len);
	assert_int_equal(ddp_get(ulpdu, DDP_UNTAGGED_LEN, &hdr), AW_OK);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_SEND));
	assert_int_equal(hdr.msn, ++p->received);
}

enum aw_error peer_take_terminate(struct peer *p)
{
	uint8_t ulpdu[PEER_ULPDU_MAX];
	size_t len = peer_take(p, ulpdu);
	struct ddp_hdr hdr;
	struct term_msg term;

	assert_int_equal(ddp_get(ulpdu, len, &hdr), AW_OK);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_TERMINATE));
	assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
	assert_true(term_get(ulpdu + DDP_UNTAGGED_LEN, len - DDP_UNTAGGED_LEN, &term));
	return term.error;
}

/* Receives have places of their own: the progress thread fills the next one while the test reads the one before. */
static uint32_t place_of(uint32_t number)
{
	return BUF_OCTETS / 2 + number % PLACES * PLACE_LEN;
}

void peer_post_recv(struct peer *p, uint32_t len)
{
	struct aw_sge sge = end_sge(&p->e, place_of(p->posted++), len);

	assert_true(len <= PLACE_LEN);

	assert_int_equal(aw_uqp_recv(p->e.qp, 1, &sge, 1), 0);
}

void peer_assert_received(struct peer *p, uint32_t len)
{
	struct aw_cq_entry entry = end_wait_cqe(&p->e);
	uint8_t *at = p->e.buf + place_of(p->taken++);

	assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(entry.cqe.wr_id, 1);
	assert_int_equal(entry.cqe.byte_len, len);
	assert_int_equal(at[len - 1], 0x5a);
	memset(at, 0, len);
}

void peer_exchange(struct peer *p)
{
	struct aw_cq_entry entry;

	peer_post_recv(p, 900);
	peer_put_send(p, 900);
	peer_assert_received(p, 900);
	end_post(&p->e, AW_OP_SEND, &p->e, 700);
	peer_take_send(p, 700);
	entry = end_wait_cqe(&p->e);
	assert_int_equal(entry.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(entry.cqe.wr_id, 7);
}

void peer_take_offer(struct peer *p)
{
	struct move_msg msg;
	const char *cause;

	peer_post_recv(p, 900);
	peer_put_send(p, 900);
	peer_assert_received(p, 900);
	msg = peer_take_move(p, MOVE_HELLO);
	memcpy(p->hello, msg.data, sizeof(p->hello));
	p->ring = aw_host_ring_open(p->hello, p->verdict, &cause);
	assert_non_null(p->ring);
}

void peer_make_offer(struct peer *p)
{
	struct sockaddr_storage local, peer;
	socklen_t local_len = sizeof(local), peer_len = sizeof(peer);
	const char *cause;

	p->ring = aw_host_ring_make(p->hello, &cause);
	assert_non_null(p->ring);
	assert_int_equal(getsockname(p->fd, (struct sockaddr *)&local, &local_len), 0);
	assert_int_equal(getpeername(p->fd, (struct sockaddr *)&peer, &peer_len), 0);
	aw_host_put_ports(p->hello, (struct sockaddr *)&local, (struct sockaddr *)&peer);
}

void peer_move_halfway(struct peer *p)
{
	struct move_msg msg;

	if (!p->qp_initiates) {
		peer_take_offer(p);
		peer_put_move(p, MOVE_VERDICT, p->verdict);
		p->sends_memory = true;
		return;
	}
	peer_make_offer(p);
	peer_put_move(p, MOVE_HELLO, p->hello);
	msg = peer_take_move(p, MOVE_VERDICT);
	assert_int_equal(aw_host_ring_decide(p->ring, msg.data), AW_HOST_RING);
	p->takes_memory = true;
}

void peer_move(struct peer *p)
{
	peer_move_halfway(p);
	if (p->qp_initiates)
		peer_put_move(p, MOVE_LAST, NULL);
	else
		peer_take_move(p, MOVE_LAST);
	p->sends_memory = p->takes_memory = true;
}

void peer_stay(struct peer *p)
{
	static const uint8_t zeros[MOVE_VERDICT_LEN];
	struct move_msg msg;

	if (!p->qp_initiates) {
		peer_take_offer(p);
		peer_put_move(p, MOVE_VERDICT, zeros);
		peer_wait_state(p, AW_MOVE_NEVER);
	} else {
		peer_make_offer(p);
		memset(p->hello, 0xff, 8);
		peer_put_move(p, MOVE_HELLO, p->hello);
		msg = peer_take_move(p, MOVE_VERDICT);
		assert_memory_equal(msg.data, zeros, sizeof(zeros));
	}
	aw_host_ring_free(p->ring);
	p->ring = NULL;
}

int peer_maps(const struct peer *p)
{
	return count_maps() - p->maps;
}

void peer_wait_state(struct peer *p, enum aw_move_state state)
{
	uint64_t start = aw_now_ns();
	bool is;

	do {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
		aw_lock(&p->e.qp->lock);
		is = p->e.qp->move.state == state;
		aw_unlock(&p->e.qp->lock);
	} while (!is);
}

bool peer_qp_is_over(struct peer *p, bool memory)
{
	const struct aw_carrier *socket = p->tls ? &aw_carrier_tls : &aw_carrier_tcp;
	const struct aw_carrier *carrier = memory ? &aw_carrier_host : socket;
	struct aw_uqp *qp = p->e.qp;

	aw_lock(&qp->lock);
	bool is = qp->fd >= 0 && qp->in == carrier && qp->out == carrier && !qp->ring == !memory;

	aw_unlock(&qp->lock);
	return is;
}

enum aw_error peer_error(struct peer *p)
{
	aw_lock(&p->e.qp->lock);
	enum aw_error err = p->e.qp->core.error;

	aw_unlock(&p->e.qp->lock);
	return err;
}

int peer_setup(void **state)
{
	return tls_group_setup(state) != 0 || aw_engine_get() != 0;
}

int peer_teardown(void **state)
{
	aw_engine_put();
	return tls_group_teardown(state);
}

void peer_terminate_qp(struct peer *p)
{
	aw_lock(&p->e.qp->lock);
	aw_qp_terminate(&p->e.qp->core, AW_E_LOCAL_CATASTROPHIC);
	aw_uqp_serve(p->e.qp);
	aw_uqp_unlock(p->e.qp);
}
