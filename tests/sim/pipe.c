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

size_t pipe_write(struct pipe *pipe, const void *data, size_t len)
{
	size_t n = min_size(len, pipe->cap - pipe->len);

	if (pipe->fin || pipe->rst)
		return len;
	if (pipe->cut_at - pipe->written <= n) {
		put(pipe, data, pipe->cut_at - pipe->written);
		strike(pipe);
		return len;
	}
	put(pipe, data, n);
	return n;
}

size_t pipe_read(struct pipe *pipe, void *data, size_t len)
{
	size_t n = min_size(len, pipe->len);
	size_t first = min_size(n, pipe->cap - pipe->head);

	memcpy(data, pipe->buf + pipe->head, first);
	memcpy((uint8_t *)data + first, pipe->buf, n - first);
	pipe->head = (pipe->head + n) % pipe->cap;
	pipe->len -= n;
	pipe->read += n;
	return n;
}
