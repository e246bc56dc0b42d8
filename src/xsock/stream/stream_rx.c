// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving: the peer's messages, checked before they have an effect, and the bytes that it has
// written.
#include "xsock/stream/stream.h"

#include <errno.h>
#include <string.h>

#define BULK_PART 4u /* a ring that was filled to this part doubles */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Counts a message with credit. False: the peer had none. */
static bool take_credit(struct aw_xs_stream *s)
{
	if ((uint16_t)(s->rseq - s->rseq_granted) >= s->rq_size)
		return false;
	s->rseq++;
	return true;
}

static bool on_data(struct aw_xs_stream *s, uint32_t n)
{
	if (s->rx_end != AW_XS_OPEN || n > s->adv - s->came || !take_credit(s))
		return false;
	s->came += n;
	s->bulk |= s->came - s->got >= s->recv_used / BULK_PART;
	/* The buffers that the peer has filled go; it fills them in order. */
	while (s->adv_open > 0 && s->adv_end[0] <= s->came) {
		s->adv_open--;
		memmove(s->adv_end, s->adv_end + 1, s->adv_open * sizeof(s->adv_end[0]));
	}
	return true;
}

/*
 * Takes the next entry of the SGL. An anywarp peer announces it (must); otherwise a length of zero
 * means that there is none, as the entry was zeroed when it was last taken. False: the entry is
 * invalid.
 */
static bool take_sge(struct aw_xs_stream *s, bool must)
{
	uint8_t *entry = s->mem.target + (size_t)s->sgl_next * AW_XS_SGE_LEN;
	struct aw_xs_sge *last = s->runs ? &s->run[s->runs - 1] : NULL;
	uint8_t bytes[AW_XS_SGE_LEN];
	struct aw_xs_sge sge;

	memcpy(bytes, entry, sizeof(bytes));
	aw_xs_sge_get(bytes, aw_xs_host_is_net(), &sge);
	if (sge.len == 0)
		return !must;
	if (s->runs == AW_XS_SGL_MAX || sge.len > UINT64_MAX - sge.addr)
		return false;
	memset(entry, 0, AW_XS_SGE_LEN);
	s->sgl_next = (s->sgl_next + 1) % AW_XS_SGL_MAX;
	/* Between anywarp's ends adjacent buffers become one, and a message may go across. */
	if (s->anywarp && last && last->key == sge.key && last->addr + last->len == sge.addr &&
	    sge.len <= UINT32_MAX - last->len)
		last->len += sge.len;
	else
		s->run[s->runs++] = sge;
	return true;
}

/* Takes a grant. It must not go back, nor beyond the peer's number of receives. */
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
static void consume_until(struct aw_xs_stream *s, uint64_t to);

static bool on_urgent(struct aw_xs_stream *s, uint32_t distance)
{
	if (!(s->ext & AW_XS_EXT_URGENT) || distance == 0 || s->rx_end != AW_XS_OPEN ||
	    !take_credit(s))
		return false;
	/* The previous urgent byte was received out of line: it must not appear in the stream. */
	if (s->urgent_read && readable_start(s) > s->got)
		consume_until(s, s->got + 1);
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

static bool on_message(struct aw_xs_stream *s, uint32_t op, uint32_t data)
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

int aw_xs_stream_message(struct aw_xs_stream *s, const uint8_t *bytes, size_t len)
{
	uint32_t op, data;

	if (s->error || s->rx_end == AW_XS_GONE)
		return 0;
	if (s->met && len == AW_XS_MSG_LEN) {
		aw_xs_msg_get(bytes, s->rx_net, &op, &data);
		if (on_message(s, op, data))
			return 0;
	}
	aw_xs_stream_fail(s, -EPROTO);
	return -EPROTO;
}

/* Returns the position at which a receive begins: behind an urgent byte that is not in line. */
static uint64_t readable_start(const struct aw_xs_stream *s)
{
	bool skip = !s->urgent_inline && aw_xs_stream_at_mark(s) && s->came > s->got;

	return s->got + skip;
}

/*
 * Returns the end of a receive that begins at start. The mark stops only receives that begin before
 * it.
 */
static uint64_t span_end(const struct aw_xs_stream *s, uint64_t start)
{
	uint64_t at = aw_xs_stream_at_mark(s) ? s->urgent_in + 1 : start;

	return s->urgent_known && s->urgent_in >= at && s->urgent_in < s->came ? s->urgent_in
									       : s->came;
}

size_t aw_xs_stream_pending(const struct aw_xs_stream *s)
{
	uint64_t start = readable_start(s);

	return (size_t)(span_end(s, start) - start);
}

/* Returns the offset in the ring of a received byte. */
static size_t ring_offset(const struct aw_xs_stream *s, uint64_t position)
{
	size_t at = s->got_at + (size_t)(position - s->got);

	return at < s->recv_used ? at : at - s->recv_used;
}

/*
 * Consumes the bytes before position to. The ring's end becomes its start only once a buffer was
 * advertised there: until then the ring may still grow.
 */
static void consume_until(struct aw_xs_stream *s, uint64_t to)
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
		size_t len = (size_t)min_u64(iov[i].iov_len, end - at);
		size_t from = ring_offset(s, at), first = (size_t)min_u64(len, s->recv_used - from);

		if (len == 0)
			continue;
		memcpy(iov[i].iov_base, s->mem.recv + from, first);
		memcpy((uint8_t *)iov[i].iov_base + first, s->mem.recv, len - first);
		at += len;
	}
	if (!peek && at > start)
		consume_until(s, at);
	return (size_t)(at - start);
}

void aw_xs_stream_discard(struct aw_xs_stream *s)
{
	consume_until(s, s->came);
}

int aw_xs_stream_get_urgent(struct aw_xs_stream *s, bool peek, uint8_t *byte)
{
	if (s->urgent_inline || !aw_xs_stream_is_urgent(s))
		return -EINVAL;
	if (s->came <= s->urgent_in)
		return -EAGAIN;
	*byte = s->mem.recv[ring_offset(s, s->urgent_in)];
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
