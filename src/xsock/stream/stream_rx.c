// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving: what the peer's messages say, checked before it counts, and the bytes that it wrote.
#include "xsock/stream/stream.h"

#include <errno.h>
#include <string.h>

#define BULK_PART 4u /* a ring filled to such a part could be larger */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A message that needs credit: false where the peer had none. */
static bool take_credit(struct aw_xs_stream *s)
{
	if ((uint16_t)(s->rseq - s->rseq_told) >= s->rq_size)
		return false;
	s->rseq++;
	return true;
}

/* The peer's buffers are filled in order. */
static void close_buffers(struct aw_xs_stream *s)
{
	while (s->adv_open > 0 && s->adv_end[0] <= s->came) {
		s->adv_open--;
		memmove(s->adv_end, s->adv_end + 1, s->adv_open * sizeof(s->adv_end[0]));
	}
}

static bool on_data(struct aw_xs_stream *s, uint32_t n)
{
	if (s->rx_end != AW_XS_OPEN || n > s->adv - s->came || !take_credit(s))
		return false;
	s->came += n;
	s->bulk |= s->came - s->got >= s->recv_used / BULK_PART;
	close_buffers(s);
	return true;
}

/* Entries that continue each other are one: between anywarp's ends a message may go across. */
static void add_run(struct aw_xs_stream *s, const struct aw_xs_sge *sge)
{
	struct aw_xs_sge *last = s->runs ? &s->run[s->runs - 1] : NULL;

	s->window += sge->len;
	if (s->anywarp && last && last->key == sge->key && last->addr + last->len == sge->addr &&
	    sge->len <= UINT32_MAX - last->len)
		last->len += sge->len;
	else
		s->run[s->runs++] = *sge;
}

/*
 * The entry that is due. An anywarp peer says that it wrote it; of others we have to look, and what says "none" is a
 * length of zero, which it had since the last time. False: the entry cannot be.
 */
static bool take_sge(struct aw_xs_stream *s, bool must)
{
	uint8_t *entry = s->mem.target + (size_t)s->sgl_next * AW_XS_SGE_LEN;
	uint8_t octets[AW_XS_SGE_LEN];
	struct aw_xs_sge sge;

	memcpy(octets, entry, sizeof(octets));
	aw_xs_sge_get(octets, aw_xs_host_is_net(), &sge);
	if (sge.len == 0)
		return !must;
	if (s->runs == AW_XS_SGL_MAX || sge.len > UINT64_MAX - sge.addr)
		return false;
	memset(entry, 0, AW_XS_SGE_LEN);
	s->sgl_next = (s->sgl_next + 1) % AW_XS_SGL_MAX;
	add_run(s, &sge);
	return true;
}

/* The grant never goes back, and never further than the peer has receives. */
static bool on_credit(struct aw_xs_stream *s, uint32_t data)
{
	uint16_t limit = (uint16_t)data;
	bool sge = data & AW_XS_CREDIT_SGE;

	if ((uint16_t)(limit - s->seq) > s->peer_credits)
		return false;
	if ((!s->anywarp || sge) && !take_sge(s, s->anywarp))
		return false;
	s->seq_limit = limit;
	return true;
}

static uint64_t readable_start(const struct aw_xs_stream *s);
static void consume(struct aw_xs_stream *s, uint64_t to);

static bool on_urgent(struct aw_xs_stream *s, uint32_t distance)
{
	if (!(s->ext & AW_XS_EXT_URGENT) || distance == 0 || s->rx_end != AW_XS_OPEN ||
	    !take_credit(s))
		return false;
	/* The one before was received aside: it must not fall back into the stream. */
	if (s->urgent_read && readable_start(s) > s->got)
		consume(s, s->got + 1);
	s->urgent_in = s->came + distance - 1;
	s->urgent_known = true;
	s->urgent_read = false;
	return true;
}

static bool on_ctrl(struct aw_xs_stream *s, uint32_t ctrl)
{
	switch (ctrl) {
	case AW_XS_CTRL_DISCONNECT:
		s->rx_end = AW_XS_GONE;
		return true;
	case AW_XS_CTRL_KEEPALIVE:
		return true;
	case AW_XS_CTRL_SHUTDOWN:
		if (s->rx_end != AW_XS_OPEN)
			return false;
		s->rx_end = AW_XS_SHUT;
		return true;
	}
	return false;
}

static bool take_message(struct aw_xs_stream *s, uint32_t op, uint32_t data)
{
	switch (op) {
	case AW_XS_OP_DATA:
		return on_data(s, data);
	case AW_XS_OP_CREDIT:
		return on_credit(s, data);
	case AW_XS_OP_URGENT:
		return on_urgent(s, data);
	case AW_XS_OP_IOMAP:
		return data < s->mem.iomaps && take_credit(s);
	case AW_XS_OP_CTRL:
		return on_ctrl(s, data);
	}
	return false;
}

int aw_xs_stream_message(struct aw_xs_stream *s, const uint8_t *octets, size_t len)
{
	uint32_t op, data;

	if (s->error || s->rx_end == AW_XS_GONE)
		return 0;
	if (s->met && len == AW_XS_MSG_LEN) {
		aw_xs_msg_get(octets, s->rx_net, &op, &data);
		if (take_message(s, op, data))
			return 0;
	}
	aw_xs_stream_fail(s, -EPROTO);
	return -EPROTO;
}

/* Where the bytes end that may be received at once, from position at on. */
static uint64_t readable_end(const struct aw_xs_stream *s, uint64_t at)
{
	return s->urgent_known && s->urgent_in >= at && s->urgent_in < s->came ? s->urgent_in
									       : s->came;
}

/* From where bytes are received: behind an urgent byte that is not of the stream. */
static uint64_t readable_start(const struct aw_xs_stream *s)
{
	bool skip = !s->urgent_inline && aw_xs_stream_at_mark(s) && s->came > s->got;

	return s->got + skip;
}

/* At the mark the bytes go on: it stopped who came there. */
static uint64_t span_end(const struct aw_xs_stream *s, uint64_t start)
{
	return readable_end(s, aw_xs_stream_at_mark(s) ? s->urgent_in + 1 : start);
}

size_t aw_xs_stream_pending(const struct aw_xs_stream *s)
{
	uint64_t start = readable_start(s);

	return (size_t)(span_end(s, start) - start);
}

/* Where in the ring a position is, of a byte that came. */
static size_t place_of(const struct aw_xs_stream *s, uint64_t position)
{
	size_t at = s->got_at + (size_t)(position - s->got);

	return at < s->recv_used ? at : at - s->recv_used;
}

static void ring_get(const struct aw_xs_stream *s, uint64_t from, uint8_t *octets, size_t n)
{
	size_t at = place_of(s, from);
	size_t first = (size_t)least(n, s->recv_used - at);

	memcpy(octets, s->mem.recv + at, first);
	memcpy(octets + first, s->mem.recv, n - first);
}

/* The ring's end is its start once a buffer was advertised there; before, the ring may yet grow. */
static void consume(struct aw_xs_stream *s, uint64_t to)
{
	s->got_at += (uint32_t)(to - s->got);
	s->got = to;
	if (s->got_at > s->recv_used || (s->got_at == s->recv_used && s->adv > to))
		s->got_at -= s->recv_used;
	if (s->urgent_known && s->urgent_in < to)
		s->urgent_known = false;
}

size_t aw_xs_stream_get(struct aw_xs_stream *s, const struct iovec *iov, int n, bool peek)
{
	uint64_t start = readable_start(s);
	uint64_t end = span_end(s, start);
	uint64_t at = start;

	for (int i = 0; i < n && at < end; i++) {
		size_t len = (size_t)least(iov[i].iov_len, end - at);

		if (len > 0)
			ring_get(s, at, iov[i].iov_base, len);
		at += len;
	}
	if (!peek && at > start)
		consume(s, at);
	return (size_t)(at - start);
}

void aw_xs_stream_discard(struct aw_xs_stream *s)
{
	consume(s, s->came);
}

int aw_xs_stream_get_urgent(struct aw_xs_stream *s, bool peek, uint8_t *octet)
{
	if (s->urgent_inline || !aw_xs_stream_is_urgent(s))
		return -EINVAL;
	if (s->came <= s->urgent_in)
		return -EAGAIN;
	*octet = s->mem.recv[place_of(s, s->urgent_in)];
	if (!peek)
		s->urgent_read = true;
	return 0;
}

bool aw_xs_stream_is_urgent(const struct aw_xs_stream *s)
{
	return s->urgent_known && !s->urgent_read;
}

bool aw_xs_stream_at_mark(const struct aw_xs_stream *s)
{
	return s->urgent_known && s->urgent_in == s->got;
}
