// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the stream is told, and what it orders, one call each.
#include "xs_one.h"

#include <string.h>

struct one one;

const struct aw_xs_hello one_peer = {
	.credits = ONE_QUEUE,
	.iomaps = ONE_MAPS,
	.anywarp = true,
	.ext = AW_XS_EXT_URGENT,
	.sgl = { ONE_PEER_SGL, 71, AW_XS_SGL_MAX },
	.data = { ONE_PEER_RING, 72, ONE_LEN / 2 },
};

void one_init(void)
{
	const struct aw_xs_memory mem = {
		.send = one.send,
		.recv = one.recv,
		.send_len = ONE_LEN,
		.recv_len = 2 * ONE_LEN,
		.recv_start = ONE_LEN,
		.target = one.target,
		.iomaps = ONE_MAPS,
		.recv_key = 61,
		.target_key = 62,
	};

	memset(&one, 0, sizeof(one));
	aw_xs_stream_init(&one.s, &mem, ONE_QUEUE, ONE_QUEUE);
}

int one_meet(const struct aw_xs_hello *hello)
{
	uint8_t octets[AW_XS_HELLO_LEN];

	one_init();
	aw_xs_hello_put(octets, hello);
	return aw_xs_stream_meet(&one.s, octets, sizeof(octets));
}

bool one_next(void)
{
	return aw_xs_stream_next(&one.s, 0, &one.work);
}

void one_done(void)
{
	aw_xs_stream_done(&one.s, one.work.wrs, one.work.bytes);
}

/* Up, and all buffers advertised. */
void one_open(const struct aw_xs_hello *hello)
{
	assert_int_equal(one_meet(hello), 0);
	aw_xs_stream_open(&one.s);
	while (one_next())
		one_done();
}

int one_setup(void **state)
{
	(void)state;
	one_open(&one_peer);
	return 0;
}

int one_hear(enum aw_xs_op op, uint32_t data)
{
	uint8_t octets[AW_XS_MSG_LEN];

	aw_xs_msg_put(octets, one.s.rx_net, op, data);
	return aw_xs_stream_message(&one.s, octets, sizeof(octets));
}

void one_said(enum aw_xs_op op, uint32_t data)
{
	uint32_t o, d;

	assert_true(one.work.has_msg);
	aw_xs_msg_get(one.work.msg, one.s.tx_net, &o, &d);
	assert_int_equal(o, op);
	assert_int_equal(d, data);
}

size_t one_put(const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	return aw_xs_stream_put(&one.s, &iov, 1);
}

size_t one_put_octets(size_t len)
{
	static uint8_t octets[2 * ONE_LEN];
	struct iovec iov = { octets, len };

	return aw_xs_stream_put(&one.s, &iov, 1);
}

size_t one_get_octets(size_t len)
{
	static uint8_t octets[2 * ONE_LEN];
	struct iovec iov = { octets, len };

	return aw_xs_stream_get(&one.s, &iov, 1, false);
}

void one_advertise(uint32_t entry, const struct aw_xs_sge *sge)
{
	aw_xs_sge_put(one.target + entry * AW_XS_SGE_LEN, aw_xs_host_is_net(), sge);
}
