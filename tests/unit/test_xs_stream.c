// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One stream, and a peer whose octets the test writes: what it orders, and what it takes for a violation.
#include "xsock/stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define LEN 4096u
#define QUEUE 16u
#define MAPS 2u
#define PEER_SGL 0x1000u
#define PEER_RING 0x100000u

static struct scene {
	struct aw_xs_stream s;
	uint8_t send[LEN], recv[2 * LEN];
	uint8_t target[AW_XS_SGL_MAX * AW_XS_SGE_LEN + MAPS * AW_XS_IOMAP_LEN];
	uint8_t notes[AW_XS_NOTES * AW_XS_IOMAP_LEN];
	struct aw_xs_order order;
} scene;

static struct aw_xs_stream *const s = &scene.s;

static const struct aw_xs_hello peer = {
	.credits = QUEUE,
	.iomaps = MAPS,
	.anywarp = true,
	.ext = AW_XS_EXT_URGENT,
	.sgl = { PEER_SGL, 71, AW_XS_SGL_MAX },
	.data = { PEER_RING, 72, LEN / 2 },
};

static void init(void)
{
	const struct aw_xs_memory mem = {
		.send = scene.send,
		.recv = scene.recv,
		.send_len = LEN,
		.recv_len = 2 * LEN,
		.recv_start = LEN,
		.target = scene.target,
		.iomaps = MAPS,
		.notes = scene.notes,
		.recv_key = 61,
		.target_key = 62,
	};

	memset(&scene, 0, sizeof(scene));
	aw_xs_stream_init(s, &mem, QUEUE, QUEUE);
}

static int meet(const struct aw_xs_hello *hello)
{
	uint8_t octets[AW_XS_HELLO_LEN];

	init();
	aw_xs_hello_put(octets, hello);
	return aw_xs_stream_meet(s, octets, sizeof(octets));
}

static bool next(void)
{
	return aw_xs_stream_next(s, 0, &scene.order);
}

static void done(void)
{
	aw_xs_stream_done(s, scene.order.kind, scene.order.wrs, scene.order.octets);
}

/* Up, and all buffers advertised. */
static void open_with(const struct aw_xs_hello *hello)
{
	assert_int_equal(meet(hello), 0);
	aw_xs_stream_open(s);
	while (next())
		done();
}

static int setup(void **state)
{
	(void)state;
	open_with(&peer);
	return 0;
}

static int hear(enum aw_xs_op op, uint32_t data)
{
	uint8_t octets[AW_XS_MSG_LEN];

	aw_xs_msg_put(octets, s->rx_net, op, data);
	return aw_xs_stream_message(s, octets, sizeof(octets));
}

static void said(enum aw_xs_op op, uint32_t data)
{
	uint32_t o, d;

	assert_true(scene.order.has_msg);
	aw_xs_msg_get(scene.order.msg, s->tx_net, &o, &d);
	assert_int_equal(o, op);
	assert_int_equal(d, data);
}

static size_t put(const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	return aw_xs_stream_put(s, &iov, 1);
}

static size_t put_octets(size_t len)
{
	static uint8_t octets[2 * LEN];
	struct iovec iov = { octets, len };

	return aw_xs_stream_put(s, &iov, 1);
}

static size_t get_octets(size_t len)
{
	static uint8_t octets[2 * LEN];
	struct iovec iov = { octets, len };

	return aw_xs_stream_get(s, &iov, 1, false);
}

static void advertise(uint32_t entry, const struct aw_xs_sge *sge)
{
	aw_xs_sge_put(scene.target + entry * AW_XS_SGE_LEN, aw_xs_host_is_net(), sge);
}

static void stream_meet__malformed(void **state)
{
	struct aw_xs_hello hello = peer;

	(void)state;
	init();
	assert_int_equal(aw_xs_stream_meet(s, (const uint8_t *)"", 0), -EPROTO);
	hello.sgl.len = 1;
	assert_int_equal(meet(&hello), -EPROTO);
	hello = peer;
	hello.data.addr = UINT64_MAX - hello.data.len + 1;
	assert_int_equal(meet(&hello), -EPROTO);
	hello = peer;
	hello.sgl.addr = UINT64_MAX - 10;
	assert_int_equal(meet(&hello), -EPROTO);
	assert_int_equal(s->error, -EPROTO);
	aw_xs_stream_open(s);
	assert_false(next());
}

static void stream_meet__twice(void **state)
{
	uint8_t octets[AW_XS_HELLO_LEN];

	(void)state;
	aw_xs_hello_put(octets, &peer);
	assert_int_equal(aw_xs_stream_meet(s, octets, sizeof(octets)), -EPROTO);
}

static void stream_open__advertises_the_rest(void **state)
{
	struct aw_xs_sge sge;

	(void)state;
	assert_int_equal(meet(&peer), 0);
	assert_false(next());
	aw_xs_stream_open(s);
	for (uint32_t i = 1; i <= 4; i++) {
		assert_true(next());
		assert_int_equal(scene.order.kind, AW_XS_CREDIT);
		assert_int_equal(scene.order.addr, PEER_SGL + i * AW_XS_SGE_LEN);
		assert_int_equal(scene.order.key, 71);
		assert_int_equal(scene.order.span[0].len, AW_XS_SGE_LEN);
		aw_xs_sge_get(scene.order.span[0].octets, aw_xs_host_is_net(), &sge);
		assert_int_equal(sge.addr, (uintptr_t)scene.recv + LEN / 2 + (i - 1) * LEN / 8);
		assert_int_equal(sge.len, LEN / 8);
		assert_int_equal(sge.key, 61);
		said(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE);
	}
	assert_false(next());
}

/* rdma-core has two entries, and fills each wholly. */
static void stream_open__two_halves_for_rdma_core(void **state)
{
	struct aw_xs_hello hello = peer;

	(void)state;
	hello.anywarp = false;
	hello.sgl.len = 2;
	assert_int_equal(meet(&hello), 0);
	aw_xs_stream_open(s);
	assert_true(next());
	assert_int_equal(scene.order.addr, PEER_SGL + AW_XS_SGE_LEN);
	said(AW_XS_OP_CREDIT, QUEUE);
	assert_false(next());
	assert_int_equal(s->adv, LEN);
}

static void stream_over__reset_unless_in_order(void **state)
{
	(void)state;
	aw_xs_stream_over(s);
	assert_int_equal(s->error, -ECONNRESET);
	open_with(&peer);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	aw_xs_stream_over(s);
	assert_int_equal(s->error, -ECONNRESET);
	open_with(&peer);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT), 0);
	aw_xs_stream_over(s);
	assert_int_equal(s->error, 0);
}

static void stream_put__as_much_as_fits(void **state)
{
	(void)state;
	assert_int_equal(put_octets(0), 0);
	assert_int_equal(put_octets(LEN - 1), LEN - 1);
	assert_int_equal(put_octets(2), 1);
	assert_int_equal(put_octets(1), 0);
	assert_int_equal(aw_xs_stream_room(s), 0);
}

static void stream_next__octets_and_how_many(void **state)
{
	(void)state;
	assert_false(next());
	assert_int_equal(put("hello"), 5);
	assert_true(next());
	assert_int_equal(scene.order.kind, AW_XS_DATA);
	assert_int_equal(scene.order.addr, PEER_RING);
	assert_int_equal(scene.order.key, 72);
	assert_int_equal(scene.order.spans, 1);
	assert_memory_equal(scene.order.span[0].octets, "hello", 5);
	said(AW_XS_OP_DATA, 5);
	assert_int_equal(put("!"), 1);
	assert_true(next());
	assert_int_equal(scene.order.addr, PEER_RING + 5);
	assert_false(next());
}

static void stream_next__few_octets_wait_for_more(void **state)
{
	(void)state;
	put("abc");
	assert_false(aw_xs_stream_next(s, 4, &scene.order));
	put("d");
	assert_true(aw_xs_stream_next(s, 4, &scene.order));
	said(AW_XS_OP_DATA, 4);
	put("e");
	assert_false(aw_xs_stream_next(s, 4, &scene.order));
	aw_xs_stream_end(s, AW_XS_SHUT);
	assert_true(aw_xs_stream_next(s, 4, &scene.order));
	said(AW_XS_OP_DATA, 1);
}

static void stream_next__window_is_kept(void **state)
{
	(void)state;
	assert_int_equal(put_octets(LEN), LEN);
	assert_true(next());
	said(AW_XS_OP_DATA, LEN / 2);
	assert_false(next());
	advertise(1, &(struct aw_xs_sge){ PEER_RING + 9000, 73, 100 });
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE), 0);
	assert_true(next());
	assert_int_equal(scene.order.addr, PEER_RING + 9000);
	assert_int_equal(scene.order.key, 73);
	said(AW_XS_OP_DATA, 100);
	assert_false(next());
}

static void stream_next__credit_is_kept(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < QUEUE; i++) {
		put("x");
		assert_true(next());
		done();
	}
	put("x");
	assert_false(next());
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE + 1), 0);
	assert_true(next());
	put("x");
	assert_false(next());
}

static void stream_next__queue_keeps_room_for_credits(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < QUEUE / 2; i++) {
		put("x");
		assert_true(next());
	}
	put("x");
	assert_false(next());
	for (uint32_t i = 0; i < QUEUE / 2; i++)
		assert_int_equal(hear(AW_XS_OP_DATA, 1), 0);
	assert_true(next());
	said(AW_XS_OP_CREDIT, QUEUE + QUEUE / 2);
	assert_false(next());
}

/* The last of two says that both are. */
static void stream_next__the_end(void **state)
{
	(void)state;
	put("x");
	aw_xs_stream_end(s, AW_XS_SHUT);
	assert_true(next());
	said(AW_XS_OP_DATA, 1);
	assert_false(aw_xs_stream_has_ended(s));
	assert_true(next());
	said(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN);
	assert_true(aw_xs_stream_has_ended(s));
	assert_false(next());
	aw_xs_stream_end(s, AW_XS_GONE);
	assert_true(next());
	said(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT);
	assert_false(next());
	open_with(&peer);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	aw_xs_stream_end(s, AW_XS_SHUT);
	assert_true(next());
	said(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT);
}

static void stream_put_urgent__is_told_before_a_closed_window(void **state)
{
	(void)state;
	assert_int_equal(put_octets(LEN), LEN);
	assert_true(next());
	aw_xs_stream_put_urgent(s);
	assert_true(next());
	said(AW_XS_OP_URGENT, LEN / 2);
	assert_false(next());
}

static void stream_iomap__entry_and_index(void **state)
{
	struct aw_xs_iomap map = { 77, { 0x5000, 74, 100 } }, sent;

	(void)state;
	assert_false(aw_xs_stream_iomap(s, MAPS, &map, &scene.order));
	assert_true(aw_xs_stream_iomap(s, 1, &map, &scene.order));
	assert_int_equal(scene.order.addr,
			 PEER_SGL + AW_XS_SGL_MAX * AW_XS_SGE_LEN + AW_XS_IOMAP_LEN);
	aw_xs_iomap_get(scene.order.span[0].octets, aw_xs_host_is_net(), &sent);
	assert_memory_equal(&sent, &map, sizeof(map));
	said(AW_XS_OP_IOMAP, 1);
}

static void stream_iowrite__within_the_map(void **state)
{
	const struct aw_xs_iomap map = { 1000, { 0x5000, 74, 100 } };

	(void)state;
	aw_xs_iomap_put(scene.target + AW_XS_SGL_MAX * AW_XS_SGE_LEN, aw_xs_host_is_net(), &map);
	assert_int_equal(aw_xs_stream_iowrite(s, "abc", 3, 999, &scene.order), 0);
	assert_int_equal(aw_xs_stream_iowrite(s, "abc", 3, 1100, &scene.order), 0);
	assert_int_equal(aw_xs_stream_iowrite(s, "abc", 3, 1098, &scene.order), 2);
	assert_int_equal(scene.order.addr, 0x5000 + 98);
	assert_int_equal(scene.order.key, 74);
	assert_false(scene.order.has_msg);
	put("x");
	assert_int_equal(aw_xs_stream_iowrite(s, "abc", 3, 1000, &scene.order), -EAGAIN);
}

/* Each on a stream of its own: what a peer may not say. */
static void stream_message__violations(void **state)
{
	static const struct {
		uint32_t op, data;
	} cases[] = {
		{ AW_XS_OP_DATA, LEN + 1 },
		{ AW_XS_OP_DATA, AW_XS_MSG_DATA_MAX },
		{ 1, 0 },
		{ 2, 0 },
		{ 3, 0 },
		{ AW_XS_OP_CREDIT, QUEUE + 1 },
		{ AW_XS_OP_CREDIT, 0xffff },
		{ AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE }, /* and no entry */
		{ AW_XS_OP_URGENT, 0 },
		{ AW_XS_OP_IOMAP, MAPS },
		{ AW_XS_OP_CTRL, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_with(&peer);
		assert_int_equal(hear(cases[i].op, cases[i].data), -EPROTO);
		assert_int_equal(s->error, -EPROTO);
		assert_int_equal(s->came, 0);
		put("x");
		assert_false(next());
	}
	open_with(&peer);
	assert_int_equal(aw_xs_stream_message(s, (const uint8_t *)"abc", 3), -EPROTO);
}

static void stream_message__no_more_than_was_advertised(void **state)
{
	(void)state;
	assert_int_equal(hear(AW_XS_OP_DATA, LEN), 0);
	assert_int_equal(aw_xs_stream_pending(s), LEN);
	assert_int_equal(hear(AW_XS_OP_DATA, 1), -EPROTO);
}

static void stream_message__no_more_than_was_granted(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < QUEUE; i++)
		assert_int_equal(hear(AW_XS_OP_DATA, 1), 0);
	assert_int_equal(hear(AW_XS_OP_IOMAP, 0), -EPROTO);
}

static void stream_message__a_ninth_entry(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < AW_XS_SGL_MAX; i++) {
		advertise(i, &(struct aw_xs_sge){ 0x900000u * i, i, 10 });
		assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE), 0);
	}
	assert_int_equal(s->runs, AW_XS_SGL_MAX);
	advertise(0, &(struct aw_xs_sge){ 0x900000u, 1, 10 });
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE), -EPROTO);
}

static void stream_message__an_entry_once(void **state)
{
	(void)state;
	advertise(1, &(struct aw_xs_sge){ 0x900000u, 1, 10 });
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE), 0);
	assert_memory_equal(scene.target, scene.target + AW_XS_SGE_LEN, AW_XS_SGE_LEN);
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE), 0);
	assert_int_equal(s->runs, 2);
}

static void stream_message__an_entry_past_the_end_of_memory(void **state)
{
	(void)state;
	advertise(1, &(struct aw_xs_sge){ UINT64_MAX - 5, 1, 10 });
	assert_int_equal(hear(AW_XS_OP_CREDIT, QUEUE | AW_XS_CREDIT_SGE), -EPROTO);
}

static void stream_message__octets_behind_the_end(void **state)
{
	(void)state;
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_KEEPALIVE), 0);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	assert_int_equal(hear(AW_XS_OP_DATA, 1), -EPROTO);
	open_with(&peer);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	assert_int_equal(hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), -EPROTO);
}

static void stream_message__urgent_only_where_agreed(void **state)
{
	struct aw_xs_hello hello = peer;

	(void)state;
	hello.ext = 0;
	open_with(&hello);
	assert_int_equal(hear(AW_XS_OP_URGENT, 1), -EPROTO);
}

static void stream_get__buffers_are_told_of_again(void **state)
{
	(void)state;
	assert_int_equal(hear(AW_XS_OP_DATA, LEN / 8), 0);
	assert_int_equal(get_octets(LEN / 8 - 1), LEN / 8 - 1);
	assert_false(next());
	assert_int_equal(get_octets(1), 1);
	assert_true(next());
	said(AW_XS_OP_CREDIT, (QUEUE + 1) | AW_XS_CREDIT_SGE);
	assert_int_equal(scene.order.addr, PEER_SGL + 5 * AW_XS_SGE_LEN);
	assert_false(next());
}

/* Twice as large at its end, if it was filled; octets that are in it stay where they are. */
static void stream_get__the_ring_grows(void **state)
{
	struct aw_xs_sge sge;

	(void)state;
	scene.recv[LEN - 1] = 'a';
	scene.recv[LEN] = 'b';
	assert_int_equal(hear(AW_XS_OP_DATA, LEN), 0);
	assert_true(next());
	aw_xs_sge_get(scene.order.span[0].octets, aw_xs_host_is_net(), &sge);
	assert_int_equal(sge.addr, (uintptr_t)scene.recv + LEN);
	assert_int_equal(sge.len, 2 * LEN / AW_XS_SGL_MAX);
	while (next())
		done();
	assert_int_equal(s->adv, 2 * LEN);
	assert_int_equal(get_octets(LEN - 1), LEN - 1);
	assert_int_equal(hear(AW_XS_OP_DATA, LEN), 0);
	assert_int_equal(aw_xs_stream_pending(s), LEN + 1);
	assert_int_equal(get_octets(2), 2);
	while (next())
		done();
	assert_int_equal(s->adv, 2 * LEN + 2 * LEN / AW_XS_SGL_MAX * 4);
	assert_int_equal(s->adv_at, 2 * LEN / AW_XS_SGL_MAX * 4);
}

/* Who has read all of it stands at its end, which is its start once octets go on there. */
static void stream_get__at_the_end_of_a_ring_that_then_grows(void **state)
{
	uint8_t octet;
	struct iovec iov = { &octet, 1 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(hear(AW_XS_OP_DATA, LEN / 8), 0);
		assert_int_equal(get_octets(LEN), LEN / 8);
	}
	while (next())
		done();
	assert_int_equal(s->adv, 2 * LEN);
	assert_int_equal(hear(AW_XS_OP_DATA, LEN), 0);
	scene.recv[0] = 'a';
	while (next())
		done();
	assert_int_equal(s->recv_used, 2 * LEN);
	assert_int_equal(aw_xs_stream_get(s, &iov, 1, false), 1);
	assert_int_equal(octet, 'a');
}

static void stream_get__the_ring_stays_where_little_is_in_it(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(hear(AW_XS_OP_DATA, LEN / 8), 0);
		assert_int_equal(get_octets(LEN), LEN / 8);
		while (next())
			done();
	}
	assert_int_equal(s->recv_used, LEN);
}

static void stream_get__stops_at_the_mark(void **state)
{
	uint8_t octet;

	(void)state;
	memcpy(scene.recv, "abcdef", 6);
	assert_int_equal(aw_xs_stream_get_urgent(s, false, &octet), -EINVAL);
	assert_int_equal(hear(AW_XS_OP_URGENT, 3), 0);
	assert_true(aw_xs_stream_is_urgent(s));
	assert_int_equal(aw_xs_stream_get_urgent(s, false, &octet), -EAGAIN);
	assert_int_equal(hear(AW_XS_OP_DATA, 6), 0);
	assert_int_equal(aw_xs_stream_pending(s), 2);
	assert_int_equal(get_octets(10), 2);
	assert_true(aw_xs_stream_at_mark(s));
	assert_int_equal(aw_xs_stream_get_urgent(s, false, &octet), 0);
	assert_int_equal(octet, 'c');
	assert_false(aw_xs_stream_is_urgent(s));
	assert_int_equal(aw_xs_stream_pending(s), 3);
	assert_int_equal(get_octets(10), 3);
	assert_int_equal(aw_xs_stream_get_urgent(s, false, &octet), -EINVAL);
}

static void stream_get__urgent_inline(void **state)
{
	uint8_t octet;

	(void)state;
	s->urgent_inline = true;
	assert_int_equal(hear(AW_XS_OP_URGENT, 3), 0);
	assert_int_equal(hear(AW_XS_OP_DATA, 6), 0);
	assert_int_equal(get_octets(10), 2);
	assert_int_equal(aw_xs_stream_get_urgent(s, false, &octet), -EINVAL);
	assert_int_equal(get_octets(10), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_meet__malformed),
		cmocka_unit_test_setup(stream_meet__twice, setup),
		cmocka_unit_test(stream_open__advertises_the_rest),
		cmocka_unit_test(stream_open__two_halves_for_rdma_core),
		cmocka_unit_test_setup(stream_over__reset_unless_in_order, setup),
		cmocka_unit_test_setup(stream_put__as_much_as_fits, setup),
		cmocka_unit_test_setup(stream_next__octets_and_how_many, setup),
		cmocka_unit_test_setup(stream_next__few_octets_wait_for_more, setup),
		cmocka_unit_test_setup(stream_next__window_is_kept, setup),
		cmocka_unit_test_setup(stream_next__credit_is_kept, setup),
		cmocka_unit_test_setup(stream_next__queue_keeps_room_for_credits, setup),
		cmocka_unit_test_setup(stream_next__the_end, setup),
		cmocka_unit_test_setup(stream_put_urgent__is_told_before_a_closed_window, setup),
		cmocka_unit_test_setup(stream_iomap__entry_and_index, setup),
		cmocka_unit_test_setup(stream_iowrite__within_the_map, setup),
		cmocka_unit_test_setup(stream_message__violations, setup),
		cmocka_unit_test_setup(stream_message__no_more_than_was_advertised, setup),
		cmocka_unit_test_setup(stream_message__no_more_than_was_granted, setup),
		cmocka_unit_test_setup(stream_message__a_ninth_entry, setup),
		cmocka_unit_test_setup(stream_message__an_entry_once, setup),
		cmocka_unit_test_setup(stream_message__an_entry_past_the_end_of_memory, setup),
		cmocka_unit_test_setup(stream_message__octets_behind_the_end, setup),
		cmocka_unit_test(stream_message__urgent_only_where_agreed),
		cmocka_unit_test_setup(stream_get__buffers_are_told_of_again, setup),
		cmocka_unit_test_setup(stream_get__the_ring_grows, setup),
		cmocka_unit_test_setup(stream_get__at_the_end_of_a_ring_that_then_grows, setup),
		cmocka_unit_test_setup(stream_get__the_ring_stays_where_little_is_in_it, setup),
		cmocka_unit_test_setup(stream_get__stops_at_the_mark, setup),
		cmocka_unit_test_setup(stream_get__urgent_inline, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
