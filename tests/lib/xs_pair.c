// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A work is posted, later transmitted (its octets are read then), later delivered; its completion may come at
// any time behind its transmission. Messages that were delivered wait until the receiving end polls.
#include "lib/xs_pair.h"

#include <errno.h>
#include <string.h>

#define STEPS_MAX 600
#define ORDERS_MAX 512 /* on each of an end's three ways; more than an SQ has */
#define MESSAGES_MAX 512
#define MAPS 4

#define HOLDS(claim)                                              \
	do {                                                      \
		if (!(claim))                                     \
			pair->failed(#claim, __FILE__, __LINE__); \
	} while (0)

struct packet {
	struct aw_xs_work work;
	uint8_t *octets; /* once transmitted */
	uint32_t len;
};

/* First in, first out. */
struct queue {
	struct packet packet[ORDERS_MAX];
	uint32_t first, count;
};

struct end {
	struct aw_xs_stream stream;
	struct aw_xs_memory mem;
	struct queue posted, wire, sent; /* sent: transmitted, not completed */
	uint8_t message[MESSAGES_MAX][AW_XS_MSG_LEN]; /* delivered to this end, not polled */
	uint32_t messages;
	/* the model of what this end sends */
	uint64_t put, delivered, got;
	bool ended, urgent;
	uint64_t urgent_at;
	/* the peer's map, and what iowrite has put there */
	uint8_t *map;
	uint32_t map_len;
};

struct pair {
	struct end end[2];
	xs_pair_failed *failed;
	struct bytes *b;
};

static uint8_t octet_of(const struct pair *pair, const struct end *from, uint64_t at)
{
	uint64_t x = (at + 1) * 0x9e3779b97f4a7c15 + (from == &pair->end[1]);

	return (uint8_t)(x >> 56);
}

static struct end *peer_of(struct pair *pair, struct end *end)
{
	return end == &pair->end[0] ? &pair->end[1] : &pair->end[0];
}

static struct packet *queue_add(struct pair *pair, struct queue *q)
{
	HOLDS(q->count < ORDERS_MAX);
	return &q->packet[(q->first + q->count++) % ORDERS_MAX];
}

static struct packet *queue_take(struct queue *q)
{
	struct packet *packet = &q->packet[q->first];

	if (q->count == 0)
		return NULL;
	q->first = (q->first + 1) % ORDERS_MAX;
	q->count--;
	return packet;
}

static void *memory(struct pair *pair, size_t len)
{
	void *p = calloc(1, len);

	HOLDS(p);
	return p;
}

static void end_init(struct pair *pair, struct end *end)
{
	struct bytes *b = pair->b;
	struct aw_xs_memory *mem = &end->mem;
	uint16_t seq = bytes_bool(b) ? (uint16_t)-bytes_u8(b) : 0;

	mem->send_len = AW_XS_RING_MIN + (uint32_t)bytes_range(b, 0, 4096);
	mem->recv_start = AW_XS_RING_MIN + (uint32_t)bytes_range(b, 0, 512) * AW_XS_SGL_MAX;
	mem->recv_len = mem->recv_start << bytes_u8(b) % 3;
	mem->iomaps = MAPS;
	mem->send = memory(pair, mem->send_len);
	mem->recv = memory(pair, mem->recv_len);
	mem->target = memory(pair, aw_xs_target_len(mem->iomaps));
	mem->recv_key = 1;
	mem->target_key = 2;
	aw_xs_stream_init(&end->stream, mem, AW_XS_QUEUE_MIN + bytes_u8(b) % 16,
			  AW_XS_QUEUE_MIN + bytes_u8(b) % 16);
	end->stream.seq = seq;
}

/* plain: the peer is not known for anywarp. */
static void meet(struct pair *pair, struct end *end, bool plain)
{
	struct end *peer = peer_of(pair, end);
	uint8_t hello[AW_XS_HELLO_LEN];

	aw_xs_stream_hello(&peer->stream, hello);
	if (plain)
		memset(hello + 4, 0, 3);
	HOLDS(aw_xs_stream_meet(&end->stream, hello, sizeof(hello)) == 0);
	/* As if so many messages had been sent before. */
	end->stream.seq_limit = (uint16_t)(end->stream.seq_limit + end->stream.seq);
	peer->stream.rseq = peer->stream.rseq_granted = end->stream.seq;
	aw_xs_stream_open(&end->stream);
}

static void post(struct pair *pair, struct end *end, const struct aw_xs_work *work)
{
	HOLDS(work->wrs == (uint32_t)(work->spans > 0 || work->entry_len > 0) + work->has_msg);
	HOLDS(end->stream.sq_used <= end->stream.sq_size + AW_XS_SQ_SPARE);
	queue_add(pair, &end->posted)->work = *work;
}

static void pump(struct pair *pair, struct end *end, uint32_t min)
{
	struct aw_xs_work work;

	while (aw_xs_stream_next(&end->stream, min, &work))
		post(pair, end, &work);
}

static bool within(const uint8_t *octets, uint32_t len, const uint8_t *start, size_t size)
{
	return octets >= start && len <= size && (size_t)(octets - start) <= size - len;
}

static size_t octets_of(const struct aw_xs_work *work)
{
	size_t octets = work->entry_len;

	for (uint32_t i = 0; i < work->spans; i++)
		octets += work->span[i].len;
	return octets;
}

/* Read now, as a socket would: the ring must not have been used again. */
static bool transmit(struct pair *pair, struct end *end)
{
	struct packet *from = queue_take(&end->posted);
	struct packet *to;

	if (!from)
		return false;
	to = queue_add(pair, &end->wire);
	to->work = from->work;
	to->len = from->work.entry_len;
	to->octets = memory(pair, octets_of(&from->work) + 1);
	memcpy(to->octets, from->work.entry, from->work.entry_len);
	for (uint32_t i = 0; i < from->work.spans; i++) {
		const struct aw_xs_span *span = &from->work.span[i];

		HOLDS(within(span->bytes, span->len, end->mem.send, end->mem.send_len));
		memcpy(to->octets + to->len, span->bytes, span->len);
		to->len += span->len;
	}
	queue_add(pair, &end->sent)->work = from->work;
	return true;
}

static bool complete(struct end *end)
{
	struct packet *packet = queue_take(&end->sent);

	if (!packet)
		return false;
	aw_xs_stream_done(&end->stream, packet->work.wrs, packet->work.bytes);
	return true;
}

/* Stream octets continue where the last ones ended, and are those that were put. */
static void check_data(struct pair *pair, struct end *from, const struct packet *packet)
{
	struct end *to = peer_of(pair, from);
	const uint8_t *at = (const uint8_t *)(uintptr_t)packet->work.addr;

	HOLDS(packet->work.key == 1 && within(at, packet->len, to->mem.recv, to->mem.recv_len));
	HOLDS(from->delivered + packet->len <= to->stream.adv);
	HOLDS(packet->len > 0 && packet->len == packet->work.bytes);
	for (uint32_t i = 0; i < packet->len; i++)
		HOLDS(packet->octets[i] == octet_of(pair, from, from->delivered + i));
	from->delivered += packet->len;
}

static void place(struct pair *pair, struct end *from, const struct packet *packet)
{
	struct end *to = peer_of(pair, from);
	uint8_t *dst = (uint8_t *)(uintptr_t)packet->work.addr;

	if (packet->work.entry_len > 0)
		HOLDS(packet->work.key == 2 && packet->len == packet->work.entry_len &&
		      within(dst, packet->len, to->mem.target, aw_xs_target_len(MAPS)));
	else if (packet->work.has_msg)
		check_data(pair, from, packet);
	else
		HOLDS(packet->work.key == 3 && within(dst, packet->len, to->map, to->map_len));
	memcpy(dst, packet->octets, packet->len);
}

static bool deliver(struct pair *pair, struct end *from)
{
	struct packet *packet = queue_take(&from->wire);
	struct end *to = peer_of(pair, from);

	if (!packet)
		return false;
	if (packet->len > 0)
		place(pair, from, packet);
	free(packet->octets);
	if (packet->work.has_msg) {
		/* A receive is there for each. */
		HOLDS(to->messages < to->stream.rq_size + AW_XS_RQ_SPARE);
		memcpy(to->message[to->messages++], packet->work.msg, AW_XS_MSG_LEN);
	}
	return true;
}

/* A second mark leaves behind the first one's octet, if that was received aside. */
static void take_message(struct pair *pair, struct end *end, const uint8_t *octets)
{
	struct aw_xs_stream *s = &end->stream;
	bool aside = aw_xs_stream_at_mark(s) && s->urgent_read && !s->urgent_inline;
	uint64_t got = s->got;

	HOLDS(aw_xs_stream_message(s, octets, AW_XS_MSG_LEN) == 0);
	if (s->got == got)
		return;
	HOLDS(aside && s->got == got + 1);
	peer_of(pair, end)->got++;
}

static void take_messages(struct pair *pair, struct end *end, uint32_t n)
{
	n = n < end->messages ? n : end->messages;
	for (uint32_t i = 0; i < n; i++)
		take_message(pair, end, end->message[i]);
	end->messages -= n;
	memmove(end->message, end->message[n], (size_t)end->messages * AW_XS_MSG_LEN);
}

static void put(struct pair *pair, struct end *end, size_t len, bool urgent)
{
	uint8_t octets[9000];
	struct iovec iov[2];
	size_t room = aw_xs_stream_room(&end->stream), taken;

	if (end->ended || len > sizeof(octets))
		return;
	for (size_t i = 0; i < len; i++)
		octets[i] = octet_of(pair, end, end->put + i);
	iov[0] = (struct iovec){ octets, len / 3 };
	iov[1] = (struct iovec){ octets + len / 3, len - len / 3 };
	taken = aw_xs_stream_put(&end->stream, iov, 2);
	HOLDS(taken == (len < room ? len : room));
	end->put += taken;
	if (!urgent || taken == 0 || !(end->stream.ext & AW_XS_EXT_URGENT))
		return;
	aw_xs_stream_put_urgent(&end->stream);
	end->urgent = true;
	end->urgent_at = end->put - 1;
}

/* The urgent octet, where it is out of line, is not among them. */
static void get(struct pair *pair, struct end *end, size_t len, bool peek)
{
	struct end *from = peer_of(pair, end);
	struct aw_xs_stream *s = &end->stream;
	uint8_t octets[9000];
	struct iovec iov[2] = { { octets, len / 2 }, { octets + len / 2, len - len / 2 } };
	bool skips = aw_xs_stream_at_mark(s) && !s->urgent_inline && s->came > s->got;
	size_t pending = aw_xs_stream_pending(s), taken;

	if (len > sizeof(octets))
		return;
	taken = aw_xs_stream_get(s, iov, 2, peek);
	HOLDS(taken == (len < pending ? len : pending));
	for (size_t i = 0; i < taken; i++)
		HOLDS(octets[i] == octet_of(pair, from, from->got + skips + i));
	if (!peek && taken > 0)
		from->got += skips + taken;
	HOLDS(from->got == s->got && from->got <= from->delivered);
}

static void get_urgent(struct pair *pair, struct end *end)
{
	struct end *from = peer_of(pair, end);
	struct aw_xs_stream *s = &end->stream;
	uint8_t octet;
	int err = aw_xs_stream_get_urgent(s, bytes_bool(pair->b), &octet);

	if (err == 0)
		HOLDS(octet == octet_of(pair, from, s->urgent_in));
	else
		HOLDS(err == -EINVAL || err == -EAGAIN);
	if (s->urgent_known && from->urgent)
		HOLDS(s->urgent_in <= from->urgent_at);
}

static void open_map(struct pair *pair, struct end *end)
{
	struct aw_xs_work work;
	uint32_t index = bytes_u8(pair->b) % MAPS;
	struct aw_xs_iomap map = { .offset = bytes_u16(pair->b) };

	if (end->ended)
		return;
	map.sge = (struct aw_xs_sge){ (uintptr_t)end->map, 3, end->map_len };
	if (aw_xs_stream_iomap(&end->stream, index, &map, &work))
		post(pair, end, &work);
}

static void iowrite(struct pair *pair, struct end *end, size_t len)
{
	uint8_t octets[9000] = { 0 };
	struct aw_xs_work work;
	int64_t n;

	if (end->ended || len > sizeof(octets))
		return;
	n = aw_xs_stream_iowrite(&end->stream, octets, len, bytes_u16(pair->b), &work);
	HOLDS(n <= (int64_t)len && n >= -EAGAIN);
	if (n > 0)
		post(pair, end, &work);
}

static void check_bounds(struct pair *pair, const struct end *end)
{
	const struct aw_xs_stream *s = &end->stream;

	HOLDS(s->error == 0);
	HOLDS(s->freed <= s->posted && s->posted <= s->put && s->put - s->freed <= s->mem.send_len);
	HOLDS(s->got <= s->came && s->came <= s->adv && s->adv - s->got <= s->mem.recv_len);
	HOLDS(s->runs <= AW_XS_SGL_MAX && s->adv_open <= AW_XS_SGL_MAX);
}

/* Octets that arrive at once. */
static void flow(struct pair *pair, struct end *end, size_t len)
{
	put(pair, end, len, false);
	pump(pair, end, 0);
	while (transmit(pair, end) || deliver(pair, end) || complete(end))
		;
	take_messages(pair, peer_of(pair, end), MESSAGES_MAX);
	pump(pair, peer_of(pair, end), 0);
	while (transmit(pair, peer_of(pair, end)) || deliver(pair, peer_of(pair, end)))
		;
	take_messages(pair, end, MESSAGES_MAX);
}

/* Few octets, any number, or such as end where buffers do. */
static size_t draw_len(struct bytes *b, const struct end *to, uint8_t what)
{
	if (what & 64)
		return to->mem.recv_start / AW_XS_SGL_MAX * (bytes_u8(b) % 9);
	return what & 32 ? bytes_u8(b) : bytes_u16(b) % 9001;
}

static void step(struct pair *pair)
{
	struct bytes *b = pair->b;
	uint8_t what = bytes_u8(b);
	struct end *end = &pair->end[what >> 7];
	bool gets = what % 15 == 8 || what % 15 == 9;
	size_t len = draw_len(b, gets ? end : peer_of(pair, end), what);

	switch (what % 15) {
	case 0:
	case 1:
		put(pair, end, len, false);
		break;
	case 2:
		put(pair, end, len, true);
		break;
	case 3:
		pump(pair, end, bytes_bool(b) ? (uint32_t)len : 0);
		break;
	case 4:
		transmit(pair, end);
		break;
	case 5:
		complete(end);
		break;
	case 6:
		deliver(pair, end);
		break;
	case 7:
		take_messages(pair, end, bytes_u8(b) % 4);
		break;
	case 8:
	case 9:
		get(pair, end, len, what % 15 == 9);
		break;
	case 10:
		get_urgent(pair, end);
		break;
	case 11:
		open_map(pair, end);
		break;
	case 12:
		iowrite(pair, end, len);
		break;
	case 13:
		if (bytes_u8(b) > 230) {
			aw_xs_stream_end(&end->stream, AW_XS_SHUT);
			end->ended = true;
		}
		end->stream.urgent_inline = len & 1;
		break;
	case 14:
		flow(pair, end, len);
		break;
	}
	check_bounds(pair, end);
}

/* True when something happened. */
static bool run_round(struct pair *pair, struct end *end)
{
	struct end *peer = peer_of(pair, end);
	uint64_t got = end->got;
	bool moved = false;

	pump(pair, end, 0);
	while (transmit(pair, end) || deliver(pair, end) || complete(end))
		moved = true;
	take_messages(pair, peer, MESSAGES_MAX);
	get(pair, peer, 9000, false);
	check_bounds(pair, end);
	return moved || end->got != got;
}

/* Everything goes on until nothing is left: what was put arrives, without any further octet put. */
static void run_dry(struct pair *pair)
{
	bool moved = true;

	while (moved) {
		moved = run_round(pair, &pair->end[0]);
		moved = run_round(pair, &pair->end[1]) || moved;
	}
}

static void check_arrival(struct pair *pair, struct end *from)
{
	struct end *to = peer_of(pair, from);

	HOLDS(from->delivered == from->put);
	/* An urgent octet may be the last, and then is read out of line alone. */
	HOLDS(from->got == from->put || from->got + 1 == from->put);
	HOLDS(aw_xs_stream_pending(&to->stream) == 0);
	HOLDS(from->ended == (to->stream.rx_end != AW_XS_OPEN));
	HOLDS(from->stream.sq_used == 0 && from->stream.put == from->stream.freed);
	HOLDS(!from->ended || aw_xs_stream_has_ended(&from->stream));
}

static void end_fini(struct end *end)
{
	struct packet *packet;

	while ((packet = queue_take(&end->wire)))
		free(packet->octets);
	free(end->mem.send);
	free(end->mem.recv);
	free(end->mem.target);
	free(end->map);
}

void xs_pair_run(struct bytes *b, xs_pair_failed *failed)
{
	static struct pair pairs;
	struct pair *pair = &pairs;
	bool plain = bytes_bool(b);

	memset(pair, 0, sizeof(*pair));
	pair->b = b;
	pair->failed = failed;
	for (int i = 0; i < 2; i++) {
		end_init(pair, &pair->end[i]);
		pair->end[i].map_len = 1 + bytes_u16(b);
		pair->end[i].map = memory(pair, pair->end[i].map_len);
	}
	for (int i = 0; i < 2; i++)
		meet(pair, &pair->end[i], plain);
	for (int i = 0; i < STEPS_MAX && b->left > 0; i++)
		step(pair);
	run_dry(pair);
	for (int i = 0; i < 2; i++)
		check_arrival(pair, &pair->end[i]);
	for (int i = 0; i < 2; i++)
		end_fini(&pair->end[i]);
}
