// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving without taking (MSG_PEEK, FIONREAD): the record's bytes, and whole FPDUs behind them,
// which stay in the socket.
#include "record/record.h"

#include "record/cursor.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/rx.h"
#include "record/urgent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define CHUNK 65536u /* bytes of the caller's room that one call looks at */
#define MORE 65536u /* for headers, trailers, and an FPDU that the program has had a part of */

/* The record's own bytes and the socket's behind them, in one buffer. */
struct view {
	uint8_t *bytes;
	size_t len, at;
	uint32_t msn;
	bool further; /* it begins behind what an earlier look has counted */
	bool urgent; /* it has an urgent FPDU */
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
	view->urgent |= aw_frame_is_urgent(head);
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
	return rx->held && !view->further && at == 0 && view->at > 0 ? rx->given : 0;
}

/*
 * True when the view's next FPDU is urgent, in the record but for its last byte, and at the mark. A
 * look ends in front of it, as a read does.
 */
static bool is_at_mark(const struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct view *view)
{
	return view->at + AW_URGENT_FRONT == record->rx.have &&
	       aw_frame_is_urgent(view->bytes + view->at) && aw_urgent_is_at_pointer(calls, fd);
}

/*
 * Counts the payload of the whole FPDUs in the record and the socket, and copies it where to is not
 * NULL. 0: no FPDU is whole.
 */
static size_t walk(const struct aw_record *record, const struct aw_record_calls *calls, int fd,
		   struct view *view, struct aw_cursor *to)
{
	bool goes_on = record->rx.in_line && !to;
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
		if (!goes_on && !view->further && is_at_mark(record, calls, fd, view))
			break;
	}
	return got;
}

/* Has pollers wake when the FPDU behind the urgent one is whole. */
static void await_behind(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			 const struct view *view)
{
	size_t len;

	if (view->len - view->at < FPDU_LEN_FIELD ||
	    !aw_frame_payload(view->bytes + view->at, &len) || len == 0)
		len = 1;
	aw_lowat_set(&record->rx, calls, fd, AW_URGENT_LEN - AW_URGENT_FRONT + aw_frame_len(len));
}

/* As walk. aside: the program stands at the mark, and does not have the urgent byte in line. */
static ssize_t look_at(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       struct aw_cursor *to, size_t most, bool aside)
{
	struct view view = { .msn = record->rx.msn - record->rx.held };
	ssize_t err = look(record, calls, fd, &view, most), got = 0;
	struct iovec urgent;

	if (!err && (!aside || next_payload(record, calls, &view, &urgent)))
		got = (ssize_t)walk(record, calls, fd, &view, to);
	if (!err && aside && got == 0)
		await_behind(record, calls, fd, &view);
	free(view.bytes);
	return err ? err : got;
}

static bool is_aside(struct aw_record_rx *rx, const struct aw_record_calls *calls, int fd)
{
	return !rx->in_line && aw_urgent_is_front(rx) && aw_urgent_is_mark(rx, calls, fd);
}

ssize_t aw_record_peek(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct iovec *iov, int count)
{
	struct aw_cursor to = aw_cursor_begin(iov, count);
	size_t most = (to.left < CHUNK ? to.left : CHUNK) + MORE;
	ssize_t got;

	aw_urgent_renew(record, calls, fd);
	if (record->rx.ended)
		return -record->rx.error;
	if (aw_reply_take(record, calls, fd) == 0) {
		bool aside = is_aside(&record->rx, calls, fd);

		got = look_at(record, calls, fd, &to, most, aside);
		if (got != 0)
			return got;
		if (aside && !aw_rx_is_ready(calls, fd, POLLIN))
			return -EAGAIN;
	}
	got = aw_record_hold(record, calls, fd);
	return got == 1 ? look_at(record, calls, fd, &to, most, false) : got;
}

/* True when a look has ended at the urgent pointer, and the count goes on behind it. */
static bool is_cut_short(const struct aw_record_rx *rx, const struct view *view, size_t queued)
{
	return rx->in_line && view->len < rx->have + queued &&
	       view->len - view->at == AW_URGENT_FRONT &&
	       aw_frame_is_urgent(view->bytes + view->at) && view->len <= sizeof(rx->bytes);
}

/*
 * Moves the bytes in front of the urgent pointer to the record, since no look goes beyond that pointer
 * otherwise. The byte at the pointer stays in the socket, so that the fd stays readable.
 */
static size_t read_ahead(struct aw_record_rx *rx, const struct aw_record_calls *calls, int fd,
			 size_t len)
{
	struct iovec iov = { rx->bytes + rx->have, len };
	ssize_t n = aw_rx_take(rx, calls, fd, &iov, 1);

	if (n < 0)
		return 0;
	rx->have += (uint32_t)n;
	return (size_t)n;
}

/*
 * Raises SO_RCVLOWAT where the FPDUs are shorter than it assumes: more bytes carry what the program
 * waits for.
 */
static void await_more(struct aw_record_rx *rx, const struct aw_record_calls *calls, int fd)
{
	int32_t in_socket = (int32_t)(rx->count.end - rx->taken);
	size_t got = rx->count.bytes;

	if (got > 0 && got < rx->wanted && in_socket > 0)
		aw_lowat_set(rx, calls, fd, (size_t)in_socket + aw_lowat_bytes(rx->wanted - got));
}

/* *moved: bytes that have left the socket; then another look counts more. */
static ssize_t count_once(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			  size_t queued, size_t *moved)
{
	struct aw_record_rx *rx = &record->rx;
	struct view view = { .msn = rx->msn - rx->held };
	ssize_t err = look(record, calls, fd, &view, queued + 1), got = 0;

	*moved = 0;
	if (!err) {
		got = (ssize_t)walk(record, calls, fd, &view, NULL);
		rx->count =
			(struct aw_record_count){ .known = !view.urgent,
						  .bytes = (uint32_t)got,
						  .end = rx->taken - rx->have + (uint32_t)view.at,
						  .msn = view.msn };
		await_more(rx, calls, fd);
		if (is_cut_short(rx, &view, queued))
			*moved = read_ahead(rx, calls, fd, view.len - rx->have);
	}
	free(view.bytes);
	return err ? err : got;
}

/*
 * Reads a view that begins so many bytes into the socket. False: the kernel cannot (TCP before Linux 6.9),
 * or the look ends at an urgent pointer.
 */
static bool look_further(const struct aw_record_calls *calls, int fd, int offset, struct view *view)
{
	struct iovec iov = { view->bytes, view->len };
	int none = -1;
	ssize_t n;

	if (calls->setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) != 0)
		return false;
	n = aw_rx_recvmsg(calls, fd, &iov, 1, MSG_PEEK);
	calls->setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	return n == (ssize_t)view->len;
}

/* Adds to the count what has come since. False: only a look at everything can. */
static bool count_further(struct aw_record *record, const struct aw_record_calls *calls, int fd,
			  size_t queued)
{
	struct aw_record_count *count = &record->rx.count;
	int32_t offset = (int32_t)(count->end - record->rx.taken);
	struct view view = { .msn = count->msn, .further = true };
	bool counted;

	if (!count->known || offset < 0 || (size_t)offset > queued ||
	    record->rx.mark != AW_MARK_NONE)
		return false;
	view.len = queued - (size_t)offset;
	if (view.len == 0)
		return true;
	view.bytes = malloc(view.len);
	counted = view.bytes && look_further(calls, fd, offset, &view);
	if (counted) {
		count->bytes += (uint32_t)walk(record, calls, fd, &view, NULL);
		count->end += (uint32_t)view.at;
		count->msn = view.msn;
		await_more(&record->rx, calls, fd);
	}
	free(view.bytes);
	return counted && !view.urgent;
}

/* As the kernel does, this counts up to the mark where urgent bytes are not in line. */
ssize_t aw_record_pending(struct aw_record *record, const struct aw_record_calls *calls, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	ssize_t got;
	size_t moved, left;
	int queued = 0, err;

	aw_urgent_renew(record, calls, fd);
	if (rx->ended)
		return 0;
	err = aw_reply_take(record, calls, fd);
	if (err)
		return aw_record_is_failure(err) ? err : 0;
	rx->counted = true;
	if (!rx->in_line && (rx->mark == AW_MARK_BEHIND || is_aside(rx, calls, fd)))
		return 0;
	if (calls->ioctl(fd, FIONREAD, &queued) != 0)
		return 0;
	left = (size_t)queued;
	if (count_further(record, calls, fd, left))
		return rx->count.bytes;
	got = count_once(record, calls, fd, left, &moved);
	return moved ? count_once(record, calls, fd, left - moved, &moved) : got;
}
