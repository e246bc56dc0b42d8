// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of a move, right and wrong, from a peer that is the test itself.
#define _GNU_SOURCE /* memfd_create */
#include "../lib/move_peer.h"
#include "../lib/proc.h"
#include "../lib/tcp.h"
#include "base/array.h"
#include "base/clock.h"
#include "net/base/policy_env.h"
#include "net/mem/memfd.h"
#include "wire/octets.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY_NAME "anywarp-host"

static const uint8_t zeros[MOVE_VERDICT_LEN];

static void move__each_way(void **state)
{
	struct peer p;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		peer_join(&p, initiates, true);
		peer_move(&p);
		for (int i = 0; i < 3; i++)
			peer_exchange(&p);
		assert_true(peer_qp_is_over(&p, true));
		peer_part(&p);
	}
}

/* The stream has CRCs, and the QP has no memory any more. */
static void assert_stays(struct peer *p)
{
	for (int i = 0; i < 3; i++)
		peer_exchange(p);
	assert_true(peer_qp_is_over(p, false));
	assert_int_equal(peer_maps(p), 0);
}

static void move__a_verdict_of_zeros(void **state)
{
	struct peer p;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		uint8_t fpdu[PEER_FPDU_MAX];
		size_t size;

		peer_join(&p, initiates, true);
		peer_stay(&p);
		assert_stays(&p);
		peer_post_recv(&p, 100);
		size = peer_send_fpdu(&p, fpdu, 100);
		fpdu[size - 1] ^= 1;
		peer_put(&p, fpdu, size);
		assert_int_equal(peer_take_terminate(&p), AW_E_MPA_CRC);
		peer_part(&p);
	}
}

/* Where in the stream a wrong message comes. */
enum place {
	FRESH, /* nothing but messages has come before */
	OFFERED, /* a responder's hello has been sent */
	HALFWAY, /* an initiator's verdict has been sent, and MOVE_LAST is due */
	MOVED,
	STAYED,
	NOT_AGREED,
};

struct wrong {
	bool initiates; /* the QP */
	enum place place;
	uint8_t octets[2]; /* the first two */
	uint8_t fill; /* the others */
	size_t len;
	enum aw_error error;
};

static void reach(struct peer *p, const struct wrong *w)
{
	peer_join(p, w->initiates, w->place != NOT_AGREED);
	switch (w->place) {
	case FRESH:
	case NOT_AGREED:
		break;
	case OFFERED:
		peer_take_offer(p);
		break;
	case HALFWAY:
		peer_move_halfway(p);
		break;
	case MOVED:
		peer_move(p);
		break;
	case STAYED:
		peer_stay(p);
		break;
	}
}

static void assert_refused(const struct wrong *w)
{
	uint8_t ulpdu[PEER_ULPDU_MAX], fpdu[PEER_FPDU_MAX];
	struct peer p;

	reach(&p, w);
	peer_post_recv(&p, 100);
	memset(ulpdu, w->fill, w->len);
	memcpy(ulpdu, w->octets, 2);
	peer_put(&p, fpdu, peer_fpdu(&p, fpdu, ulpdu, w->len));
	assert_int_equal(peer_take_terminate(&p), w->error);
	end_wait_event(&p.e, AW_UQP_CLOSED);
	assert_int_equal(peer_error(&p), w->error);
	assert_int_equal(end_wait_cqe(&p.e).cqe.status, AW_WC_WR_FLUSH_ERR);
	peer_assert_over(&p);
	if (p.ring)
		assert_int_equal(aw_duplex_ready(&p.ring->duplex), 0);
	aw_host_ring_free(p.ring);
	p.ring = NULL;
	assert_int_equal(peer_maps(&p), 0);
	peer_part(&p);
}

#define VERSION AW_E_DDP_UNTAGGED_VERSION
#define NO_HEADER AW_E_DDP_CATASTROPHIC /* the version of so short a segment is not looked at */
#define HELLO                 \
	{                     \
		0, MOVE_HELLO \
	}
#define VERDICT                 \
	{                       \
		0, MOVE_VERDICT \
	}
#define LAST                 \
	{                    \
		0, MOVE_LAST \
	}

static const struct wrong out_of_turn[] = {
	{ false, FRESH, HELLO, 0xab, 30, VERSION },
	{ false, FRESH, VERDICT, 0xab, 18, VERSION },
	{ false, FRESH, LAST, 0, 2, VERSION },
	{ false, OFFERED, HELLO, 0xab, 30, VERSION },
	{ false, OFFERED, VERDICT, 0xab, 18, VERSION }, /* its secret is wrong */
	{ false, OFFERED, LAST, 0, 2, VERSION },
	{ false, MOVED, HELLO, 0xab, 30, VERSION },
	{ false, MOVED, VERDICT, 0, 18, VERSION },
	{ false, MOVED, LAST, 0, 2, NO_HEADER },
	{ false, STAYED, HELLO, 0xab, 30, VERSION },
	{ false, STAYED, VERDICT, 0, 18, VERSION },
	{ false, STAYED, VERDICT, 0xab, 18, VERSION },
	{ false, STAYED, LAST, 0, 2, VERSION },
	{ true, FRESH, VERDICT, 0, 18, VERSION },
	{ true, FRESH, LAST, 0, 2, VERSION },
	{ true, HALFWAY, HELLO, 0xab, 30, VERSION },
	{ true, HALFWAY, VERDICT, 0, 18, VERSION },
	{ true, MOVED, HELLO, 0xab, 30, VERSION },
	{ true, MOVED, VERDICT, 0, 18, VERSION },
	{ true, MOVED, LAST, 0, 2, NO_HEADER },
	{ true, STAYED, HELLO, 0xab, 30, VERSION },
	{ true, STAYED, VERDICT, 0, 18, VERSION },
	{ true, STAYED, LAST, 0, 2, VERSION },
	{ false, NOT_AGREED, HELLO, 0xab, 30, VERSION },
	{ false, NOT_AGREED, VERDICT, 0, 18, VERSION },
	{ false, NOT_AGREED, LAST, 0, 2, NO_HEADER },
	{ true, NOT_AGREED, HELLO, 0xab, 30, VERSION },
	{ true, NOT_AGREED, VERDICT, 0, 18, VERSION },
	{ true, NOT_AGREED, LAST, 0, 2, NO_HEADER },
};

/* The end that they come to would take one of the kind and the right length. */
static const struct wrong malformed[] = {
	{ true, FRESH, HELLO, 0xff, 31, VERSION },
	{ true, FRESH, HELLO, 0xff, 29, VERSION },
	{ true, FRESH, HELLO, 0xff, 2, NO_HEADER },
	{ true, FRESH, { 0, 0 }, 0xff, 30, VERSION },
	{ true, FRESH, { 0, 4 }, 0xff, 30, VERSION },
	{ true, FRESH, { 0, 255 }, 0xff, 30, VERSION },
	{ true, FRESH, { 0x40, MOVE_HELLO }, 0xff, 30, VERSION },
	{ true, FRESH, { 0x02, MOVE_HELLO }, 0xff, 30, VERSION },
	{ true, FRESH, { 0x80, MOVE_HELLO }, 0xff, 30, AW_E_DDP_TAGGED_VERSION },
	{ true, FRESH, { 0, MOVE_HELLO }, 0xff, 4000, VERSION },
	{ false, OFFERED, VERDICT, 0, 17, NO_HEADER },
	{ false, OFFERED, VERDICT, 0, 19, VERSION },
	{ false, OFFERED, VERDICT, 0, 30, VERSION },
	{ false, OFFERED, { 0, 0 }, 0, 18, VERSION },
	{ false, OFFERED, { 0, 4 }, 0, 18, VERSION },
	{ true, HALFWAY, LAST, 0, 3, NO_HEADER },
	{ true, HALFWAY, LAST, 0, 18, VERSION },
	{ true, HALFWAY, { 0, 0 }, 0, 2, NO_HEADER },
	{ true, HALFWAY, { 0, 4 }, 0, 2, NO_HEADER },
};

static void move__messages_out_of_turn(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(out_of_turn); i++)
		assert_refused(&out_of_turn[i]);
}

static void move__malformed_messages(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(malformed); i++)
		assert_refused(&malformed[i]);
}

/* No verdict answers a hello that has not been sent, though the memory may be there already. */
static void move__a_verdict_before_the_hello(void **state)
{
	static const struct wrong first = { false, FRESH, VERDICT, 0, 18, VERSION };

	(void)state;
	assert_refused(&first);
}

/* What of the hello does not fit; an fd of the test's own may be in it. */
static int spoil_fd(struct peer *p)
{
	put_be32(p->hello + 4, 0xffffffff);
	return -1;
}

static int spoil_process(struct peer *p)
{
	put_be32(p->hello, 0);
	return -1;
}

static int spoil_ports(struct peer *p)
{
	memset(p->hello + 8, 0, 4);
	return -1;
}

static int swap_ports(struct peer *p)
{
	uint32_t ports = get_be32(p->hello + 8);

	put_be32(p->hello + 8, ports << 16 | ports >> 16);
	return -1;
}

static int spoil_secret(struct peer *p)
{
	p->hello[12] ^= 1;
	return -1;
}

static int name_socket(struct peer *p)
{
	put_be32(p->hello + 4, (uint32_t)p->fd);
	return -1;
}

static size_t right_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE) + 2 * (size_t)AW_HOST_RING_BYTES;
}

static int name_larger(struct peer *p)
{
	int fd = aw_memfd_make(MEMORY_NAME, right_size() + 4096);

	put_be32(p->hello + 4, (uint32_t)fd);
	return fd;
}

static int name_smaller(struct peer *p)
{
	int fd = aw_memfd_make(MEMORY_NAME, right_size() - 4096);

	put_be32(p->hello + 4, (uint32_t)fd);
	return fd;
}

/* Its size could change under a map. */
static int name_unsealed(struct peer *p)
{
	int fd = memfd_create(MEMORY_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)right_size()), 0);
	put_be32(p->hello + 4, (uint32_t)fd);
	return fd;
}

static int name_empty(struct peer *p)
{
	int fd = aw_memfd_make(MEMORY_NAME, right_size());

	put_be32(p->hello + 4, (uint32_t)fd);
	return fd;
}

static void move__hellos_that_lead_nowhere(void **state)
{
	static int (*const spoil[])(struct peer *) = {
		spoil_fd,    spoil_process, spoil_ports,  swap_ports,	 spoil_secret,
		name_socket, name_larger,   name_smaller, name_unsealed, name_empty,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(spoil); i++) {
		struct move_msg msg;
		struct peer p;
		int fd;

		peer_join(&p, true, true);
		peer_make_offer(&p);
		fd = spoil[i](&p);
		peer_put_move(&p, MOVE_HELLO, p.hello);
		msg = peer_take_move(&p, MOVE_VERDICT);
		assert_memory_equal(msg.data, zeros, sizeof(zeros));
		aw_host_ring_free(p.ring);
		p.ring = NULL;
		assert_stays(&p);
		if (fd >= 0)
			close(fd);
		peer_part(&p);
	}
}

static const size_t bell_counts[] = { 0, 1, 8, 300, 4000 };

/* The peer's last FPDU over TCP; returns its octets. From then on the peer is in memory. */
static size_t last_fpdu(struct peer *p, uint8_t *at)
{
	size_t size;

	if (p->qp_initiates)
		size = peer_move_fpdu(p, at, MOVE_LAST, NULL);
	else
		size = peer_move_fpdu(p, at, MOVE_VERDICT, p->verdict);
	p->sends_memory = true;
	return size;
}

static void go_halfway(struct peer *p, bool initiates)
{
	peer_join(p, initiates, true);
	if (initiates)
		peer_move_halfway(p);
	else
		peer_take_offer(p);
}

/* The QP keeps nothing of the bells. */
static void assert_no_stage(struct peer *p)
{
	aw_lock(&p->e.qp->lock);
	assert_null(p->e.qp->stage);
	aw_unlock(&p->e.qp->lock);
}

static void finish_move(struct peer *p)
{
	if (!p->qp_initiates)
		peer_take_move(p, MOVE_LAST);
	p->takes_memory = true;
	for (int i = 0; i < 3; i++)
		peer_exchange(p);
	assert_true(peer_qp_is_over(p, true));
	assert_no_stage(p);
	peer_part(p);
}

static void move__bells_behind_the_last_fpdu(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(bell_counts); i++) {
		uint8_t octets[2 * PEER_FPDU_MAX] = { 0 };
		struct peer p;
		size_t size;

		go_halfway(&p, i % 2);
		size = last_fpdu(&p, octets);
		peer_put_socket(&p, octets, size + bell_counts[i / 2]);
		finish_move(&p);
	}
}

/* The QP reads the FPDU only when its program has posted a receive; by then bells have come, and bytes in the memory. */
static void move__bells_while_a_message_is_held(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(bell_counts); i++) {
		uint8_t octets[2 * PEER_FPDU_MAX];
		struct peer p;
		size_t size;

		go_halfway(&p, i % 2);
		size = peer_send_fpdu(&p, octets, 300);
		peer_put_socket(&p, octets, size + last_fpdu(&p, octets + size));
		end_wait_held(&p.e);
		peer_put_send(&p, 200);
		peer_ring_bells(&p, bell_counts[i / 2]);
		peer_post_recv(&p, 300);
		peer_assert_received(&p, 300);
		peer_post_recv(&p, 200);
		peer_assert_received(&p, 200);
		finish_move(&p);
	}
}

/* After so many the memfd of the QP's own offer is closed. */
static void make_offers(void)
{
	uint32_t places = aw_memfds_places();
	uint8_t hello[AW_HOST_HELLO_LEN];
	const char *cause;

	for (uint32_t i = 0; i < places; i++) {
		struct aw_host_ring *ring = aw_host_ring_make(hello, &cause);

		assert_non_null(ring);
		aw_host_ring_free(ring);
	}
}

static void move__a_verdict_behind_many_offers(void **state)
{
	uint8_t octets[PEER_FPDU_MAX];
	struct peer p;
	int fds;

	(void)state;
	go_halfway(&p, false);
	fds = proc_fds();
	make_offers();
	assert_int_equal(proc_fds(), fds - 1);
	peer_put_socket(&p, octets, last_fpdu(&p, octets));
	finish_move(&p);
}

/* The peer finds nothing any more where the hello says. */
static void move__a_peer_that_comes_behind_many_offers(void **state)
{
	const char *cause;
	struct peer p;

	(void)state;
	go_halfway(&p, false);
	aw_host_ring_free(p.ring);
	make_offers();
	p.ring = aw_host_ring_open(p.hello, p.verdict, &cause);
	assert_null(p.ring);
	peer_put_move(&p, MOVE_VERDICT, p.verdict);
	peer_wait_state(&p, AW_MOVE_NEVER);
	assert_stays(&p);
	peer_part(&p);
}

static void move__octet_by_octet(void **state)
{
	uint8_t octets[PEER_FPDU_MAX];
	struct peer p;

	(void)state;
	for (int initiates = 0; initiates < 2; initiates++) {
		go_halfway(&p, initiates);
		peer_put_slowly(&p, octets, last_fpdu(&p, octets));
		finish_move(&p);
	}
	peer_join(&p, true, true);
	peer_make_offer(&p);
	peer_put_slowly(&p, octets, peer_move_fpdu(&p, octets, MOVE_HELLO, p.hello));
	struct move_msg msg = peer_take_move(&p, MOVE_VERDICT);

	assert_int_equal(aw_host_ring_decide(p.ring, msg.data), AW_HOST_RING);
	p.takes_memory = true;
	peer_put_slowly(&p, octets, last_fpdu(&p, octets));
	finish_move(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(move__each_way),
		cmocka_unit_test(move__a_verdict_of_zeros),
		cmocka_unit_test(move__messages_out_of_turn),
		cmocka_unit_test(move__malformed_messages),
		cmocka_unit_test(move__a_verdict_before_the_hello),
		cmocka_unit_test(move__hellos_that_lead_nowhere),
		cmocka_unit_test(move__bells_behind_the_last_fpdu),
		cmocka_unit_test(move__bells_while_a_message_is_held),
		cmocka_unit_test(move__a_verdict_behind_many_offers),
		cmocka_unit_test(move__a_peer_that_comes_behind_many_offers),
		cmocka_unit_test(move__octet_by_octet),
	};

	setenv("ANYWARP_HOST_PATH", "on", 1);
	return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
