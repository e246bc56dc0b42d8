// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving without taking (MSG_PEEK, FIONREAD): the record's bytes, and whole FPDUs behind them,
// which stay in the socket.
#include "record/record.h"

#include "record/bounce.h"
#include "record/cursor.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/rx.h"
#include "record/sealed.h"
#include "record/urgent.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define CHUNK 65536u /* bytes of the caller's room that the first look is made for */
#define MORE 65536u /* for headers, trailers, and an FPDU that the program has had a part of */

/* The record's own bytes and the socket's behind them, in one buffer. */
struct view {
	uint8_t *bytes;
	struct aw_bounce *bounce; /* NULL: the bytes do not fit there, and are mapped */
	size_t mapped;
	size_t len, at;
	uint32_t msn;
	struct aw_record_key key; /* of the next TLS record that is opened */
	bool opened; /* the FPDU at the beginning is held, and has been opened */
	bool opens; /* TLS records are opened, not counted alone */
	bool further; /* it begins behind what an earlier look has counted */
	bool urgent; /* it has an urgent FPDU */
};

/*
 * Gets the view memory that is not malloc's: a signal handler may call recv(2) or ioctl(2) after it has interrupted the
 * program in malloc. False: there is none.
 */
static bool view_open(struct view *view, size_t len)
{
	view->at = 0;
	view->further = view->urgent = view->opened = view->opens = false;
	view->key.suite = AW_SUITE_NONE;
	view->mapped = len;
	view->bounce = len <= AW_BOUNCE_BYTES ? aw_bounce_take() : NULL;
	view->bytes = view->bounce ? view->bounce->bytes
				   : mmap(NULL, len, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return view->bytes != MAP_FAILED;
}

static void view_close(struct view *view)
{
	if (!view->bounce)
		munmap(view->bytes, view->mapped);
	aw_bounce_put(view->bounce);
}

/* Opens a view of most of the socket's bytes. An empty socket is not looked at: its error is a read's, or poll's to tell. */
static ssize_t view_look(const struct aw_record *record, int fd, struct view *view, size_t most)
{
	size_t have = record->rx.have;
	struct iovec iov;
	ssize_t n = 0;

	if (!view_open(view, have + most))
		return -ENOMEM;
	view->msn = record->rx.msn - record->rx.held;
	view->key = record->rx.key;
	view->opened = record->rx.held;
	memcpy(view->bytes, record->rx.bytes, have);
	iov = (struct iovec){ view->bytes + have, most };
	if (most > 0)
		n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);
	view->len = have + (n > 0 ? (size_t)n : 0);
	return n < 0 && n != -EAGAIN && n != -ENODATA ? n : 0;
}

/* A TLS record is opened only for a look at its bytes: its length tells the rest. */
static bool is_sealed_right(struct view *view, uint8_t *head, const struct aw_frame *frame)
{
	struct aw_sealed_message message;

	if (!view->opens || (view->opened && view->at == 0))
		return true;
	return aw_sealed_open(&view->key, head, frame, view->msn, &message) == AW_OK;
}

/*
 * Checks the next whole frame and finds its payload. False: there is none, or a wrong one, which the
 * next receive reports.
 */
static bool next_payload(struct view *view, struct iovec *payload)
{
	uint8_t *head = view->bytes + view->at;
	size_t left = view->len - view->at;
	bool sealed = aw_key_is_on(&view->key);
	struct aw_frame frame;

	if (left < aw_frame_field(&view->key) || !aw_frame_read(&view->key, head, &frame) ||
	    left < frame.len || frame.kind == AW_FRAME_ALERT)
		return false;
	*payload = (struct iovec){ head + aw_frame_head(&view->key), frame.payload };
	if (sealed ? !is_sealed_right(view, head, &frame)
		   : !aw_fpdu_is_right(head, frame.payload) || aw_fpdu_judge(head, view->msn))
		return false;
	view->urgent |= aw_frame_is_urgent(&view->key, head);
	view->msn += frame.payload > 0;
	view->at += frame.len;
	return true;
}

/*
 * Counts the payload of the whole FPDUs in the record and the socket, and copies it where to is not
 * NULL. 0: no FPDU is whole.
 */
static size_t view_walk(const struct aw_record *record, int fd, struct view *view,
			struct aw_cursor *to)
{
	bool goes_on = record->rx.in_line && !to;
	struct iovec payload;
	size_t got = 0, at = 0;

	while ((!to || to->left > 0) && next_payload(view, &payload)) {
		/* The program was given a part of a held FPDU's payload already; only the first FPDU can be held. */
		size_t skip = record->rx.held && !view->further && at == 0 ? record->rx.given : 0;
		size_t len = payload.iov_len - skip;

		if (to && len > to->left)
			len = to->left;
		if (to)
			aw_cursor_put(to, (uint8_t *)payload.iov_base + skip, len);
		got += len;
		at = view->at;
		/*
		 * A look ends, as a read does, in front of an urgent FPDU that is in the record but for its last byte, and
		 * at the mark.
		 */
		if (!goes_on && !view->further &&
		    at + aw_urgent_front(&record->rx) == record->rx.have &&
		    aw_frame_is_urgent(&record->rx.key, view->bytes + at) &&
		    aw_urgent_is_at_pointer(fd))
			break;
	}
	return got;
}

/*
 * Returns how many bytes must be in the socket so that a look has left bytes more of payload than the view has shown; 0: the look
 * has ended at an urgent byte, or at an FPDU that is wrong.
 */
static size_t due_behind(const struct aw_record *record, const struct view *view, size_t left)
{
	const uint8_t *head = view->bytes + view->at;
	const struct aw_record_key *key = &record->rx.key;
	size_t known = view->len - view->at, need = aw_lowat_bytes(key, left);
	struct aw_frame frame;

	if (known >= AW_FPDU_HEAD && aw_frame_is_urgent(key, head))
		return 0;
	if (known >= aw_frame_field(key)) {
		if (!aw_frame_read(key, head, &frame) || known >= frame.len ||
		    frame.kind == AW_FRAME_ALERT)
			return 0;
		need = need < frame.len ? frame.len : need;
	}
	return view->at + need - record->rx.have;
}

/* A look of the program's. */
struct peeker {
	struct aw_record *record;
	int fd;
	struct aw_cursor to;
	bool aside; /* the program stands at the mark, and does not have the urgent byte in line */
	bool whole; /* the program waits until there are bytes for all of its room */
	size_t due; /* as due_behind */
};

/* As view_walk, of the next most bytes of the socket. */
static ssize_t look_once(struct peeker *p, size_t most)
{
	struct view view;
	ssize_t err = view_look(p->record, p->fd, &view, most), got = 0;
	const struct aw_record_rx *rx = &p->record->rx;
	struct aw_frame behind;
	struct iovec urgent;

	view.opens = true;
	if (!err && (!p->aside || next_payload(&view, &urgent)))
		got = (ssize_t)view_walk(p->record, p->fd, &view, &p->to);
	/* Pollers wake when the FPDU behind the urgent one is whole. */
	if (!err && p->aside && got == 0) {
		if (view.len - view.at < aw_frame_field(&rx->key) ||
		    !aw_frame_read(&rx->key, view.bytes + view.at, &behind))
			behind.len = aw_frame_len(&rx->key, 1);
		aw_lowat_set(&p->record->rx, p->fd, 1 + behind.len);
	}
	if (!err && p->whole && got > 0)
		p->due = p->to.left ? due_behind(p->record, &view, p->to.left) : 0;
	view_close(&view);
	return err ? err : got;
}

/* As view_walk. A look that ends before the program's room and the socket's bytes do is made of all of these. */
static ssize_t look_at(struct peeker *p)
{
	size_t there = aw_rx_queued(p->fd), most = (p->to.left < CHUNK ? p->to.left : CHUNK) + MORE;
	struct aw_cursor to = p->to;
	ssize_t got;

	if (p->whole || there < most)
		most = there;
	got = look_once(p, most);
	if (got <= 0 || !p->to.left || most == there)
		return got;
	p->to = to;
	return look_once(p, there);
}

static bool is_aside(struct aw_record_rx *rx, int fd)
{
	return !rx->in_line && aw_urgent_is_front(rx) && aw_urgent_is_mark(rx, fd);
}

ssize_t aw_record_peek(struct aw_record *record, int fd, const struct iovec *iov, int count,
		       size_t *due)
{
	struct peeker p = {
		.record = record,
		.fd = fd,
		.to = aw_cursor_begin(iov, count),
		.whole = due,
	};
	ssize_t got = 0;

	if (due)
		*due = 0;
	aw_urgent_renew(record, fd);
	if (record->rx.ended)
		return -record->rx.error;
	if (aw_reply_take(record, fd) == 0) {
		p.aside = is_aside(&record->rx, fd);
		got = look_at(&p);
		if (got == 0 && p.aside && !aw_rx_is_ready(fd, POLLIN))
			got = -EAGAIN;
	}
	if (got == 0) {
		got = aw_record_hold(record, fd);
		p.aside = false;
		got = got == 1 ? look_at(&p) : got;
	}
	if (due)
		*due = p.due;
	return got;
}

/*
 * Raises SO_RCVLOWAT where the FPDUs are shorter than it assumes: more bytes carry what the program
 * waits for.
 */
static void await_more(struct aw_record_rx *rx, int fd)
{
	int32_t in_socket = (int32_t)(rx->count.end - rx->taken);
	size_t got = rx->count.bytes;

	if (got > 0 && got < rx->wanted && in_socket > 0)
		aw_lowat_set(rx, fd,
			     (size_t)in_socket + aw_lowat_bytes(&rx->key, rx->wanted - got));
}

/* *moved: bytes that have left the socket; then another look counts more. */
static ssize_t count_once(struct aw_record *record, int fd, size_t in_socket, size_t *moved)
{
	struct aw_record_rx *rx = &record->rx;
	struct view view;
	ssize_t err, got = 0;
	bool is_cut_short;

	*moved = 0;
	err = view_look(record, fd, &view, in_socket);
	if (!err) {
		got = (ssize_t)view_walk(record, fd, &view, NULL);
		rx->count =
			(struct aw_record_count){ .known = !view.urgent,
						  .bytes = (uint32_t)got,
						  .end = rx->taken - rx->have + (uint32_t)view.at,
						  .msn = view.msn };
		await_more(rx, fd);
		/*
		 * No look goes beyond the urgent pointer while there are bytes in front of it. The byte at the
		 * pointer stays in the socket, so that the fd stays readable.
		 */
		is_cut_short = rx->in_line && view.len < rx->have + in_socket &&
			       view.len - view.at == aw_urgent_front(rx) &&
			       aw_frame_is_urgent(&rx->key, view.bytes + view.at) &&
			       view.len <= sizeof(rx->bytes);
		if (is_cut_short) {
			struct iovec iov = { rx->bytes + rx->have, view.len - rx->have };
			ssize_t n = aw_rx_take(rx, fd, &iov, 1);

			*moved = n > 0 ? (size_t)n : 0;
			rx->have += (uint32_t)*moved;
		}
	}
	view_close(&view);
	return err ? err : got;
}

/* Adds to the count what has come since. False: only a look at everything can. */
static bool count_further(struct aw_record *record, int fd, size_t in_socket)
{
	struct aw_record_count *count = &record->rx.count;
	int offset = (int)(count->end - record->rx.taken), none = -1;
	struct view view;
	struct iovec iov;
	bool counted;

	if (!count->known || offset < 0 || (size_t)offset > in_socket ||
	    record->rx.mark != AW_MARK_NONE)
		return false;
	view.len = in_socket - (size_t)offset;
	if (view.len == 0)
		return true;
	if (!view_open(&view, view.len))
		return false;
	view.msn = count->msn;
	view.key.suite = record->rx.key.suite; /* counts alone, by the lengths */
	view.further = true;
	/* The kernel may be unable to (TCP before Linux 6.9), and the look may end at an urgent pointer. */
	counted = aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset,
					     sizeof(offset)) == 0;
	if (counted) {
		iov = (struct iovec){ view.bytes, view.len };
		counted = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK) == (ssize_t)view.len;
		aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	}
	if (counted) {
		count->bytes += (uint32_t)view_walk(record, fd, &view, NULL);
		count->end += (uint32_t)view.at;
		count->msn = view.msn;
		await_more(&record->rx, fd);
	}
	view_close(&view);
	return counted && !view.urgent;
}

/* As the kernel does, this counts up to the mark where urgent bytes are not in line. */
ssize_t aw_record_pending(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	ssize_t got;
	size_t moved, left;
	int in_socket = 0, err;

	aw_urgent_renew(record, fd);
	if (rx->ended || (rx->reply_due && aw_rx_queued(fd) == 0))
		return 0;
	err = aw_reply_take(record, fd);
	if (err)
		return aw_record_is_failure(err) ? err : 0;
	rx->counted = true;
	if (!rx->in_line && (rx->mark == AW_MARK_BEHIND || is_aside(rx, fd)))
		return 0;
	if (aw_record_calls.ioctl(fd, FIONREAD, &in_socket) != 0)
		return 0;
	left = (size_t)in_socket;
	if (count_further(record, fd, left))
		return rx->count.bytes;
	got = count_once(record, fd, left, &moved);
	return moved ? count_once(record, fd, left - moved, &moved) : got;
}
