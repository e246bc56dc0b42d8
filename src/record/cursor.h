// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A place in a vector of buffers.
#ifndef RECORD_CURSOR_H
#define RECORD_CURSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct aw_cursor {
	const struct iovec *iov;
	int count;
	size_t at; /* in iov[0] */
	size_t left; /* bytes from here to the end */
};

static inline struct aw_cursor aw_cursor_begin(const struct iovec *iov, int count)
{
	struct aw_cursor cursor = { .iov = iov, .count = count };

	for (int i = 0; i < count; i++)
		cursor.left += iov[i].iov_len;
	return cursor;
}

/*
 * Finds the pieces of the next len bytes, at most `most` of them. Returns their number; *covered is
 * their bytes.
 */
static inline int aw_cursor_pieces(const struct aw_cursor *cursor, size_t len, struct iovec *pieces,
				   int most, size_t *covered)
{
	size_t at = cursor->at;
	int n = 0;

	*covered = 0;
	for (int i = 0; i < cursor->count && n < most && *covered < len; i++, at = 0) {
		size_t piece = cursor->iov[i].iov_len - at;

		if (piece > len - *covered)
			piece = len - *covered;
		if (piece == 0)
			continue;
		pieces[n].iov_base = (uint8_t *)cursor->iov[i].iov_base + at;
		pieces[n++].iov_len = piece;
		*covered += piece;
	}
	return n;
}

static inline void aw_cursor_skip(struct aw_cursor *cursor, size_t len)
{
	cursor->left -= len;
	while (len > 0) {
		size_t piece = cursor->iov->iov_len - cursor->at;

		if (len < piece) {
			cursor->at += len;
			return;
		}
		len -= piece;
		cursor->at = 0;
		cursor->iov++;
		cursor->count--;
	}
}

/* Copies len bytes to where the cursor is, and moves it; len <= left. */
static inline void aw_cursor_put(struct aw_cursor *cursor, const uint8_t *bytes, size_t len)
{
	while (len > 0) {
		struct iovec piece;
		size_t covered;

		aw_cursor_pieces(cursor, len, &piece, 1, &covered);
		memcpy(piece.iov_base, bytes, covered);
		aw_cursor_skip(cursor, covered);
		bytes += covered;
		len -= covered;
	}
}

/* As aw_cursor_put, but copies from where the cursor is. */
static inline void aw_cursor_get(struct aw_cursor *cursor, uint8_t *bytes, size_t len)
{
	while (len > 0) {
		struct iovec piece;
		size_t covered;

		aw_cursor_pieces(cursor, len, &piece, 1, &covered);
		memmove(bytes, piece.iov_base, covered);
		aw_cursor_skip(cursor, covered);
		bytes += covered;
		len -= covered;
	}
}

#endif
