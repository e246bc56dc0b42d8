// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving. An FPDU reaches the program in one of three ways: small ones are read together into
// the record and copied; a large one that fits is read straight into the program's buffers; one for
// which the program has too little room is held in the record, its last byte in the socket, until
// the program has had all of it.
#include "record/rx.h"

#include "record/cursor.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/urgent.h"

#include <errno.h>
#include <sys/ioctl.h>

/* Up to this size the record copies a payload, because a call of its own would cost more. */
#define SMALL 4096u
#define IOVS (3 * AW_RECORD_FRAMES + 13)

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

/* The next FPDU, as far as its length field tells. */
struct ahead {
	bool known;
	size_t payload, len;
};

/*
 * An FPDU in a plan: its place in the stream, the pieces of its payload in the vector, and room for
 * its trailer and the next header.
 */
struct planned {
	size_t at, payload;
	int first, pieces;
	uint8_t behind[AW_FRAME_TRAILER_MAX + AW_FRAME_HEAD];
};

/*
 * A plan of where the stream's next bytes go: the first header to the record, payloads to the
 * program's own buffers.
 */
struct plan {
	struct planned frames[AW_RECORD_FRAMES];
	int count;
	struct iovec iov[IOVS];
	int iovs;
	size_t bytes;
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

static ssize_t take(struct reader *r, struct iovec *iov, size_t count)
{
	return aw_rx_take(r->rx, r->fd, iov, count);
}

/*
 * Notes the peer's fault, which the caller's tx half tells the peer (aw_record_end). The program's
 * negative errno.
 */
static int note_fault(struct aw_record_rx *rx, enum aw_error error)
{
	rx->verdict = error;
	return error == AW_E_MPA_CLOSED ? -ECONNRESET : -EPROTO;
}

static int fail(struct reader *r, enum aw_error error)
{
	return note_fault(r->rx, error);
}

static int look_ahead(struct reader *r, struct ahead *ahead)
{
	ahead->known = r->rx->have >= FPDU_LEN_FIELD;
	if (!ahead->known)
		return 0;
	if (!aw_frame_payload(r->rx->bytes, &ahead->payload))
		return fail(r, AW_E_MPA_FRAME);
	ahead->len = aw_frame_len(ahead->payload);
	return 0;
}

/* Checks a whole FPDU. 0: it is right, and the one that was due. */
static int check_frame(struct aw_record *record, const uint8_t *head, const struct iovec *pieces,
		       int count, const uint8_t *trailer)
{
	struct aw_record_rx *rx = &record->rx;
	enum aw_error error = AW_E_MPA_CRC;
	size_t payload;

	if (aw_frame_is_right(head, pieces, count, trailer))
		error = aw_frame_judge(head, rx->msn);
	if (error)
		return note_fault(rx, error);
	rx->msn++;
	rx->long_last = aw_frame_payload(head, &payload) && payload == AW_FRAME_PAYLOAD_MAX;
	return 0;
}

int aw_rx_check_flat(struct aw_record *record, const uint8_t *bytes, size_t payload)
{
	struct iovec piece = { (void *)(bytes + AW_FRAME_HEAD), payload };

	return check_frame(record, bytes, &piece, 1, bytes + AW_FRAME_HEAD + payload);
}

static void note_given(struct reader *r, size_t len)
{
	r->got += len;
	if (len > 0)
		r->rx->mark = AW_MARK_NONE;
}

static void give(struct reader *r, const uint8_t *bytes, size_t len)
{
	aw_cursor_put(&r->to, bytes, len);
	note_given(r, len);
}

/* Gives the program all FPDUs that are whole in the record; there is room for each of them. */
static int give_whole(struct reader *r)
{
	struct aw_record_rx *rx = r->rx;
	size_t at = 0;
	int err = 0;

	while (!err && rx->have - at >= FPDU_LEN_FIELD) {
		const uint8_t *bytes = rx->bytes + at;
		size_t payload;

		if (!aw_frame_payload(bytes, &payload))
			return fail(r, AW_E_MPA_FRAME);
		if (rx->have - at < aw_frame_len(payload))
			break;
		err = aw_rx_check_flat(r->record, bytes, payload);
		if (!err)
			give(r, bytes + AW_FRAME_HEAD, payload);
		at += aw_frame_len(payload);
	}
	memmove(rx->bytes, rx->bytes + at, rx->have - at);
	rx->have -= (uint32_t)at;
	return err;
}

/*
 * How many bytes the record may hold in all: the whole FPDUs among so many bytes have together no
 * more payload than there is room for.
 */
static size_t small_limit(const struct reader *r, const struct ahead *ahead)
{
	size_t limit = r->to.left + AW_FRAME_HEAD + FPDU_CRC_LEN;

	if (limit > SMALL)
		limit = SMALL;
	return ahead->known && ahead->len > limit ? ahead->len : limit;
}

static int read_small(struct reader *r, const struct ahead *ahead)
{
	size_t want = small_limit(r, ahead) - r->rx->have;
	struct iovec iov = { r->rx->bytes + r->rx->have, want };
	ssize_t n = take(r, &iov, 1);

	if (n < 0)
		return (int)n;
	r->drained = (size_t)n < want;
	r->rx->have += (uint32_t)n;
	return give_whole(r);
}

/* Adds an FPDU of this payload to the plan. False: the program's buffers have too many pieces. */
static bool plan_frame(struct plan *plan, struct aw_cursor *to, size_t payload)
{
	struct planned *frame = &plan->frames[plan->count];
	int most = IOVS - plan->iovs - 1;
	size_t covered;

	frame->pieces = aw_cursor_pieces(to, payload, plan->iov + plan->iovs, most, &covered);
	if (covered < payload)
		return false;
	frame->at = plan->bytes - AW_FRAME_HEAD;
	frame->payload = payload;
	frame->first = plan->iovs;
	plan->iovs += frame->pieces;
	plan->iov[plan->iovs++] = (struct iovec){
		frame->behind,
		aw_frame_trailer_len(payload) + AW_FRAME_HEAD,
	};
	plan->bytes += aw_frame_len(payload);
	plan->count++;
	aw_cursor_skip(to, payload);
	return true;
}

/*
 * Plans FPDUs that fit: the next one, whose length is known or assumed, and, when that and the last
 * one are of the greatest length, others of that length. Whole FPDUs that come instead have no more
 * payload in as many bytes: none is longer, and a shorter one costs one header and trailer more.
 */
static bool make_plan(struct reader *r, size_t payload, struct plan *plan)
{
	struct aw_cursor to = r->to;

	plan->count = 0;
	plan->iov[0] = (struct iovec){ r->rx->bytes, AW_FRAME_HEAD };
	plan->iovs = 1;
	plan->bytes = AW_FRAME_HEAD;
	if (!plan_frame(plan, &to, payload))
		return false;
	while (payload == AW_FRAME_PAYLOAD_MAX && r->rx->long_last && to.left >= payload &&
	       plan->count < AW_RECORD_FRAMES && plan_frame(plan, &to, payload))
		;
	return true;
}

/* Writes the vector without its first skip bytes to rest. The number of its pieces. */
static int behind(const struct iovec *pieces, int count, size_t skip, struct iovec *rest)
{
	int n = 0;

	for (int i = 0; i < count; i++) {
		size_t gone = skip < pieces[i].iov_len ? skip : pieces[i].iov_len;

		skip -= gone;
		if (gone == pieces[i].iov_len)
			continue;
		rest[n].iov_base = (uint8_t *)pieces[i].iov_base + gone;
		rest[n++].iov_len = pieces[i].iov_len - gone;
	}
	return n;
}

static const uint8_t *head_of(const struct reader *r, const struct plan *plan, int i)
{
	const struct planned *before;

	if (i == 0)
		return r->rx->bytes;
	before = &plan->frames[i - 1];
	return before->behind + aw_frame_trailer_len(before->payload);
}

/* True when FPDU i is whole and as long as planned; came bytes of the plan have arrived. */
static bool is_as_planned(const struct reader *r, const struct plan *plan, int i, size_t came)
{
	const struct planned *frame = &plan->frames[i];
	size_t payload;

	return came - frame->at >= aw_frame_len(frame->payload) &&
	       aw_frame_payload(head_of(r, plan, i), &payload) && payload == frame->payload;
}

/* Copies the stream's bytes from at on, which lie as planned, back to the record. */
static void keep(struct reader *r, const struct plan *plan, size_t at, size_t came)
{
	struct iovec rest[IOVS];
	struct aw_cursor from = aw_cursor_begin(rest, behind(plan->iov, plan->iovs, at, rest));

	aw_cursor_get(&from, r->rx->bytes, came - at);
	r->rx->have = (uint32_t)(came - at);
}

/*
 * Reads as planned. An FPDU is received only when all of it is there and right; its payload may
 * stand in the program's buffers before.
 */
static int read_planned(struct reader *r, const struct plan *plan)
{
	struct iovec rest[IOVS];
	int count = behind(plan->iov, plan->iovs, AW_FRAME_HEAD, rest), i;
	size_t early = r->rx->have > AW_FRAME_HEAD ? r->rx->have - AW_FRAME_HEAD : 0, came;
	struct aw_cursor to = aw_cursor_begin(rest, count);
	ssize_t n;

	aw_cursor_put(&to, r->rx->bytes + AW_FRAME_HEAD, early);
	count = behind(plan->iov, plan->iovs, r->rx->have, rest);
	n = take(r, rest, (size_t)count);
	if (n < 0)
		return (int)n;
	came = r->rx->have + (size_t)n;
	r->drained = came < plan->bytes;
	for (i = 0; i < plan->count && is_as_planned(r, plan, i, came); i++) {
		const struct planned *frame = &plan->frames[i];
		int err = check_frame(r->record, head_of(r, plan, i), plan->iov + frame->first,
				      frame->pieces, frame->behind);

		if (err)
			return err;
		aw_cursor_skip(&r->to, frame->payload);
		note_given(r, frame->payload);
	}
	keep(r, plan, i < plan->count ? plan->frames[i].at : plan->bytes - AW_FRAME_HEAD, came);
	return give_whole(r);
}

/* Holds an FPDU that is whole in the record but for, at the most, its last byte. */
static int begin_held(struct reader *r, const struct ahead *ahead)
{
	int err = aw_rx_check_flat(r->record, r->rx->bytes, ahead->payload);

	r->rx->held = !err;
	r->rx->given = 0;
	return err;
}

/* Takes all but the FPDU's last byte out of the socket; the last byte is peeked at and stays. */
static int read_held(struct reader *r, const struct ahead *ahead)
{
	size_t last = ahead->len - 1;
	bool at_last = r->rx->have == last;
	struct iovec iov = { r->rx->bytes + r->rx->have, at_last ? 1 : last - r->rx->have };
	ssize_t n = at_last ? aw_rx_recvmsg(r->fd, &iov, 1, MSG_PEEK) : take(r, &iov, 1);

	if (n < 0)
		return (int)n;
	if (!at_last) {
		r->drained = (size_t)n < iov.iov_len;
		r->rx->have += (uint32_t)n;
		return 0;
	}
	return begin_held(r, ahead);
}

static int give_held(struct reader *r, const struct ahead *ahead)
{
	size_t left = ahead->payload - r->rx->given;
	size_t len = left < r->to.left ? left : r->to.left;
	uint8_t last;

	give(r, r->rx->bytes + AW_FRAME_HEAD + r->rx->given, len);
	r->rx->given += (uint32_t)len;
	if (len < left)
		return 0;
	r->rx->held = false;
	if (r->rx->have >= ahead->len) {
		r->rx->have -= (uint32_t)ahead->len;
		memmove(r->rx->bytes, r->rx->bytes + ahead->len, r->rx->have);
		return 0;
	}
	r->rx->have = 0;
	return aw_rx_take_last(r->rx, r->fd, &last) == 1 ? 0 : fail(r, AW_E_MPA_CLOSED);
}

/*
 * True when the next FPDU fits into the program's room, and enough of it is missing to be worth a
 * call of its own. *payload is its payload, or the longest where it is not known.
 */
static bool is_for_plan(const struct reader *r, const struct ahead *ahead, size_t *payload)
{
	*payload = ahead->known ? ahead->payload : AW_FRAME_PAYLOAD_MAX;
	if (*payload > r->to.left)
		return false;
	return ahead->known ? ahead->len - r->rx->have > SMALL : r->rx->long_last;
}

/*
 * Reads when an urgent FPDU comes next. A read that has got bytes ends at the mark, as TCP's does; the
 * next read leaves the urgent byte out, or gives it.
 */
static int read_urgent(struct reader *r, const struct ahead *ahead)
{
	bool is_mark = aw_urgent_is_mark(r->rx, r->fd);

	r->at_mark = is_mark && (r->got > 0 || r->goes_on);
	if (r->at_mark)
		return 0;
	r->drained = false;
	if (is_mark && !r->rx->in_line)
		return aw_urgent_pass(r->record, r->fd);
	return ahead->payload > r->to.left ? read_held(r, ahead) : read_small(r, ahead);
}

static int read_next(struct reader *r)
{
	struct plan plan;
	struct ahead ahead;
	size_t payload;
	int err = aw_reply_take(r->record, r->fd);

	if (!err)
		err = look_ahead(r, &ahead);
	if (err)
		return err;
	if (r->rx->held)
		return give_held(r, &ahead);
	if (aw_urgent_is_front(r->rx))
		return read_urgent(r, &ahead);
	if (ahead.known && r->rx->have >= ahead.len)
		return begin_held(r, &ahead);
	if (ahead.known && ahead.payload > r->to.left)
		return read_held(r, &ahead);
	return is_for_plan(r, &ahead, &payload) && make_plan(r, payload, &plan)
		       ? read_planned(r, &plan)
		       : read_small(r, &ahead);
}

static void take_from_count(struct aw_record_count *count, size_t got)
{
	count->known &= got <= count->bytes;
	count->bytes -= count->known ? (uint32_t)got : 0;
}

/*
 * Ends a receive: the bytes or the error. An error that ends the stream is returned once, after all
 * bytes received before it; then the stream is at its end.
 */
static ssize_t finish(struct reader *r, int err)
{
	if (err == -ENODATA && r->rx->shut)
		return (ssize_t)r->got;
	if (err == -ENODATA && r->rx->have > 0 && !r->rx->held)
		err = fail(r, AW_E_MPA_CLOSED);
	if (err == 0 || err == -EAGAIN) {
		if (aw_urgent_is_front(r->rx))
			(void)aw_urgent_is_mark(r->rx, r->fd);
		aw_lowat_await(r->rx, r->fd);
	} else if (err == -ENODATA || aw_record_is_failure(err)) {
		r->rx->ended = true;
	}
	if (r->got > 0) {
		take_from_count(&r->rx->count, r->got);
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

/*
 * True when a read has more to look at. A recvmsg that ended in front of the urgent pointer gave less
 * than it was asked for, and the socket is not empty.
 */
static bool may_go_on(const struct reader *r)
{
	return !r->at_mark && (!r->drained || aw_urgent_is_front(r->rx));
}

/*
 * Takes the next FPDU out of the socket, as far as it is there. A program that counts reads no further
 * than whole FPDUs, and a part left behind would keep the whole buffer that it came in, and TCP's
 * window shut.
 */
static int take_ahead(struct reader *r)
{
	int err = 0;

	while (!err && !r->drained && !r->rx->held && !r->at_mark && !aw_urgent_is_front(r->rx))
		err = read_next(r);
	return err;
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
	while (!err && may_go_on(&r) && r.to.left > 0)
		err = read_next(&r);
	if (!err && record->rx.counted)
		err = take_ahead(&r);
	return finish(&r, err);
}

ssize_t aw_record_hold(struct aw_record *record, int fd)
{
	struct reader r = { .record = record, .rx = &record->rx, .fd = fd };
	int err = 0;

	if (record->rx.ended)
		return finish_ended(&record->rx);
	while (!err && !r.rx->held)
		err = read_next(&r);
	return r.rx->held ? 1 : finish(&r, err);
}
