// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending: chooses the next work. Credits go first, since the peer may be waiting for them; then
// the urgent mark, bytes, and the stream's end.
#include "xsock/stream/stream.h"

#include <errno.h>
#include <string.h>

#define DATA_MAX (1u << 16) /* bytes of a message: the peer can begin before all have come */

static uint32_t min_u32(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

size_t aw_xs_stream_room(const struct aw_xs_stream *s)
{
	return s->mem.send_len - (size_t)(s->put - s->freed);
}

/*
 * Copies n bytes, for which there is room. An empty ring restarts at its beginning, so that few of
 * its pages are used.
 */
static void ring_put(struct aw_xs_stream *s, const uint8_t *bytes, size_t n)
{
	size_t first, at;

	if (s->put == s->freed)
		s->put_base = s->put;
	at = (s->put - s->put_base) % s->mem.send_len;
	first = min_u32(n, s->mem.send_len - at);
	memcpy(s->mem.send + at, bytes, first);
	memcpy(s->mem.send, bytes + first, n - first);
	s->put += n;
}

size_t aw_xs_stream_put(struct aw_xs_stream *s, const struct iovec *iov, int n)
{
	size_t room = aw_xs_stream_room(s), taken = 0;

	for (int i = 0; i < n && room > 0; i++) {
		size_t len = iov[i].iov_len < room ? iov[i].iov_len : room;

		if (len > 0)
			ring_put(s, iov[i].iov_base, len);
		room -= len;
		taken += len;
	}
	return taken;
}

/*
 * All bytes that are put and not posted belong to the stream: aw_xs_stream_iowrite waits for that.
 */
void aw_xs_stream_put_urgent(struct aw_xs_stream *s)
{
	s->urgent_out = s->bytes_out + (s->put - s->posted) - 1;
	s->urgent_due = true;
}

/* Adds n bytes of the send ring, from posted on. */
static void add_spans(const struct aw_xs_stream *s, struct aw_xs_work *work, uint32_t n)
{
	uint32_t at = (uint32_t)((s->posted - s->put_base) % s->mem.send_len);
	uint32_t first = min_u32(n, s->mem.send_len - at);

	work->span[work->spans++] = (struct aw_xs_span){ s->mem.send + at, first };
	if (n > first)
		work->span[work->spans++] = (struct aw_xs_span){ s->mem.send, n - first };
	work->bytes = n;
	work->wrs++;
}

static void add_msg(struct aw_xs_stream *s, struct aw_xs_work *work, enum aw_xs_op op,
		    uint32_t data)
{
	aw_xs_msg_put(work->msg, s->tx_net, op, data);
	work->has_msg = true;
	work->wrs++;
}

/* Returns whether the SQ has room. Bytes leave the spare room to credits and the end. */
static bool sq_has(const struct aw_xs_stream *s, uint32_t wrs, bool spare)
{
	return s->sq_used + wrs <= s->sq_size + (spare ? AW_XS_SQ_SPARE : 0);
}

static bool has_credit(const struct aw_xs_stream *s)
{
	return s->seq != s->seq_limit;
}

/* Makes the work's Write one of entry `index`, of len bytes, of a table of the peer's. The caller fills in the entry. */
static void add_entry(struct aw_xs_work *work, const struct aw_xs_sge *table, uint32_t index,
		      uint32_t len)
{
	work->entry_len = len;
	work->addr = table->addr + (uint64_t)index * len;
	work->key = table->key;
	work->wrs++;
}

static void advertise_buffer(struct aw_xs_stream *s, struct aw_xs_work *work)
{
	struct aw_xs_sge sge = { .key = s->mem.recv_key };

	/* At its end the ring doubles if bytes have filled it, else it wraps. The bytes in the ring stay where they are. */
	if (s->adv_at == s->recv_used) {
		if (s->bulk && s->recv_used < s->mem.recv_len) {
			s->recv_used *= 2;
		} else {
			s->adv_at = 0;
			if (s->got_at == s->recv_used)
				s->got_at = 0;
		}
		s->bulk = false;
	}
	sge.addr = (uintptr_t)s->mem.recv + s->adv_at;
	sge.len = s->recv_used / s->chunks;
	add_entry(work, &s->peer_sgl, s->peer_sgl_next, AW_XS_SGE_LEN);
	aw_xs_sge_put(work->entry, s->peer_net, &sge);
	s->peer_sgl_next = (s->peer_sgl_next + 1) % s->peer_sgl.len;
	s->adv += sge.len;
	s->adv_at += sge.len;
	s->adv_end[s->adv_open++] = s->adv;
}

static bool next_credit(struct aw_xs_stream *s, struct aw_xs_work *work)
{
	uint32_t unsaid = (uint16_t)(s->rseq - s->rseq_granted);
	uint32_t entries = min_u32(s->peer_sgl.len, AW_XS_SGL_MAX), used = s->recv_used, mark;
	bool grows = s->adv_at == used && s->bulk && used < s->mem.recv_len;
	/* A buffer of the receive ring is empty, and the peer has an entry for it. */
	bool buffer = s->adv_open != entries && s->rx_end == AW_XS_OPEN &&
		      (grows || used - (s->adv - s->got) >= used / s->chunks);

	if (!buffer && unsaid < s->rq_size / 2)
		return false;
	if (!sq_has(s, 2, true))
		return false;
	if (buffer)
		advertise_buffer(s, work);
	s->rseq_granted = s->rseq;
	mark = buffer && s->anywarp ? AW_XS_CREDIT_SGE : 0;
	add_msg(s, work, AW_XS_OP_CREDIT, (uint16_t)(s->rseq + s->rq_size) | mark);
	return true;
}

static bool next_urgent(struct aw_xs_stream *s, struct aw_xs_work *work)
{
	if (!s->urgent_due || !has_credit(s) || !sq_has(s, 1, false))
		return false;
	s->urgent_due = false;
	s->seq++;
	add_msg(s, work, AW_XS_OP_URGENT, (uint32_t)(s->urgent_out - s->bytes_out) + 1);
	return true;
}

/* Takes n bytes of the peer's oldest buffer. */
static void use_run(struct aw_xs_stream *s, struct aw_xs_work *work, uint32_t n)
{
	struct aw_xs_sge *run = &s->run[0];

	work->addr = run->addr;
	work->key = run->key;
	run->addr += n;
	run->len -= n;
	if (run->len > 0)
		return;
	s->runs--;
	memmove(run, run + 1, s->runs * sizeof(*run));
}

static bool next_data(struct aw_xs_stream *s, uint32_t min, struct aw_xs_work *work)
{
	uint64_t waiting = s->put - s->posted;
	uint32_t n;

	if (waiting == 0 || s->runs == 0 || !has_credit(s) || !sq_has(s, 2, false))
		return false;
	if (waiting < min && s->tx_wanted == AW_XS_OPEN)
		return false;
	n = min_u32(min_u32(waiting, s->run[0].len), DATA_MAX);
	add_spans(s, work, n);
	use_run(s, work, n);
	s->posted += n;
	s->bytes_out += n;
	s->seq++;
	add_msg(s, work, AW_XS_OP_DATA, n);
	return true;
}

/* The second of the two ends that shuts down ends the connection. */
static bool next_end(struct aw_xs_stream *s, struct aw_xs_work *work)
{
	bool gone = s->tx_wanted == AW_XS_GONE || s->rx_end != AW_XS_OPEN;

	if (s->tx_wanted <= s->tx_end || s->put != s->posted || !sq_has(s, 1, true))
		return false;
	if (aw_xs_stream_is_done(s))
		return false;
	s->tx_end = gone ? AW_XS_GONE : AW_XS_SHUT;
	add_msg(s, work, AW_XS_OP_CTRL, gone ? AW_XS_CTRL_DISCONNECT : AW_XS_CTRL_SHUTDOWN);
	return true;
}

bool aw_xs_stream_next(struct aw_xs_stream *s, uint32_t min, struct aw_xs_work *work)
{
	*work = (struct aw_xs_work){ 0 };
	if (!s->open || s->rx_end == AW_XS_GONE || s->tx_end == AW_XS_GONE)
		return false;
	if (!next_credit(s, work) && !next_urgent(s, work) && !next_data(s, min, work) &&
	    !next_end(s, work))
		return false;
	s->sq_used += work->wrs;
	return true;
}

void aw_xs_stream_done(struct aw_xs_stream *s, uint32_t wrs, uint32_t bytes)
{
	s->sq_used -= wrs;
	s->freed += bytes;
}

void aw_xs_stream_end(struct aw_xs_stream *s, enum aw_xs_end end)
{
	if (end > s->tx_wanted)
		s->tx_wanted = end;
}

bool aw_xs_stream_has_ended(const struct aw_xs_stream *s)
{
	return s->error || s->rx_end == AW_XS_GONE || s->tx_end == AW_XS_GONE ||
	       (s->tx_end == AW_XS_SHUT && (s->tx_wanted == AW_XS_SHUT || s->rx_end == AW_XS_SHUT));
}

uint32_t aw_xs_stream_direct(struct aw_xs_stream *s, size_t len, struct aw_xs_work *work)
{
	uint32_t n;

	*work = (struct aw_xs_work){ 0 };
	if (!s->open || s->rx_end == AW_XS_GONE || s->tx_wanted != AW_XS_OPEN ||
	    s->put != s->posted || s->runs == 0 || !has_credit(s) || !sq_has(s, 2, false))
		return 0;
	n = min_u32(min_u32(len, s->run[0].len), DATA_MAX);
	if (n == 0)
		return 0;
	work->wrs++;
	use_run(s, work, n);
	s->bytes_out += n;
	s->seq++;
	add_msg(s, work, AW_XS_OP_DATA, n);
	s->sq_used += work->wrs;
	return n;
}

bool aw_xs_stream_iomap(struct aw_xs_stream *s, uint32_t index, const struct aw_xs_iomap *map,
			struct aw_xs_work *work)
{
	*work = (struct aw_xs_work){ 0 };
	if (!s->open || index >= s->peer_iomap.len || !has_credit(s) || !sq_has(s, 2, false))
		return false;
	add_entry(work, &s->peer_iomap, index, AW_XS_IOMAP_LEN);
	aw_xs_iomap_put(work->entry, s->peer_net, map);
	s->seq++;
	add_msg(s, work, AW_XS_OP_IOMAP, index);
	s->sq_used += work->wrs;
	return true;
}

/*
 * The peer may be writing the entry at this moment: whatever is read names memory of its own. ThreadSanitizer, which sees the progress
 * thread place the peer's Write, does not look here.
 */
static __attribute__((no_sanitize("thread"))) void read_entry(const uint8_t *entry,
							      uint8_t bytes[AW_XS_IOMAP_LEN])
{
	for (int i = 0; i < AW_XS_IOMAP_LEN; i++)
		bytes[i] = entry[i];
}

/* Finds the peer's map of offset. */
static bool find_map(const struct aw_xs_stream *s, uint64_t offset, struct aw_xs_iomap *map)
{
	const uint8_t *entry = s->mem.target + AW_XS_SGL_MAX * AW_XS_SGE_LEN;

	for (uint16_t i = 0; i < s->mem.iomaps; i++, entry += AW_XS_IOMAP_LEN) {
		uint8_t bytes[AW_XS_IOMAP_LEN];

		read_entry(entry, bytes);
		aw_xs_iomap_get(bytes, aw_xs_host_is_net(), map);
		if (offset >= map->offset && offset - map->offset < map->sge.len)
			return true;
	}
	return false;
}

bool aw_xs_stream_may_iowrite(const struct aw_xs_stream *s)
{
	return s->open && s->put == s->posted && aw_xs_stream_room(s) > 0 && sq_has(s, 1, false);
}

int64_t aw_xs_stream_iowrite(struct aw_xs_stream *s, const void *bytes, size_t len, uint64_t offset,
			     struct aw_xs_work *work)
{
	struct aw_xs_iomap map;
	uint32_t n;

	*work = (struct aw_xs_work){ 0 };
	if (!find_map(s, offset, &map))
		return 0;
	n = min_u32(min_u32(len, aw_xs_stream_room(s)), map.sge.len - (offset - map.offset));
	n = min_u32(n, DATA_MAX);
	if (n == 0 || !aw_xs_stream_may_iowrite(s))
		return len ? -EAGAIN : 0;
	ring_put(s, bytes, n);
	add_spans(s, work, n);
	s->posted += n;
	work->addr = map.sge.addr + (offset - map.offset);
	work->key = map.sge.key;
	s->sq_used += work->wrs;
	return n;
}
