// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The begin and the end of a stream.
#include "xsock/stream/stream.h"

#include <errno.h>
#include <string.h>

size_t aw_xs_target_len(uint16_t iomaps)
{
	return AW_XS_SGL_MAX * AW_XS_SGE_LEN + (size_t)iomaps * AW_XS_IOMAP_LEN;
}

void aw_xs_stream_init(struct aw_xs_stream *s, const struct aw_xs_memory *mem, uint32_t sq_size,
		       uint32_t rq_size)
{
	memset(s, 0, sizeof(*s));
	s->mem = *mem;
	s->sq_size = sq_size;
	s->rq_size = rq_size;
}

void aw_xs_stream_hello(const struct aw_xs_stream *s, uint8_t bytes[AW_XS_HELLO_LEN])
{
	const struct aw_xs_hello hello = {
		.net = aw_xs_host_is_net(),
		.credits = (uint16_t)s->rq_size,
		.iomaps = s->mem.iomaps,
		.anywarp = true,
		.ext = AW_XS_EXT_URGENT,
		.sgl = { (uintptr_t)s->mem.target, s->mem.target_key, AW_XS_SGL_MAX },
		.data = { (uintptr_t)s->mem.recv, s->mem.recv_key, s->mem.recv_start / 2 },
	};

	aw_xs_hello_put(bytes, &hello);
}

/* Checks that the peer's tables fit into its address space; where they are is up to the peer. */
static bool is_sound(const struct aw_xs_hello *hello)
{
	uint64_t tables = (uint64_t)hello->sgl.len * AW_XS_SGE_LEN +
			  (uint64_t)hello->iomaps * AW_XS_IOMAP_LEN;

	return hello->sgl.len >= 2 && tables <= UINT64_MAX - hello->sgl.addr &&
	       hello->data.len <= UINT64_MAX - hello->data.addr;
}

int aw_xs_stream_meet(struct aw_xs_stream *s, const uint8_t *bytes, size_t len)
{
	struct aw_xs_hello hello;

	if (s->met || !aw_xs_hello_get(bytes, len, &hello) || !is_sound(&hello)) {
		aw_xs_stream_fail(s, -EPROTO);
		return -EPROTO;
	}
	s->anywarp = hello.anywarp;
	s->ext = hello.ext & AW_XS_EXT_URGENT;
	s->peer_net = hello.net;
	s->tx_net = hello.net;
	/* rsockets sends messages in the sender's order and reads them in the receiver's. */
	s->rx_net = hello.anywarp ? aw_xs_host_is_net() : hello.net;
	s->peer_sgl = hello.sgl;
	s->peer_iomap = hello.sgl;
	s->peer_iomap.addr += (uint64_t)hello.sgl.len * AW_XS_SGE_LEN;
	s->peer_iomap.len = hello.iomaps;
	s->peer_credits = hello.credits;
	s->seq_limit = hello.credits;
	if (hello.data.len > 0)
		s->run[s->runs++] = hello.data;

	/* Our hello has the first buffer. The peer's SGL has two entries at least, for the next ones. */
	s->chunks = s->anywarp && s->peer_sgl.len >= AW_XS_SGL_MAX ? AW_XS_SGL_MAX : 2;
	s->recv_used = s->mem.recv_start;
	s->adv = s->adv_at = s->recv_used / 2;
	s->adv_end[s->adv_open++] = s->adv;
	s->peer_sgl_next = 1;
	s->sgl_next = 1;
	s->met = true;
	return 0;
}

void aw_xs_stream_open(struct aw_xs_stream *s)
{
	s->open = s->met;
}

bool aw_xs_stream_is_done(const struct aw_xs_stream *s)
{
	return s->rx_end == AW_XS_GONE || s->tx_end == AW_XS_GONE ||
	       (s->rx_end == AW_XS_SHUT && s->tx_end == AW_XS_SHUT);
}

void aw_xs_stream_disconnected(struct aw_xs_stream *s)
{
	if (!aw_xs_stream_is_done(s))
		aw_xs_stream_fail(s, -ECONNRESET);
	s->open = false;
}

void aw_xs_stream_fail(struct aw_xs_stream *s, int error)
{
	if (!s->error)
		s->error = error;
	s->open = false;
}
