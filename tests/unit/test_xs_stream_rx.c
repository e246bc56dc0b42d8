// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a stream takes of its peer, and what it takes for a violation.
#include "../lib/xs_one.h"

#include <errno.h>
#include <string.h>

/* Each on a stream of its own: what a peer may not say. */
static void stream_message__violations(void **state)
{
	static const struct {
		uint32_t op, data;
	} cases[] = {
		{ AW_XS_OP_DATA, ONE_LEN + 1 },
		{ AW_XS_OP_DATA, AW_XS_MSG_DATA_MAX },
		{ 1, 0 },
		{ 2, 0 },
		{ 3, 0 },
		{ AW_XS_OP_CREDIT, ONE_QUEUE + 1 },
		{ AW_XS_OP_CREDIT, 0xffff },
		{ AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE }, /* and no entry */
		{ AW_XS_OP_URGENT, 0 },
		{ AW_XS_OP_IOMAP, ONE_MAPS },
		{ AW_XS_OP_CTRL, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		one_open(&one_peer);
		assert_int_equal(one_hear(cases[i].op, cases[i].data), -EPROTO);
		assert_int_equal(one.s.error, -EPROTO);
		assert_int_equal(one.s.came, 0);
		one_put("x");
		assert_false(one_next());
	}
	one_open(&one_peer);
	assert_int_equal(aw_xs_stream_message(&one.s, (const uint8_t *)"abc", 3), -EPROTO);
}

static void stream_message__no_more_than_was_advertised(void **state)
{
	(void)state;
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN), 0);
	assert_int_equal(aw_xs_stream_pending(&one.s), ONE_LEN);
	assert_int_equal(one_hear(AW_XS_OP_DATA, 1), -EPROTO);
}

static void stream_message__no_more_than_was_granted(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ONE_QUEUE; i++)
		assert_int_equal(one_hear(AW_XS_OP_DATA, 1), 0);
	assert_int_equal(one_hear(AW_XS_OP_IOMAP, 0), -EPROTO);
}

static void stream_message__a_ninth_entry(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < AW_XS_SGL_MAX; i++) {
		one_advertise(i, &(struct aw_xs_sge){ 0x900000u * i, i, 10 });
		assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE), 0);
	}
	assert_int_equal(one.s.runs, AW_XS_SGL_MAX);
	one_advertise(0, &(struct aw_xs_sge){ 0x900000u, 1, 10 });
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE), -EPROTO);
}

static void stream_message__an_entry_once(void **state)
{
	(void)state;
	one_advertise(1, &(struct aw_xs_sge){ 0x900000u, 1, 10 });
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE), 0);
	assert_memory_equal(one.target, one.target + AW_XS_SGE_LEN, AW_XS_SGE_LEN);
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE), 0);
	assert_int_equal(one.s.runs, 2);
}

static void stream_message__an_entry_past_the_end_of_memory(void **state)
{
	(void)state;
	one_advertise(1, &(struct aw_xs_sge){ UINT64_MAX - 5, 1, 10 });
	assert_int_equal(one_hear(AW_XS_OP_CREDIT, ONE_QUEUE | AW_XS_CREDIT_SGE), -EPROTO);
}

static void stream_message__octets_behind_the_end(void **state)
{
	(void)state;
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_KEEPALIVE), 0);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	assert_int_equal(one_hear(AW_XS_OP_DATA, 1), -EPROTO);
	one_open(&one_peer);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), 0);
	assert_int_equal(one_hear(AW_XS_OP_CTRL, AW_XS_CTRL_SHUTDOWN), -EPROTO);
}

static void stream_message__urgent_only_where_agreed(void **state)
{
	struct aw_xs_hello hello = one_peer;

	(void)state;
	hello.ext = 0;
	one_open(&hello);
	assert_int_equal(one_hear(AW_XS_OP_URGENT, 1), -EPROTO);
}

static void stream_get__buffers_are_told_of_again(void **state)
{
	(void)state;
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN / 8), 0);
	assert_int_equal(one_get_octets(ONE_LEN / 8 - 1), ONE_LEN / 8 - 1);
	assert_false(one_next());
	assert_int_equal(one_get_octets(1), 1);
	assert_true(one_next());
	one_said(AW_XS_OP_CREDIT, (ONE_QUEUE + 1) | AW_XS_CREDIT_SGE);
	assert_int_equal(one.work.addr, ONE_PEER_SGL + 5 * AW_XS_SGE_LEN);
	assert_false(one_next());
}

/* Twice as large at its end, if it was filled; octets that are in it stay where they are. */
static void stream_get__the_ring_grows(void **state)
{
	struct aw_xs_sge sge;

	(void)state;
	one.recv[ONE_LEN - 1] = 'a';
	one.recv[ONE_LEN] = 'b';
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN), 0);
	assert_true(one_next());
	aw_xs_sge_get(one.work.entry, one_peer.net, &sge);
	assert_int_equal(sge.addr, (uintptr_t)one.recv + ONE_LEN);
	assert_int_equal(sge.len, 2 * ONE_LEN / AW_XS_SGL_MAX);
	while (one_next())
		one_done();
	assert_int_equal(one.s.adv, 2 * ONE_LEN);
	assert_int_equal(one_get_octets(ONE_LEN - 1), ONE_LEN - 1);
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN), 0);
	assert_int_equal(aw_xs_stream_pending(&one.s), ONE_LEN + 1);
	assert_int_equal(one_get_octets(2), 2);
	while (one_next())
		one_done();
	assert_int_equal(one.s.adv, 2 * ONE_LEN + 2 * ONE_LEN / AW_XS_SGL_MAX * 4);
	assert_int_equal(one.s.adv_at, 2 * ONE_LEN / AW_XS_SGL_MAX * 4);
}

/* Who has read all of it stands at its end, which is its start once octets go on there. */
static void stream_get__at_the_end_of_a_ring_that_then_grows(void **state)
{
	uint8_t octet;
	struct iovec iov = { &octet, 1 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN / 8), 0);
		assert_int_equal(one_get_octets(ONE_LEN), ONE_LEN / 8);
	}
	while (one_next())
		one_done();
	assert_int_equal(one.s.adv, 2 * ONE_LEN);
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN), 0);
	one.recv[0] = 'a';
	while (one_next())
		one_done();
	assert_int_equal(one.s.recv_used, 2 * ONE_LEN);
	assert_int_equal(aw_xs_stream_get(&one.s, &iov, 1, false), 1);
	assert_int_equal(octet, 'a');
}

/* The same where the next octets were on their way already. */
static void stream_get__at_the_start_of_a_ring_that_then_grows(void **state)
{
	uint8_t octet;
	struct iovec iov = { &octet, 1 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN / 8), 0);
		assert_int_equal(one_get_octets(ONE_LEN), ONE_LEN / 8);
		while (one_next())
			one_done();
	}
	assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN), 0);
	one.recv[0] = 'a';
	while (one_next())
		one_done();
	assert_int_equal(one.s.recv_used, 2 * ONE_LEN);
	assert_int_equal(aw_xs_stream_get(&one.s, &iov, 1, false), 1);
	assert_int_equal(octet, 'a');
}

static void stream_get__the_ring_stays_where_little_is_in_it(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(one_hear(AW_XS_OP_DATA, ONE_LEN / 8), 0);
		assert_int_equal(one_get_octets(ONE_LEN), ONE_LEN / 8);
		while (one_next())
			one_done();
	}
	assert_int_equal(one.s.recv_used, ONE_LEN);
}

static void stream_get__stops_at_the_mark(void **state)
{
	uint8_t octet;

	(void)state;
	memcpy(one.recv, "abcdef", 6);
	assert_int_equal(aw_xs_stream_get_urgent(&one.s, false, &octet), -EINVAL);
	assert_int_equal(one_hear(AW_XS_OP_URGENT, 3), 0);
	assert_true(aw_xs_stream_is_urgent(&one.s));
	assert_int_equal(aw_xs_stream_get_urgent(&one.s, false, &octet), -EAGAIN);
	assert_int_equal(one_hear(AW_XS_OP_DATA, 6), 0);
	assert_int_equal(aw_xs_stream_pending(&one.s), 2);
	assert_int_equal(one_get_octets(10), 2);
	assert_true(aw_xs_stream_at_mark(&one.s));
	assert_int_equal(aw_xs_stream_get_urgent(&one.s, false, &octet), 0);
	assert_int_equal(octet, 'c');
	assert_false(aw_xs_stream_is_urgent(&one.s));
	assert_int_equal(aw_xs_stream_pending(&one.s), 3);
	assert_int_equal(one_get_octets(10), 3);
	assert_int_equal(aw_xs_stream_get_urgent(&one.s, false, &octet), -EINVAL);
}

static void stream_get__urgent_inline(void **state)
{
	uint8_t octet;

	(void)state;
	one.s.urgent_inline = true;
	assert_int_equal(one_hear(AW_XS_OP_URGENT, 3), 0);
	assert_int_equal(one_hear(AW_XS_OP_DATA, 6), 0);
	assert_int_equal(one_get_octets(10), 2);
	assert_int_equal(aw_xs_stream_get_urgent(&one.s, false, &octet), -EINVAL);
	assert_int_equal(one_get_octets(10), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stream_message__violations, one_setup),
		cmocka_unit_test_setup(stream_message__no_more_than_was_advertised, one_setup),
		cmocka_unit_test_setup(stream_message__no_more_than_was_granted, one_setup),
		cmocka_unit_test_setup(stream_message__a_ninth_entry, one_setup),
		cmocka_unit_test_setup(stream_message__an_entry_once, one_setup),
		cmocka_unit_test_setup(stream_message__an_entry_past_the_end_of_memory, one_setup),
		cmocka_unit_test_setup(stream_message__octets_behind_the_end, one_setup),
		cmocka_unit_test(stream_message__urgent_only_where_agreed),
		cmocka_unit_test_setup(stream_get__buffers_are_told_of_again, one_setup),
		cmocka_unit_test_setup(stream_get__the_ring_grows, one_setup),
		cmocka_unit_test_setup(stream_get__at_the_end_of_a_ring_that_then_grows, one_setup),
		cmocka_unit_test_setup(stream_get__at_the_start_of_a_ring_that_then_grows,
				       one_setup),
		cmocka_unit_test_setup(stream_get__the_ring_stays_where_little_is_in_it, one_setup),
		cmocka_unit_test_setup(stream_get__stops_at_the_mark, one_setup),
		cmocka_unit_test_setup(stream_get__urgent_inline, one_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
