// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The start-up of a record: a Request behind which the active end goes on at once, and the Reply in
// front of the peer's first FPDU.
#include "record/reply.h"

#include "record/bounce.h"
#include "record/lowat.h"
#include "record/rx.h"
#include "record/sealed.h"
#include "record/startup.h"

#include <errno.h>
#include <string.h>

/* False: the cipher has failed. */
static bool put_rest(struct aw_record_tx *tx, bool reply, const void *data, size_t len)
{
	bool sealed = aw_key_is_on(&tx->key);
	size_t frame = aw_startup_put(tx->bytes + (sealed ? AW_AEAD_HEAD : 0), reply, data, len);

	if (sealed)
		frame = aw_sealed_put_startup(&tx->key, tx->bytes, frame);
	tx->rest = (uint32_t)frame;
	tx->rest_at = 0;
	return frame > 0;
}

int aw_record_initiate(struct aw_record *record, int fd, const void *data, size_t len)
{
	int err;

	record->rx.reply_due = true;
	record->tx.active = true;
	if (!put_rest(&record->tx, false, data, len))
		return -EIO;
	/*
	 * Keeps a Reply as long as the Request, with nothing behind it, from waking pollers: it is not
	 * for the program. rx.due is how many bytes of this are still to come.
	 */
	record->rx.due = record->tx.rest + 1;
	aw_lowat_set(&record->rx, fd, record->rx.due);
	err = aw_record_flush(record, fd);
	return err == -EAGAIN ? 0 : err;
}

/*
 * Judges the frame of start-up at the beginning of have bytes, which are opened where they are; the key goes on where it is whole. *used,
 * unless it is WRONG: its bytes in TCP's stream, as far as they are known.
 */
static enum aw_startup judge(struct aw_record_key *key, uint8_t *bytes, size_t have, bool reply,
			     size_t *used)
{
	struct aw_record_key next = *key;
	enum aw_startup result;
	const uint8_t *data;
	size_t content, frame, len;

	if (!aw_key_is_on(key)) {
		result = aw_startup_get(bytes, have, reply, used, &data, &len);
	} else {
		*used = AW_AEAD_HEAD;
		if (have < AW_AEAD_HEAD)
			return AW_STARTUP_MORE;
		if (!aw_sealed_startup_len(bytes, used))
			return AW_STARTUP_WRONG;
		if (have < *used)
			return AW_STARTUP_MORE;
		if (*used == AW_SEALED_ALERT ||
		    !aw_sealed_open_startup(&next, bytes, *used, &content))
			return AW_STARTUP_WRONG;
		result = aw_startup_get(bytes + AW_AEAD_HEAD, content, reply, &frame, &data, &len);
		if (result != AW_STARTUP_WHOLE || frame != content ||
		    !aw_record_calls.is_record(data, len, true))
			return AW_STARTUP_WRONG;
		*key = next;
		return AW_STARTUP_WHOLE;
	}
	if (result == AW_STARTUP_WHOLE && reply && !aw_record_calls.is_record(data, len, false))
		result = AW_STARTUP_WRONG;
	return result;
}

int aw_record_take_request(struct aw_record *record, int fd)
{
	struct aw_bounce *bounce = aw_bounce_take();
	struct aw_record_key next = record->rx.key;
	struct iovec iov;
	size_t used;
	ssize_t n;

	if (!bounce)
		return -ENOMEM;
	iov = (struct iovec){ bounce->bytes, AW_STARTUP_SEALED_MAX };
	n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);
	if (n >= 0) {
		switch (judge(&next, bounce->bytes, (size_t)n, false, &used)) {
		case AW_STARTUP_MORE:
			n = -EAGAIN;
			break;
		case AW_STARTUP_WHOLE:
			iov.iov_len = used;
			n = aw_rx_recvmsg(fd, &iov, 1, 0);
			record->rx.key.seq = next.seq;
			break;
		case AW_STARTUP_WRONG:
			n = -EPROTO;
			break;
		}
	}
	aw_bounce_put(bounce);
	return n < 0 ? (int)n : 0;
}

int aw_record_answer(struct aw_record *record, int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLRDHUP };
	int err;

	if (aw_record_calls.poll(&pollfd, 1, 0) > 0)
		return 0;
	record->tx.reply = false;
	err = aw_record_flush(record, fd);
	return err == -EAGAIN ? 0 : err;
}

bool aw_record_take_answer(struct aw_record *record, int fd)
{
	/* An error that the kernel has is the program's: no call that could take it is made without bytes. */
	return !record->rx.reply_due || (aw_rx_queued(fd) > 0 && aw_reply_take(record, fd) == 0);
}

void aw_record_give_up(struct aw_record *record)
{
	record->rx.reply_due = false;
	record->rx.ended = true;
}

void aw_record_respond(struct aw_record *record, const void *data, size_t len)
{
	record->tx.reply = put_rest(&record->tx, true, data, len);
}

/* Notes an alert that has come in the Reply's place: the peer refuses what this end has shown of itself. */
static void note_refusal(struct aw_record_rx *rx)
{
	struct aw_sealed_message message;
	struct aw_frame frame;

	if (rx->have == AW_SEALED_ALERT && aw_sealed_read(rx->bytes, &frame) &&
	    aw_sealed_open(&rx->key, rx->bytes, &frame, rx->msn, &message) == AW_OK)
		rx->alert = message.alert;
}

/* 0: the whole Reply is here, and right. -EAGAIN: *want is its length as far as that is known. */
static int reply_check(struct aw_record_rx *rx, size_t *want)
{
	switch (judge(&rx->key, rx->bytes, rx->have, true, want)) {
	case AW_STARTUP_MORE:
		return -EAGAIN;
	case AW_STARTUP_WHOLE:
		return 0;
	case AW_STARTUP_WRONG:
		break;
	}
	if (aw_key_is_on(&rx->key))
		note_refusal(rx);
	rx->fault = AW_E_MPA_CLOSED; /* no stream has begun in which a Terminate could be sent */
	return -EPROTO;
}

int aw_reply_take(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	size_t want;
	int err;

	while (rx->reply_due) {
		struct iovec iov;
		ssize_t n;

		err = reply_check(rx, &want);
		if (!err) {
			rx->reply_due = false;
			rx->have = 0;
			aw_lowat_await(rx, fd); /* a caller that only looks leaves it so */
			return 0;
		}
		if (err != -EAGAIN)
			return err;
		iov = (struct iovec){ rx->bytes + rx->have, want - rx->have };
		n = aw_rx_take(rx, fd, &iov, 1);
		if (n < 0)
			return (int)n;
		rx->have += (uint32_t)n;
		rx->due -= (size_t)n < rx->due ? (uint32_t)n : rx->due - 1;
	}
	return 0;
}
