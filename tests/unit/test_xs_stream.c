// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a stream begins and ends, and what it orders.
#include "../lib/xs_one.h"

#include <errno.h>
#include <string.h>

static void stream_meet__malformed(void **state)
{
	struct aw_xs_hello hello = one_peer;

	(void)state;
	one_init();
	assert_int_equal(aw_xs_stream_meet(&one.s, (const uint8_t *)"", 0), -EPROTO);
	hello.sgl.len = 1;
	assert_int_equal(one_meet(&hello), -EPROTO);
	hello = one_peer;
	hello.data.addr = UINT64_MAX - hello.data.len + 1;
	assert_int_equal(one_meet(&hello), -EPROTO);
	hello = one_peer;
	hello.sgl.addr = UINT64_MAX - 10;
	assert_int_equal(one_meet(&hello), -EPROTO);
	assert_int_equal(one.s.error, -EPROTO);
	aw_xs_stream_open(&one.s);
	assert_false(one_next());
}

static void stream_meet__twice(void **state)
{
	uint8_t octets[AW_XS_HELLO_LEN];

	(void)state;
	aw_xs_hello_put(octets, &one_peer);
	assert_int_equal(aw_xs_stream_meet(&one.s, octets, sizeof(octets)), -EPROTO);
}

static void stream_open__advertises_the_rest(void **state)
{
	struct aw_xs_sge sge;

	(void)state;
	assert_int_equal(one_meet(&one_peer), 0);
	assert_false(one_next());
	aw_xs_stream_open(&one.s);
	for (uint32_t i = 1; i <= 4; i++) {
		assert_true(one_next());
		assert_int_equal(one.work.addr, ONE_PEER_SGL + i * AW_XS_SGE_LEN);
		assert_int_equal(one.work.key, 71);
		assert_int_equal(one.work.entry_len, AW_XS_SGE_LEN);
		aw_xs_sge_get(one.work.entry, one_peer.net, &sge);
		assert_int_equal(sge.addr,
				 (uintptr_t)one.recv + ONE_LEN / 2 + (i - 1) * ONE_LEN / 8);
		assert_int_equal(sge.len, ONE_LEN / 8);
		assert_int_equal(sge.key, 61);
		one_said(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE);
	}
	assert_false(one_next());
}

/* rdma-core has two entries, and fills each wholly. */
static void stream_open__two_halves_for_rdma_core(void **state)
{
	struct aw_xs_hello hello = one_peer;

	(void)state;
	hello.anywarp = false;
	hello.sgl.len = 2;
	assert_int_equal(one_meet(&hello), 0);
	aw_xs_stream_open(&one.s);
	assert_true(one_next());
	assert_int_equal(one.work.addr, ONE_PEER_SGL + AW_XS_SGE_LEN);
	one_said(AW_XS_OP_CREDIT, ONE_QUEUE);
	assert_false(one_next());
	assert_int_equal(one.s.adv, ONE_LEN);
}

static void stream_over__reset_unless_in_order(void **state)
{
	(void)state;
	aw_xs_stream_disconnected(&one.s);
	assert_int_equal(one.s.error, -ECONNRESET);
	one_open(&one_peer);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	aw_xs_stream_disconnected(&one.s);
	assert_int_equal(one.s.error, -ECONNRESET);
	one_open(&one_peer);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT), 0);
	aw_xs_stream_disconnected(&one.s);
	assert_int_equal(one.s.error, 0);
}

static void stream_put__as_much_as_fits(void **state)
{
	(void)state;
	assert_int_equal(one_put_octets(0), 0);
	assert_int_equal(one_put_octets(ONE_LEN - 1), ONE_LEN - 1);
	assert_int_equal(one_put_octets(2), 1);
	assert_int_equal(one_put_octets(1), 0);
	assert_int_equal(aw_xs_stream_room(&one.s), 0);
}

static void stream_next__octets_and_how_many(void **state)
{
	(void)state;
	assert_false(one_next());
	assert_int_equal(one_put("hello"), 5);
	assert_true(one_next());
	assert_int_equal(one.work.addr, ONE_PEER_RING);
	assert_int_equal(one.work.key, 72);
	assert_int_equal(one.work.spans, 1);
	assert_memory_equal(one.work.span[0].bytes, "hello", 5);
	one_said(AW_XS_OP_DATA, 5);
	assert_int_equal(one_put("!"), 1);
	assert_true(one_next());
	assert_int_equal(one.work.addr, ONE_PEER_RING + 5);
	assert_false(one_next());
}

static void stream_next__as_far_as_credits_and_queue_go(void **state)
{
	size_t most;

	(void)state;
	for (int queue = 0; queue < 2; queue++) {
		one_open(&one_peer);
		for (most = 0; one_put("x") == 1 && one_next(); most++) {
			if (!queue)
				one_done();
		}
		assert_int_equal(most, queue ? ONE_QUEUE / 2 : one_peer.credits);
	}
}

static void stream_next__few_octets_wait_for_more(void **state)
{
	(void)state;
	one_put("abc");
	assert_false(aw_xs_stream_next(&one.s, 4, &one.work));
	one_put("d");
	assert_true(aw_xs_stream_next(&one.s, 4, &one.work));
	one_said(AW_XS_OP_DATA, 4);
	one_put("e");
	assert_false(aw_xs_stream_next(&one.s, 4, &one.work));
	aw_xs_stream_end(&one.s, AW_XS_SHUT);
	assert_true(aw_xs_stream_next(&one.s, 4, &one.work));
	one_said(AW_XS_OP_DATA, 1);
}

static void stream_next__window_is_kept(void **state)
{
	(void)state;
	assert_int_equal(one_put_octets(ONE_LEN), ONE_LEN);
	assert_true(one_next());
	one_said(AW_XS_OP_DATA, ONE_LEN / 2);
	assert_false(one_next());
	one_advertise(1, &(struct aw_xs_sge){ ONE_PEER_RING + 9000, 73, 100 });
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE), 0);
	assert_true(one_next());
	assert_int_equal(one.work.addr, ONE_PEER_RING + 9000);
	assert_int_equal(one.work.key, 73);
	one_said(AW_XS_OP_DATA, 100);
	assert_false(one_next());
}

static void stream_next__credit_is_kept(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ONE_QUEUE; i++) {
		one_put("x");
		assert_true(one_next());
		one_done();
	}
	one_put("x");
	assert_false(one_next());
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE + 1), 0);
	assert_true(one_next());
	one_put("x");
	assert_false(one_next());
}

static void stream_next__queue_keeps_room_for_credits(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ONE_QUEUE / 2; i++) {
		one_put("x");
		assert_true(one_next());
	}
	one_put("x");
	assert_false(one_next());
	for (uint32_t i = 0; i < ONE_QUEUE / 2; i++)
		assert_int_equal(one_hear(AW_XS_OP_DATA, 1), 0);
	assert_true(one_next());
	one_said(AW_XS_OP_CREDIT, ONE_QUEUE + ONE_QUEUE / 2);
	assert_false(one_next());
}

/* The last of two says that both are. */
static void stream_next__the_end(void **state)
{
	(void)state;
	one_put("x");
	aw_xs_stream_end(&one.s, AW_XS_SHUT);
	assert_true(one_next());
	one_said(AW_XS_OP_DATA, 1);
	assert_false(aw_xs_stream_has_ended(&one.s));
	assert_true(one_next());
	one_said(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN);
	assert_true(aw_xs_stream_has_ended(&one.s));
	assert_false(one_next());
	aw_xs_stream_end(&one.s, AW_XS_GONE);
	assert_true(one_next());
	one_said(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT);
	assert_false(one_next());
	one_open(&one_peer);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	aw_xs_stream_end(&one.s, AW_XS_SHUT);
	assert_true(one_next());
	one_said(AW_XS_OP_CTRL, AW_XS_CTRL_DISCONNECT);
}

static void stream_put_urgent__is_told_before_a_closed_window(void **state)
{
	(void)state;
	assert_int_equal(one_put_octets(ONE_LEN), ONE_LEN);
	assert_true(one_next());
	aw_xs_stream_put_urgent(&one.s);
	assert_true(one_next());
	one_said(AW_XS_OP_URGENT, ONE_LEN / 2);
	assert_false(one_next());
}

static void stream_iomap__entry_and_index(void **state)
{
	struct aw_xs_iomap map = { 77, { 0x5000, 74, 100 } }, sent;

	(void)state;
	assert_false(aw_xs_stream_iomap(&one.s, ONE_MAPS, &map, &one.work));
	assert_true(aw_xs_stream_iomap(&one.s, 1, &map, &one.work));
	assert_int_equal(one.work.addr,
			 ONE_PEER_SGL + AW_XS_SGL_MAX * AW_XS_SGE_LEN + AW_XS_IOMAP_LEN);
	aw_xs_iomap_get(one.work.entry, one_peer.net, &sent);
	assert_memory_equal(&sent, &map, sizeof(map));
	one_said(AW_XS_OP_IOMAP, 1);
}

static void stream_iowrite__within_the_map(void **state)
{
	const struct aw_xs_iomap map = { 1000, { 0x5000, 74, 100 } };

	(void)state;
	aw_xs_iomap_put(one.target + AW_XS_SGL_MAX * AW_XS_SGE_LEN, aw_xs_host_is_net(), &map);
	assert_int_equal(aw_xs_stream_iowrite(&one.s, "abc", 3, 999, &one.work), 0);
	assert_int_equal(aw_xs_stream_iowrite(&one.s, "abc", 3, 1100, &one.work), 0);
	assert_int_equal(aw_xs_stream_iowrite(&one.s, "abc", 3, 1098, &one.work), 2);
	assert_int_equal(one.work.addr, 0x5000 + 98);
	assert_int_equal(one.work.key, 74);
	assert_false(one.work.has_msg);
	one_put("x");
	assert_int_equal(aw_xs_stream_iowrite(&one.s, "abc", 3, 1000, &one.work), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_meet__malformed),
		cmocka_unit_test_setup(stream_meet__twice, one_setup),
		cmocka_unit_test(stream_open__advertises_the_rest),
		cmocka_unit_test(stream_open__two_halves_for_rdma_core),
		cmocka_unit_test_setup(stream_over__reset_unless_in_order, one_setup),
		cmocka_unit_test_setup(stream_put__as_much_as_fits, one_setup),
		cmocka_unit_test_setup(stream_next__octets_and_how_many, one_setup),
		cmocka_unit_test_setup(stream_next__as_far_as_credits_and_queue_go, one_setup),
		cmocka_unit_test_setup(stream_next__few_octets_wait_for_more, one_setup),
		cmocka_unit_test_setup(stream_next__window_is_kept, one_setup),
		cmocka_unit_test_setup(stream_next__credit_is_kept, one_setup),
		cmocka_unit_test_setup(stream_next__queue_keeps_room_for_credits, one_setup),
		cmocka_unit_test_setup(stream_next__the_end, one_setup),
		cmocka_unit_test_setup(stream_put_urgent__is_told_before_a_closed_window,
				       one_setup),
		cmocka_unit_test_setup(stream_iomap__entry_and_index, one_setup),
		cmocka_unit_test_setup(stream_iowrite__within_the_map, one_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
