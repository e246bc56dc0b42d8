// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream of extended sockets whose peer says and writes what it likes: whatever it is, no octet beyond the
// stream's own memory is read or written, no bound is passed, and a stream that failed does nothing more.
#include "fuzz.h"

#include "xsock/stream/stream.h"

#include <string.h>

#define STEPS_MAX 400
#define MAPS 3

static struct aw_xs_stream stream;

static void *memory(size_t len)
{
	void *p = calloc(1, len);

	FUZZ_CHECK(p);
	return p;
}

static struct aw_xs_memory make_memory(struct bytes *b)
{
	struct aw_xs_memory mem = {
		.send_len = AW_XS_RING_MIN + bytes_u8(b),
		.recv_start = AW_XS_RING_MIN + bytes_u8(b) * AW_XS_SGL_MAX,
		.iomaps = MAPS,
	};

	mem.recv_len = mem.recv_start << bytes_u8(b) % 3;
	mem.send = memory(mem.send_len);
	mem.recv = memory(mem.recv_len);
	mem.target = memory(aw_xs_target_len(MAPS));
	return mem;
}

static void free_memory(const struct aw_xs_memory *mem)
{
	free(mem->send);
	free(mem->recv);
	free(mem->target);
}

/* Mostly one that may be, so that there is something to go on with. */
static bool hear_hello(struct bytes *b)
{
	uint8_t octets[AW_XS_HELLO_LEN + 8];
	uint8_t how = bytes_u8(b);
	size_t len = AW_XS_HELLO_LEN;

	bytes_take(b, octets, sizeof(octets));
	if (how & 1) {
		struct aw_xs_hello hello = {
			.credits = bytes_u8(b),
			.iomaps = MAPS,
			.anywarp = how & 2,
			.ext = how >> 2 & 1,
			.sgl = { 0x1000, 7, how & 8 ? AW_XS_SGL_MAX : 2 },
			.data = { 0x100000, 8, bytes_u16(b) },
		};

		aw_xs_hello_put(octets, &hello);
	} else {
		len = bytes_u8(b) % sizeof(octets);
	}
	return aw_xs_stream_meet(&stream, octets, len) == 0;
}

static void check_work(const struct aw_xs_work *work)
{
	const struct aw_xs_memory *mem = &stream.mem;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < work->spans; i++) {
		const struct aw_xs_span *span = &work->span[i];

		FUZZ_CHECK(span->bytes >= mem->send && span->bytes < mem->send + mem->send_len);
		FUZZ_CHECK(span->len > 0 &&
			   span->len <= (size_t)(mem->send + mem->send_len - span->bytes));
		sum += span->len;
	}
	FUZZ_CHECK(work->bytes == 0 || work->bytes == sum);
	FUZZ_CHECK(work->entry_len <= AW_XS_IOMAP_LEN && (!work->entry_len || !work->spans));
	FUZZ_CHECK(!stream.error);
	FUZZ_CHECK(stream.sq_used <= stream.sq_size + AW_XS_SQ_SPARE);
}

/* Completes at once or later: the oldest first. */
static struct {
	struct aw_xs_work work[64];
	uint32_t count;
} under_way;

static void complete(void)
{
	const struct aw_xs_work *work = &under_way.work[0];

	if (under_way.count == 0)
		return;
	aw_xs_stream_done(&stream, work->wrs, work->bytes);
	under_way.count--;
	memmove(under_way.work, under_way.work + 1, under_way.count * sizeof(*work));
}

static void track(const struct aw_xs_work *work)
{
	check_work(work);
	FUZZ_CHECK(under_way.count < 64);
	under_way.work[under_way.count++] = *work;
}

static void pump(void)
{
	struct aw_xs_work work;

	while (aw_xs_stream_next(&stream, 0, &work))
		track(&work);
}

static void hear_message(struct bytes *b)
{
	static const uint8_t ops[] = { 0, 0, 4, 4, 5, 6, 7, 7 };
	uint8_t octets[8];
	uint8_t how = bytes_u8(b);
	uint32_t data = how & 0x80 ? bytes_u32(b) : how & 0x40 ? bytes_u16(b) : bytes_u8(b);
	int before = stream.error;
	uint64_t came = stream.came;
	int err;

	aw_xs_msg_put(octets, stream.rx_net, how & 8 ? (how & 7) : ops[how & 7],
		      data & AW_XS_MSG_DATA_MAX);
	err = aw_xs_stream_message(&stream, octets, how & 0x10 && data == 77 ? 3 : AW_XS_MSG_LEN);
	FUZZ_CHECK(err == 0 || stream.error == err);
	FUZZ_CHECK(!before || stream.error == before);
	FUZZ_CHECK((!before && err == 0) || stream.came == came);
}

/* What the peer may do to our tables at any time. */
static void write_target(struct bytes *b)
{
	size_t len = aw_xs_target_len(MAPS);
	size_t at = bytes_u8(b) % len;
	size_t n = bytes_u8(b) % 32;

	bytes_take(b, stream.mem.target + at, n < len - at ? n : len - at);
}

static void check_bounds(void)
{
	const struct aw_xs_stream *s = &stream;

	FUZZ_CHECK(s->freed <= s->posted && s->posted <= s->put);
	FUZZ_CHECK(s->put - s->freed <= s->mem.send_len);
	FUZZ_CHECK(s->got <= s->came && s->came <= s->adv);
	FUZZ_CHECK(s->adv - s->got <= s->recv_used && s->recv_used <= s->mem.recv_len);
	FUZZ_CHECK(s->got_at <= s->recv_used && s->adv_at <= s->recv_used);
	FUZZ_CHECK(s->runs <= AW_XS_SGL_MAX && s->adv_open <= AW_XS_SGL_MAX);
	FUZZ_CHECK(aw_xs_stream_pending(s) <= s->mem.recv_len);
}

static void move_octets(struct bytes *b, uint8_t what)
{
	uint8_t octets[5000] = { 0 };
	struct iovec iov = { octets, bytes_u16(b) % sizeof(octets) };
	struct aw_xs_work work;
	int64_t n;

	switch (what) {
	case 0:
		aw_xs_stream_put(&stream, &iov, 1);
		break;
	case 1:
		if (aw_xs_stream_put(&stream, &iov, 1) > 0 && stream.ext)
			aw_xs_stream_put_urgent(&stream);
		break;
	case 2:
		FUZZ_CHECK(aw_xs_stream_get(&stream, &iov, 1, octets[0]) <= iov.iov_len);
		break;
	case 3:
		n = aw_xs_stream_iowrite(&stream, octets, iov.iov_len, bytes_u64(b), &work);
		if (n > 0)
			track(&work);
		break;
	}
}

static void step(struct bytes *b)
{
	uint8_t what = bytes_u8(b), octet;

	switch (what % 10) {
	case 0:
	case 1:
	case 2:
		hear_message(b);
		break;
	case 3:
		write_target(b);
		break;
	case 4:
		complete();
		break;
	case 5:
		pump();
		break;
	case 6:
		move_octets(b, what / 10 % 4);
		break;
	case 7:
		stream.urgent_inline = what & 16;
		(void)aw_xs_stream_get_urgent(&stream, what & 32, &octet);
		break;
	case 8:
		if (bytes_u8(b) > 200)
			aw_xs_stream_end(&stream, what & 16 ? AW_XS_GONE : AW_XS_SHUT);
		break;
	case 9:
		if (bytes_u8(b) > 250)
			aw_xs_stream_disconnected(&stream);
		break;
	}
	check_bounds();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len };
	struct aw_xs_memory mem = make_memory(&b);

	under_way.count = 0;
	aw_xs_stream_init(&stream, &mem, AW_XS_QUEUE_MIN, AW_XS_QUEUE_MIN + bytes_u8(&b) % 4);
	if (hear_hello(&b)) {
		aw_xs_stream_open(&stream);
		for (int i = 0; i < STEPS_MAX && b.left > 0; i++)
			step(&b);
	}
	free_memory(&mem);
	return 0;
}
