// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The octet pipe.
#include "pipe.h"

#include <stdlib.h>
#include <string.h>

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

void pipe_init(struct pipe *pipe, size_t cap)
{
	*pipe = (struct pipe){
		.buf = malloc(cap),
		.cap = cap,
		.flip_at = UINT64_MAX,
		.cut_at = UINT64_MAX,
	};
}

void pipe_widen(struct pipe *pipe, size_t cap)
{
	uint8_t *wider;
	size_t first = min_size(pipe->len, pipe->cap - pipe->head);

	if (cap <= pipe->cap)
		return;
	wider = malloc(cap);
	memcpy(wider, pipe->buf + pipe->head, first);
	memcpy(wider + first, pipe->buf, pipe->len - first);
	free(pipe->buf);
	pipe->buf = wider;
	pipe->cap = cap;
	pipe->head = 0;
}

void pipe_fini(struct pipe *pipe)
{
	free(pipe->buf);
}

static void strike(struct pipe *pipe)
{
	pipe->cut = true;
	pipe->fin = true;
	pipe->rst = pipe->cut_rst;
}

static void put(struct pipe *pipe, const uint8_t *data, size_t len)
{
	size_t at = (pipe->head + pipe->len) % pipe->cap;
	size_t first = min_size(len, pipe->cap - at);

	memcpy(pipe->buf + at, data, first);
	memcpy(pipe->buf, data + first, len - first);
	if (pipe->flip_at - pipe->written < len) {
		pipe->buf[(at + (pipe->flip_at - pipe->written)) % pipe->cap] ^= pipe->flip_with;
		pipe->flipped = true;
	}
	pipe->len += len;
	pipe->written += len;
}

/* The octets up to len that the next record holds, or what is left of the one that was begun. */
static size_t begin_record(struct pipe *pipe, size_t len)
{
	if (pipe->record_max == 0)
		return len;
	if (pipe->written == pipe->record_end) {
		pipe->record = pipe->written;
		pipe->record_end += min_size(len, pipe->record_max);
	}
	return min_size(len, pipe->record_end - pipe->written);
}

static void open_record(struct pipe *pipe)
{
	pipe->spoiled |= pipe->record_max && pipe->flipped;
	if (!pipe->spoiled && pipe->written == pipe->record_end)
		pipe->opened = pipe->written;
}

size_t pipe_write(struct pipe *pipe, const void *data, size_t len)
{
	const uint8_t *from = data;
	size_t done = 0;

	while (done < len && !pipe->fin && !pipe->rst &&
	       (pipe->len < pipe->cap || pipe->cut_at == pipe->written)) {
		size_t n = begin_record(pipe, len - done);

		n = min_size(n, pipe->cap - pipe->len);
		n = min_size(n, pipe->cut_at - pipe->written);
		put(pipe, from + done, n);
		open_record(pipe);
		if (pipe->cut_at == pipe->written)
			strike(pipe);
		done += n;
	}
	return pipe->fin || pipe->rst ? len : done;
}

size_t pipe_read(struct pipe *pipe, void *data, size_t len)
{
	size_t open = pipe->record_max ? pipe->opened - pipe->read : pipe->len;
	size_t n = min_size(len, open);
	size_t first = min_size(n, pipe->cap - pipe->head);

	memcpy(data, pipe->buf + pipe->head, first);
	memcpy((uint8_t *)data + first, pipe->buf, n - first);
	pipe->head = (pipe->head + n) % pipe->cap;
	pipe->len -= n;
	pipe->read += n;
	return n;
}

bool pipe_drop(struct pipe *pipe)
{
	bool any = pipe->len > 0;

	pipe->read += pipe->len;
	pipe->head = (pipe->head + pipe->len) % pipe->cap;
	pipe->len = 0;
	return any;
}

bool pipe_is_torn(const struct pipe *pipe)
{
	bool over = pipe->cut || (pipe->fin && pipe->written != pipe->record_end);

	return pipe->record_max && pipe->read >= pipe->opened && (over || pipe->spoiled);
}
