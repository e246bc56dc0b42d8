// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving. FPDUs come to a bounce buffer, or small ones to the record, and the payload of those that are whole and right is copied to
// the program's buffers. One for which the program has too little room is held in the record, its last byte in the socket, until the
// program has had all of it.
#include "record/rx.h"

#include "record/bounce.h"
#include "record/cursor.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/sealed.h"
#include "record/urgent.h"

#include <errno.h>
#include <sys/ioctl.h>

struct reader {
	struct aw_record *record;
	struct aw_record_rx *rx;
	int fd;
	bool goes_on;
	struct aw_cursor to;
	size_t got;
	bool drained; /* recvmsg gave less than it was asked for: the socket was empty then */
	bool at_mark; /* the next byte is urgent, and this read has got bytes before it */
};

/* The next frame, as far as its length field tells. */
struct ahead {
	bool known;
	struct aw_frame frame;
};

ssize_t aw_rx_recvmsg(int fd, struct iovec *iov, size_t count, int flags)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count };
	ssize_t n;

	n = aw_record_calls.recvmsg(fd, &msg, flags | MSG_DONTWAIT);
	if (n > 0)
		return n;
	return n == 0 ? -ENODATA : -errno;
}

bool aw_rx_is_ready(int fd, short event)
{
	struct pollfd pollfd = { .fd = fd, .events = event };

	return aw_record_calls.poll(&pollfd, 1, 0) > 0 &&
	       (event == POLLIN || pollfd.revents & event);
}

size_t aw_rx_queued(int fd)
{
	int answer = 0;

	return aw_record_calls.ioctl(fd, FIONREAD, &answer) == 0 && answer > 0 ? (size_t)answer : 0;
}

ssize_t aw_rx_take(struct aw_record_rx *rx, int fd, struct iovec *iov, size_t count)
{
	ssize_t n = aw_rx_recvmsg(fd, iov, count, 0);

	if (n > 0)
		rx->taken += (uint32_t)n;
	return n;
}

ssize_t aw_rx_take_last(struct aw_record_rx *rx, int fd, void *byte)
{
	struct iovec iov = { byte, 1 };
	ssize_t n = aw_rx_take(rx, fd, &iov, 1);

	return n == -EAGAIN ? aw_rx_take(rx, fd, &iov, 1) : n;
}

/*
 * Notes the peer's fault, which the caller's tx half tells the peer (aw_record_end). The program's
 * negative errno.
 */
static int note_fault(struct aw_record_rx *rx, enum aw_error error)
{
	rx->fault = error;
	return error == AW_E_MPA_CLOSED ? -ECONNRESET : -EPROTO;
}

/* A message of TLS has come. */
static int take_message(struct aw_record_rx *rx, const struct aw_frame *frame,
			const struct aw_sealed_message *message)
{
	if (frame->kind == AW_FRAME_UPDATE) {
		if (message->asked)
			atomic_fetch_add(&rx->asked, 1);
		return rx->updates++ < AW_KEY_UPDATES_MAX ? 0 : note_fault(rx, AW_E_MPA_FRAME);
	}
	rx->notified = message->alert == AW_TLS_CLOSE_NOTIFY;
	if (rx->notified)
		return -ENODATA;
	rx->alert = message->alert;
	return note_fault(rx, AW_E_MPA_CLOSED);
}

static int check_sealed(struct aw_record_rx *rx, uint8_t *bytes, const struct aw_frame *frame)
{
	struct aw_sealed_message message;
	enum aw_error error = aw_sealed_open(&rx->key, bytes, frame, rx->msn, &message);

	if (error)
		return note_fault(rx, error);
	if (frame->kind == AW_FRAME_UPDATE || frame->kind == AW_FRAME_ALERT)
		return take_message(rx, frame, &message);
	rx->updates = 0;
	rx->msn++;
	return 0;
}

int aw_rx_check(struct aw_record *record, uint8_t *bytes, const struct aw_frame *frame)
{
	struct aw_record_rx *rx = &record->rx;
	enum aw_error error = AW_E_MPA_CRC;

	if (aw_key_is_on(&rx->key))
		return check_sealed(rx, bytes, frame);
	if (aw_fpdu_is_right(bytes, frame->payload))
		error = aw_fpdu_judge(bytes, rx->msn);
	if (error)
		return note_fault(rx, error);
	rx->msn++;
	return 0;
}

void aw_rx_pass_updates(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	struct aw_frame frame;
	int err;

	while (aw_key_is_on(&rx->key) && !rx->held && !rx->ended && rx->have < AW_SEALED_UPDATE) {
		struct iovec iov = { rx->bytes + rx->have, AW_SEALED_UPDATE - rx->have };

		if (aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK) != (ssize_t)iov.iov_len ||
		    !aw_sealed_read(rx->bytes, &frame) || frame.kind != AW_FRAME_UPDATE ||
		    aw_rx_take(rx, fd, &iov, 1) != (ssize_t)iov.iov_len)
			return;
		rx->have = 0;
		err = aw_rx_check(record, rx->bytes, &frame);
		rx->ended = err;
		rx->error = -err;
	}
}

static void reader_give(struct reader *r, const uint8_t *bytes, size_t len)
{
	aw_cursor_put(&r->to, bytes, len);
	r->got += len;
	if (len > 0)
		r->rx->mark = AW_MARK_NONE;
}

/* Gives the program all FPDUs that are whole among bytes, and keeps the beginning of one; there is room for each of them. */
static int give_whole(struct reader *r, uint8_t *bytes)
{
	struct aw_record_rx *rx = r->rx;
	size_t at = 0, field = aw_frame_field(&rx->key), head = aw_frame_head(&rx->key);
	struct aw_frame frame;
	int err;

	while (rx->have - at >= field) {
		if (!aw_frame_read(&rx->key, bytes + at, &frame))
			return note_fault(rx, AW_E_MPA_FRAME);
		if (rx->have - at < frame.len)
			break;
		err = aw_rx_check(r->record, bytes + at, &frame);
		if (err)
			return err;
		reader_give(r, bytes + at + head, frame.payload);
		at += frame.len;
	}
	rx->have -= (uint32_t)at;
	memmove(rx->bytes, bytes + at, rx->have);
	return 0;
}

static int read_whole(struct reader *r, const struct ahead *ahead)
{
	/*
	 * How many of the stream's bytes may have left the socket: the whole FPDUs among so many bytes have together no more payload
	 * than there is room for, since none has more than payload_max.
	 */
	struct aw_record_rx *rx = r->rx;
	const size_t payload_max = aw_frame_payload_max(&rx->key),
		     full = AW_RECORD_FPDUS * payload_max;
	size_t room = r->to.left < full ? r->to.left : full;
	size_t frames = room ? (room - 1) / payload_max + 1 : 1;
	size_t most = room + frames * aw_frame_extra(&rx->key);
	size_t limit = ahead->known && ahead->frame.len > most ? ahead->frame.len : most;

	struct aw_bounce *bounce = limit > AW_BOUNCE_SMALL ? aw_bounce_take() : NULL;
	uint8_t *bytes = bounce ? bounce->bytes : rx->bytes;
	size_t space = bounce ? sizeof(bounce->bytes) : sizeof(rx->bytes);
	struct iovec iov = { bytes + rx->have, (limit < space ? limit : space) - rx->have };
	ssize_t n = aw_rx_take(rx, r->fd, &iov, 1);
	int err = n < 0 ? (int)n : 0;

	if (!err) {
		if (bounce)
			memcpy(bytes, rx->bytes, rx->have);
		r->drained = (size_t)n < iov.iov_len;
		rx->have += (uint32_t)n;
		err = give_whole(r, bytes);
		rx->have = err ? 0 : rx->have;
	}
	aw_bounce_put(bounce);
	return err;
}

/* Holds an FPDU that is whole in the record but for, at the most, its last byte. */
static int begin_held(struct reader *r, const struct ahead *ahead)
{
	int err = aw_rx_check(r->record, r->rx->bytes, &ahead->frame);

	r->rx->held = !err;
	r->rx->given = 0;
	return err;
}

/* Takes all but the FPDU's last byte out of the socket; the last byte is peeked at and stays. */
static int read_held(struct reader *r, const struct ahead *ahead)
{
	size_t last = ahead->frame.len - 1;
	bool at_last = r->rx->have == last;
	struct iovec iov = { r->rx->bytes + r->rx->have, at_last ? 1 : last - r->rx->have };
	ssize_t n = at_last ? aw_rx_recvmsg(r->fd, &iov, 1, MSG_PEEK)
			    : aw_rx_take(r->rx, r->fd, &iov, 1);

	if (n < 0)
		return (int)n;
	if (!at_last) {
		r->drained = (size_t)n < iov.iov_len;
		r->rx->have += (uint32_t)n;
		return 0;
	}
	return begin_held(r, ahead);
}

static void drop_front(struct aw_record_rx *rx, size_t len)
{
	rx->have -= (uint32_t)len;
	memmove(rx->bytes, rx->bytes + len, rx->have);
}

/* A message of TLS that is whole in the record. */
static int pass_message(struct reader *r, const struct ahead *ahead)
{
	int err = aw_rx_check(r->record, r->rx->bytes, &ahead->frame);

	drop_front(r->rx, err ? r->rx->have : ahead->frame.len);
	return err;
}

static int give_held(struct reader *r, const struct ahead *ahead)
{
	size_t left = ahead->frame.payload - r->rx->given;
	size_t len = left < r->to.left ? left : r->to.left;
	uint8_t last;

	reader_give(r, r->rx->bytes + aw_frame_head(&r->rx->key) + r->rx->given, len);
	r->rx->given += (uint32_t)len;
	if (len < left)
		return 0;
	r->rx->held = false;
	if (r->rx->have >= ahead->frame.len) {
		drop_front(r->rx, ahead->frame.len);
		return 0;
	}
	r->rx->have = 0;
	return aw_rx_take_last(r->rx, r->fd, &last) == 1 ? 0 : note_fault(r->rx, AW_E_MPA_CLOSED);
}

static int read_next(struct reader *r)
{
	struct aw_record_rx *rx = r->rx;
	struct ahead ahead = { 0 };
	int err = aw_reply_take(r->record, r->fd);
	bool is_mark;

	if (err)
		return err;
	ahead.known = rx->have >= aw_frame_field(&rx->key);
	if (ahead.known && !aw_frame_read(&rx->key, rx->bytes, &ahead.frame))
		return note_fault(rx, AW_E_MPA_FRAME);
	if (rx->held)
		return give_held(r, &ahead);

	/*
	 * An urgent FPDU comes next. A read that has got bytes ends at the mark, as TCP's does; the next read leaves the urgent byte out, or
	 * gives it.
	 */
	if (aw_urgent_is_front(rx)) {
		is_mark = aw_urgent_is_mark(rx, r->fd);
		r->at_mark = is_mark && (r->got > 0 || r->goes_on);
		if (r->at_mark)
			return 0;
		r->drained = false;
		if (is_mark && !rx->in_line)
			return aw_urgent_pass(r->record, r->fd);
		return ahead.frame.payload > r->to.left ? read_held(r, &ahead)
							: read_whole(r, &ahead);
	}

	if (ahead.known && rx->have >= ahead.frame.len)
		return ahead.frame.payload ? begin_held(r, &ahead) : pass_message(r, &ahead);
	if (ahead.known && ahead.frame.payload > r->to.left)
		return read_held(r, &ahead);
	return read_whole(r, &ahead);
}

/*
 * Returns whether TCP's end of the stream is none: it is within an FPDU, or under TLS no close_notify has come before it. Before the Reply there
 * is nothing to be cut off.
 */
static bool is_cut_off(const struct aw_record_rx *rx)
{
	if (rx->have > 0 && !rx->held)
		return true;
	return aw_key_is_on(&rx->key) && !rx->notified && !rx->reply_due;
}

/*
 * Ends a receive: the bytes or the error. An error that ends the stream is returned once, after all
 * bytes received before it; then the stream is at its end.
 */
static ssize_t reader_finish(struct reader *r, int err)
{
	struct aw_record_count *count = &r->rx->count;

	if (err == -ENODATA && r->rx->shut)
		return (ssize_t)r->got;
	if (err == -ENODATA && is_cut_off(r->rx))
		err = note_fault(r->rx, AW_E_MPA_CLOSED);
	if (err == 0 || err == -EAGAIN) {
		if (aw_urgent_is_front(r->rx))
			(void)aw_urgent_is_mark(r->rx, r->fd);
		aw_lowat_await(r->rx, r->fd);
	} else if (err == -ENODATA || aw_record_is_failure(err)) {
		r->rx->ended = true;
		/* TCP's end may come later than the close_notify: pollers are told of it now. */
		if (r->rx->notified)
			(void)aw_record_calls.shutdown(r->fd, SHUT_RD);
	}
	if (r->got > 0) {
		count->known &= r->got <= count->bytes;
		count->bytes -= count->known ? (uint32_t)r->got : 0;
		r->rx->error = aw_record_is_failure(err) ? -err : 0;
		return (ssize_t)r->got;
	}
	if (err == -ENODATA)
		return 0;
	return err ? err : -EAGAIN;
}

static ssize_t finish_ended(struct aw_record_rx *rx)
{
	int error = rx->error;

	rx->error = 0;
	return -error;
}

ssize_t aw_record_receive(struct aw_record *record, int fd, const struct iovec *iov, int count,
			  int flags)
{
	struct reader r = {
		.record = record,
		.rx = &record->rx,
		.fd = fd,
		.goes_on = flags & AW_RECORD_GOES_ON,
		.to = aw_cursor_begin(iov, count),
	};
	int err = 0;

	aw_urgent_renew(record, fd);
	if (record->rx.ended)
		return finish_ended(&record->rx);
	if (record->rx.mark == AW_MARK_BEHIND)
		record->rx.mark = AW_MARK_NONE;
	/* A recvmsg that ended in front of the urgent pointer gave less than it was asked for, and the socket is not empty. */
	while (!err && r.to.left > 0 && !r.at_mark && (!r.drained || aw_urgent_is_front(r.rx)))
		err = read_next(&r);
	/*
	 * A program that counts reads no further than whole FPDUs, and a part left behind would keep the whole buffer that it
	 * came in, and TCP's window shut.
	 */
	while (!err && record->rx.counted && !r.drained && !r.rx->held && !r.at_mark &&
	       !aw_urgent_is_front(r.rx))
		err = read_next(&r);
	return reader_finish(&r, err);
}

ssize_t aw_record_hold(struct aw_record *record, int fd)
{
	struct reader r = { .record = record, .rx = &record->rx, .fd = fd };
	int err = 0;

	if (record->rx.ended)
		return finish_ended(&record->rx);
	while (!err && !r.rx->held)
		err = read_next(&r);
	return r.rx->held ? 1 : reader_finish(&r, err);
}

/*
 * Returns whether all of the next FPDU, of which nothing has left the socket, is among the queued bytes there. A KeyUpdate is none: it is
 * taken.
 */
static bool is_whole_in_socket(const struct aw_record_key *key, int fd, size_t queued)
{
	uint8_t head[AW_AEAD_HEAD];
	struct iovec iov = { head, aw_frame_field(key) };
	struct aw_frame frame;

	if (queued >= AW_FPDU_MAX && !aw_key_is_on(key))
		return true;
	if (aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK) != (ssize_t)iov.iov_len)
		return false;
	return !aw_frame_read(key, head, &frame) ||
	       (queued >= frame.len && frame.kind != AW_FRAME_UPDATE);
}

bool aw_record_is_readable(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	struct reader r = { .record = record, .rx = rx, .fd = fd };
	size_t queued = aw_rx_queued(fd);
	ssize_t n;
	int err = 0;

	/* An empty socket's end or error is a read's to take. */
	if (!queued || rx->ended || rx->shut || rx->held || rx->mark != AW_MARK_NONE ||
	    aw_urgent_is_front(rx))
		return true;
	if (rx->reply_due) {
		if (!aw_record_take_answer(record, fd))
			return rx->fault != AW_OK;
		queued = aw_rx_queued(fd);
	}
	if (rx->have == 0 && is_whole_in_socket(&rx->key, fd, queued))
		return true;

	/* Takes what is there of the next FPDU, and leaves an error to the next read. */
	while (!err && !rx->held && !aw_urgent_is_front(rx))
		err = read_next(&r);
	n = reader_finish(&r, err);
	if (n < 0 && rx->ended)
		rx->error = (int)-n;
	return err != -EAGAIN;
}
