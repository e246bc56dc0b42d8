// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending. FPDUs are made of a copy of the program's bytes, in a bounce buffer, or small ones in the record. An FPDU goes to the kernel
// whole, so that no part of it is lost with the process: when the send buffer may be too full for one, the kernel is asked for its
// room. If the kernel takes only a part nevertheless, the rest is kept in the record and goes out before anything else.
#include "record/record.h"

#include "record/bounce.h"
#include "record/cursor.h"
#include "record/intent.h"
#include "record/sealed.h"

#include "core/setup_term.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>

/*
 * A send buffer's limit counts the kernel's own structures, too: the free room divided by this is
 * safe.
 */
#define OVERHEAD 2u
/* The kernel calls an fd writable when at least this part of the send buffer's limit is free. */
#define WRITABLE_PART 3u

struct sender {
	struct aw_record_tx *tx;
	int fd, flags;
	uint32_t asked; /* how many KeyUpdates the peer has asked for so far */
};

/* FPDUs for one call, one behind the other. */
struct batch {
	uint8_t *bytes;
	size_t len;
	int count, most;
	size_t payloads[AW_RECORD_FPDUS];
};

/*
 * True when the fd is writable. Otherwise the kernel notes that somebody waits, and epoll will
 * tell.
 */
static bool is_writable(const struct sender *s)
{
	struct pollfd pollfd = { .fd = s->fd, .events = POLLOUT };
	int ready;

	do
		ready = aw_record_calls.poll(&pollfd, 1, 0);
	while (ready < 0 && errno == EINTR);
	return ready != 0;
}

/* How many bytes the send buffer is certain to take. */
static uint32_t look_for_room(const struct sender *s)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);
	uint32_t limit = 0, queued;

	if (aw_record_calls.getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) != 0 ||
	    len < sizeof(memory)) { /* before Linux 4.12, and under qemu-user */
		len = sizeof(limit);
		if (!is_writable(s) ||
		    aw_record_calls.getsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &limit, &len) != 0)
			return 0;
		return limit / WRITABLE_PART / OVERHEAD;
	}
	limit = memory[SK_MEMINFO_SNDBUF];
	queued = memory[SK_MEMINFO_WMEM_QUEUED];
	return queued < limit ? (limit - queued) / OVERHEAD : 0;
}

/* How many of len bytes one FPDU carries. */
static size_t part_of(const struct sender *s, size_t len)
{
	size_t most = aw_frame_payload_max(&s->tx->key);

	return len < most ? len : most;
}

static size_t frame_len(const struct sender *s, size_t payload)
{
	return aw_frame_len(&s->tx->key, payload);
}

/*
 * The longest payload, at most len, whose FPDU the send buffer takes whole. 0: the fd is not
 * writable. A writable fd's buffer has a third of its limit free, so that something fits; where
 * nothing does, the writing direction is shut or has failed, which TCP's own answer tells.
 */
static size_t fitting_payload(struct sender *s, size_t len)
{
	size_t most = part_of(s, len), room;

	if (s->tx->room >= frame_len(s, most))
		return most;
	s->tx->room = look_for_room(s);
	if (s->tx->room >= frame_len(s, most))
		return most;
	if (!is_writable(s))
		return 0;
	s->tx->room = look_for_room(s);
	room = s->tx->room > frame_len(s, 4) ? (s->tx->room - frame_len(s, 0)) & ~(size_t)3 : 4;
	return most < room ? most : room;
}

static ssize_t hand_over(const struct sender *s, uint8_t *bytes, size_t len, int flags)
{
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = aw_record_calls.sendmsg(s->fd, &msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static int send_rest(const struct sender *s, int flags)
{
	flags |= s->tx->rest_urgent ? MSG_OOB : 0;
	while (s->tx->rest > 0) {
		ssize_t n;

		s->tx->intent.count = 0;
		aw_intent_open(s->tx);
		n = hand_over(s, s->tx->bytes + s->tx->rest_at, s->tx->rest, flags);
		if (n > 0) {
			s->tx->rest_at += (uint32_t)n;
			s->tx->rest -= (uint32_t)n;
		}
		aw_intent_close(s->tx, n);
		if (n < 0)
			return (int)n;
	}
	s->tx->reply = false;
	s->tx->rest_urgent = false;
	return 0;
}

size_t aw_record_room(struct aw_record *record, int fd, size_t len)
{
	struct sender s = { .tx = &record->tx, .fd = fd };

	if (!record->tx.reply && send_rest(&s, 0) == -EAGAIN)
		return 0;
	return fitting_payload(&s, len);
}

/* True when the buffer takes one more FPDU of left bytes behind len bytes. */
static bool has_room_behind(const struct sender *s, size_t len, size_t left)
{
	return s->tx->room >= len + frame_len(s, part_of(s, left));
}

/*
 * Notes that TCP took sent bytes of a batch. 0, or -EAGAIN when the end of an FPDU is left over. An
 * FPDU of which TCP took nothing was not sent.
 */
static int note_sent(struct sender *s, const struct batch *batch, struct aw_cursor *from,
		     size_t sent)
{
	size_t end = 0;

	for (int i = 0; i < batch->count; i++) {
		size_t payload = batch->payloads[i], len = aw_fpdu_len(payload);

		if (sent <= end) {
			s->tx->room = 0;
			return 0;
		}
		end += len;
		s->tx->msn++;
		s->tx->room -= s->tx->room < len ? s->tx->room : (uint32_t)len;
		aw_cursor_skip(from, payload);
		if (sent < end) {
			memmove(s->tx->bytes, batch->bytes + sent, end - sent);
			s->tx->rest_at = 0;
			s->tx->rest = (uint32_t)(end - sent);
			return -EAGAIN;
		}
	}
	return 0;
}

/* Hands a batch to TCP. 0 or a negative errno. */
static int send_batch(struct sender *s, struct batch *batch, struct aw_cursor *from, int flags)
{
	struct aw_record_intent *intent = &s->tx->intent;
	ssize_t n;
	int err;

	for (int i = 0; i < batch->count; i++)
		intent->lens[i] = (uint32_t)aw_fpdu_len(batch->payloads[i]);
	intent->count = (uint32_t)batch->count;
	aw_intent_open(s->tx);
	n = hand_over(s, batch->bytes, batch->len, flags);
	err = n < 0 ? (int)n : note_sent(s, batch, from, (size_t)n);
	s->tx->rest_urgent = flags & MSG_OOB && s->tx->rest > 0;
	aw_intent_close(s->tx, n);
	return err;
}

/* TCP may wait for more bytes only if they come in this call for certain, or if the program has said that they come. */
static int more_flags(const struct sender *s, size_t len, size_t left)
{
	if (left == 0)
		return s->flags & MSG_MORE;
	return has_room_behind(s, len, left) ? MSG_MORE : 0;
}

/* Sends one batch. 0 or a negative errno. */
static int send_next(struct sender *s, struct aw_cursor *from)
{
	struct aw_bounce *bounce = aw_fpdu_len(from->left) > AW_BOUNCE_SMALL ? aw_bounce_take()
									     : NULL;
	struct batch batch = { .bytes = bounce ? bounce->bytes : s->tx->bytes,
			       .most = bounce ? AW_RECORD_FPDUS : 1 };
	struct aw_cursor next = *from;
	size_t len = fitting_payload(s, next.left);
	int err = -EAGAIN;

	/* The batch has the FPDUs that the buffer takes whole, as far as that is known. */
	while (len > 0 && batch.count < batch.most) {
		batch.len += aw_fpdu_put(batch.bytes + batch.len, &next, len,
					 s->tx->msn + (uint32_t)batch.count + 1);
		batch.payloads[batch.count++] = len;
		len = has_room_behind(s, batch.len, next.left) ? part_of(s, next.left) : 0;
	}
	if (batch.count > 0)
		err = send_batch(s, &batch, from, more_flags(s, batch.len, next.left));
	aw_bounce_put(bounce);
	return err;
}

/* Sends the urgent byte as an FPDU of its own, to whose last byte MSG_OOB sets TCP's urgent pointer. */
static int send_urgent(struct sender *s, struct aw_cursor *from)
{
	struct batch batch = { .bytes = s->tx->bytes, .count = 1, .payloads = { 1 } };
	struct aw_cursor byte = *from;

	if (fitting_payload(s, 1) == 0)
		return -EAGAIN;
	aw_fpdu_put_urgent_head(batch.bytes, s->tx->msn + 1);
	aw_cursor_get(&byte, batch.bytes + AW_FPDU_HEAD, 1);
	batch.len = aw_fpdu_put_trailer(batch.bytes, 1);
	return send_batch(s, &batch, from, MSG_OOB);
}

/* Returns whether a KeyUpdate comes before the next FPDU (RFC 8446 4.6.3). */
static bool is_update_due(const struct sender *s)
{
	return s->tx->key.seq >= AW_KEY_RECORDS_MAX - AW_RECORD_SEALED ||
	       s->tx->answered != s->asked;
}

/*
 * Begins to seal TLS records, which become the record's rest: a KeyUpdate if one is due. The bytes so far; 0 is one of them.
 * False: the cipher has failed.
 */
static bool seal_begin(struct sender *s, size_t *at)
{
	*at = 0;
	aw_intent_seal(s->tx);
	if (!is_update_due(s))
		return true;
	s->tx->answered = s->asked;
	*at = aw_sealed_put_update(&s->tx->key, s->tx->bytes);
	return *at > 0;
}

/* len: of all that was sealed; 0: the cipher has failed, and nothing can be sent any more. */
static int seal_end(struct sender *s, size_t len)
{
	s->tx->rest_at = 0;
	s->tx->rest = (uint32_t)len;
	s->tx->ended |= len == 0;
	s->tx->notifies |= len == 0;
	aw_intent_close(s->tx, 0);
	return len ? 0 : -EIO;
}

/* Returns whether TCP takes no more bytes after err. */
static bool is_over(int err)
{
	return err == -EPIPE || aw_record_is_failure(err);
}

/* Sends the sealed records. The rest that TCP has yet to take goes with the next call: the program's bytes count as sent. */
static int send_sealed(struct sender *s, size_t len, int flags)
{
	int err = send_rest(s, flags);

	s->tx->room -= err || s->tx->room < len ? s->tx->room : (uint32_t)len;
	return err;
}

/* As send_next, under TLS. */
static int seal_next(struct sender *s, struct aw_cursor *from)
{
	struct aw_record_tx *tx = s->tx;
	struct aw_cursor next = *from;
	size_t payload = fitting_payload(s, next.left), at, len;
	int err;

	if (payload == 0)
		return -EAGAIN;
	if (!seal_begin(s, &at))
		return seal_end(s, 0);
	while (payload > 0 && at + frame_len(s, payload) <= sizeof(tx->bytes)) {
		len = aw_sealed_put(&tx->key, tx->bytes + at, &next, payload, tx->msn + 1);
		if (len == 0)
			return seal_end(s, 0);
		at += len;
		tx->msn++;
		payload = next.left && has_room_behind(s, at, next.left) ? part_of(s, next.left)
									 : 0;
	}
	(void)seal_end(s, at);
	err = send_sealed(s, at, more_flags(s, at, next.left));
	if (!is_over(err))
		*from = next;
	return err;
}

/* As send_urgent, under TLS. */
static int seal_urgent(struct sender *s, struct aw_cursor *from)
{
	struct aw_cursor byte = *from;
	size_t at, len;
	uint8_t octet;
	int err;

	if (fitting_payload(s, 1) == 0)
		return -EAGAIN;
	aw_cursor_get(&byte, &octet, 1);
	if (!seal_begin(s, &at))
		return seal_end(s, 0);
	len = aw_sealed_put_urgent(&s->tx->key, s->tx->bytes + at, octet, s->tx->msn + 1);
	if (len == 0)
		return seal_end(s, 0);
	s->tx->msn++;
	s->tx->rest_urgent = true;
	(void)seal_end(s, at + len);
	err = send_sealed(s, at + len, 0);
	if (!is_over(err))
		*from = byte;
	return err;
}

/* Seals and sends the last record of the stream: close_notify, or one that tells of a fault. */
static int seal_last(struct sender *s, bool fails, enum aw_error error)
{
	struct aw_record_tx *tx = s->tx;
	size_t len;

	aw_intent_seal(tx);
	if (!fails)
		len = aw_sealed_put_alert(&tx->key, tx->bytes, AW_TLS_CLOSE_NOTIFY);
	else if (error == AW_E_MPA_CRC)
		len = aw_sealed_put_alert(&tx->key, tx->bytes, AW_TLS_BAD_RECORD_MAC);
	else if (error == AW_E_MPA_FRAME)
		len = aw_sealed_put_alert(&tx->key, tx->bytes, AW_TLS_UNEXPECTED_MESSAGE);
	else
		len = aw_sealed_put_terminate(&tx->key, tx->bytes, error);
	tx->notifies = true;
	return seal_end(s, len) ? -EIO : send_rest(s, 0);
}

int aw_record_finish(struct aw_record *record, int fd)
{
	struct sender s = { .tx = &record->tx, .fd = fd };
	int err;

	if (!aw_key_is_on(&record->tx.key))
		return aw_record_flush(record, fd);
	/* A Reply, whose number is before the alert's, goes out as well. */
	err = send_rest(&s, 0);
	if (!err && !record->tx.notifies)
		err = seal_last(&s, false, AW_OK);
	return err;
}

int aw_record_flush(struct aw_record *record, int fd)
{
	struct sender s = { .tx = &record->tx, .fd = fd };
	int err = 0;

	if (record->tx.fin_due && !record->tx.notifies && aw_key_is_on(&record->tx.key))
		err = aw_record_finish(record, fd);
	else if (!record->tx.reply)
		err = send_rest(&s, 0);
	if (err == 0 && record->tx.fin_due) {
		record->tx.fin_due = false;
		(void)aw_record_calls.shutdown(fd, SHUT_WR);
	}
	return err;
}

bool aw_record_is_failure(ssize_t err)
{
	return err == -ECONNRESET || err == -ETIMEDOUT || err == -ECONNABORTED ||
	       err == -EHOSTUNREACH || err == -ENETUNREACH || err == -EPROTO;
}

ssize_t aw_record_send(struct aw_record *record, int fd, const struct iovec *iov, int count,
		       int flags)
{
	struct sender s = {
		.tx = &record->tx,
		.fd = fd,
		.flags = flags,
	};
	struct aw_cursor from = aw_cursor_begin(iov, count);
	size_t len = from.left, urgent = flags & MSG_OOB && len > 0;
	int failed = record->tx.error;
	bool sealed = aw_key_is_on(&record->tx.key);
	/* The FPDU follows a Reply at once: an empty buffer has room for both. */
	int err = send_rest(&s, record->tx.reply ? MSG_MORE : 0);

	record->tx.error = 0;
	if (failed)
		return -failed;
	if (record->tx.ended || record->tx.notifies)
		return -EPIPE;
	s.asked = sealed ? atomic_load(&record->rx.asked) : 0;
	from.left -= urgent;
	while (!err && from.left > 0)
		err = sealed ? seal_next(&s, &from) : send_next(&s, &from);
	from.left += urgent;
	if (!err && urgent)
		err = sealed ? seal_urgent(&s, &from) : send_urgent(&s, &from);
	if (from.left == len)
		return err;
	record->tx.error = aw_record_is_failure(err) ? -err : 0;
	return (ssize_t)(len - from.left);
}

static void tell_fault(struct sender *s, enum aw_error error)
{
	uint8_t bytes[AW_SETUP_TERM_MAX];

	if (send_rest(s, 0) != 0)
		return;
	if (!aw_key_is_on(&s->tx->key))
		(void)hand_over(s, bytes, aw_setup_term(error, false, bytes), 0);
	else if (!s->tx->notifies)
		(void)seal_last(s, true, error);
}

void aw_record_end(struct aw_record *record, int fd)
{
	struct sender s = { .tx = &record->tx, .fd = fd };

	if (record->tx.ended)
		return;
	record->tx.ended = true;
	if (record->rx.fault != AW_E_MPA_CLOSED)
		tell_fault(&s, record->rx.fault);
	aw_record_calls.shutdown(fd, SHUT_RDWR);
}
