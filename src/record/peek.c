// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving without taking (MSG_PEEK, FIONREAD): the record's bytes, and whole FPDUs behind them,
// which stay in the socket.
#include "record/record.h"

#include "record/cursor.h"
#include "record/lowat.h"
#include "record/reply.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK 65536u /* bytes of the caller's room that one call looks at */
#define MORE 65536u /* for headers, trailers, and an FPDU that the program has had a part of */

/* The record's own bytes and the socket's behind them, in one buffer. */
struct view {
	uint8_t *bytes;
	size_t len, at;
	uint32_t msn;
	bool ended; /* the socket is at its end */
};

static ssize_t look(const struct aw_record *record, const struct aw_record_calls *calls, int fd,
		    struct view *view, size_t most)
{
	size_t have = record->rx.have;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	view->bytes = malloc(have + most);
	if (!view->bytes)
		return -ENOMEM;
	memcpy(view->bytes, record->rx.bytes, have);
	iov = (struct iovec){ view->bytes + have, most };
	n = calls->recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	view->ended = n == 0;
	view->len = have + (n > 0 ? (size_t)n : 0);
	return 0;
}

/*
 * Checks the next whole FPDU and finds its payload. False: there is none, or a wrong one, which the
 * next receive reports.
 */
static bool next_payload(const struct aw_record *record, const struct aw_record_calls *calls,
			 struct view *view, struct iovec *payload)
{
	uint8_t *head = view->bytes + view->at;
	size_t len, left = view->len - view->at;

	if (left < FPDU_LEN_FIELD || !aw_frame_payload(head, &len) || left < aw_frame_len(len))
		return false;
	*payload = (struct iovec){ head + AW_FRAME_HEAD, len };
	if (!aw_frame_is_right(head, payload, 1, head + AW_FRAME_HEAD + len,
			       record->crc ? calls->crc : NULL) ||
	    aw_frame_judge(head, view->msn))
		return false;
	view->msn++;
	view->at += aw_frame_len(len);
	return true;
}

/*
 * How many bytes of a held FPDU's payload the program was given already; only the first FPDU can be
 * held.
 */
static size_t skip_given(const struct aw_record_rx *rx, const struct view *view, size_t at)
{
	return rx->held && at == 0 && view->at > 0 ? rx->given : 0;
}

/*
 * Counts the payload of the whole FPDUs in the record and the socket, and copies it where to is not
 * NULL. 0: no FPDU is whole.
 */
static size_t walk(const struct aw_record *record, const struct aw_record_calls *calls,
		   struct view *view, struct aw_cursor *to)
{
	struct iovec payload;
	size_t got = 0, at = 0;

	while ((!to || to->left > 0) && next_payload(record, calls, view, &payload)) {
		size_t skip = skip_given(&record->rx, view, at), len = payload.iov_len - skip;

		if (to && len > to->left)
			len = to->left;
		if (to)
			aw_cursor_put(to, (uint8_t *)payload.iov_base + skip, len);
		got += len;
		at = view->at;
	}
	return got;
}

/* As walk, but it may fail with a negative errno. */
static ssize_t look_at(const struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       struct aw_cursor *to, size_t most)
{
	struct view view = { .msn = record->rx.msn - record->rx.held };
	ssize_t err = look(record, calls, fd, &view, most), got = 0;

	if (!err)
		got = (ssize_t)walk(record, calls, &view, to);
	free(view.bytes);
	return err ? err : got;
}

ssize_t aw_record_peek(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct iovec *iov, int count)
{
	struct aw_cursor to = aw_cursor_begin(iov, count);
	size_t most = (to.left < CHUNK ? to.left : CHUNK) + MORE;
	ssize_t got;

	if (record->rx.ended)
		return -record->rx.error;
	if (aw_reply_take(record, calls, fd) == 0) {
		got = look_at(record, calls, fd, &to, most);
		if (got != 0)
			return got;
	}
	got = aw_record_hold(record, calls, fd);
	return got == 1 ? look_at(record, calls, fd, &to, most) : got;
}

/*
 * Raises SO_RCVLOWAT where the FPDUs are shorter than it assumes: more bytes carry what the program
 * waits for.
 */
static void await_more(struct aw_record_rx *rx, const struct aw_record_calls *calls, int fd,
		       const struct view *view, size_t got)
{
	if (got > 0 && got < rx->wanted && view->at > rx->have)
		aw_lowat_set(rx, calls, fd, view->at - rx->have + aw_lowat_bytes(rx->wanted - got));
}

ssize_t aw_record_pending(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			  size_t queued)
{
	struct aw_record_rx *rx = &record->rx;
	struct view view = { .msn = rx->msn - rx->held };
	ssize_t err, got = 0;

	if (rx->ended || aw_reply_take(record, calls, fd) != 0)
		return 0;
	err = look(record, calls, fd, &view, queued + 1);
	if (!err) {
		got = (ssize_t)walk(record, calls, &view, NULL);
		await_more(rx, calls, fd, &view, (size_t)got);
	}
	free(view.bytes);
	return err ? err : got;
}
