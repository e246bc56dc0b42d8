// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The start-up of a record: a Request behind which the active end goes on at once, and the Reply in
// front of the peer's first FPDU.
#include "record/reply.h"

#include "record/bounce.h"
#include "record/lowat.h"
#include "record/rx.h"
#include "record/startup.h"

#include <errno.h>
#include <string.h>

static void put_rest(struct aw_record_tx *tx, bool reply, const void *data, size_t len)
{
	tx->rest = (uint32_t)aw_startup_put(tx->bytes, reply, data, len);
	tx->rest_at = 0;
}

int aw_record_initiate(struct aw_record *record, int fd, const void *data, size_t len)
{
	int err;

	aw_record_init(record);
	record->rx.reply_due = true;
	record->tx.active = true;
	put_rest(&record->tx, false, data, len);
	/*
	 * Keeps a Reply as long as the Request, with nothing behind it, from waking pollers: it is not
	 * for the program. rx.due is how many bytes of this are still to come.
	 */
	record->rx.due = record->tx.rest + 1;
	aw_lowat_set(&record->rx, fd, record->rx.due);
	err = aw_record_flush(record, fd);
	return err == -EAGAIN ? 0 : err;
}

int aw_record_take_request(int fd)
{
	struct aw_bounce *bounce = aw_bounce_take();
	const uint8_t *data;
	struct iovec iov;
	size_t used, len;
	ssize_t n;

	if (!bounce)
		return -ENOMEM;
	iov = (struct iovec){ bounce->bytes, AW_STARTUP_MAX };
	n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);
	if (n >= 0) {
		switch (aw_startup_get(bounce->bytes, (size_t)n, false, &used, &data, &len)) {
		case AW_STARTUP_MORE:
			n = -EAGAIN;
			break;
		case AW_STARTUP_WHOLE:
			iov.iov_len = used;
			n = aw_rx_recvmsg(fd, &iov, 1, 0);
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
	aw_record_init(record);
	put_rest(&record->tx, true, data, len);
	record->tx.reply = true;
}

/* 0: the whole Reply is here, and right. -EAGAIN: *want is its length as far as that is known. */
static int reply_check(struct aw_record_rx *rx, size_t *want)
{
	const uint8_t *data;
	size_t len;

	switch (aw_startup_get(rx->bytes, rx->have, true, want, &data, &len)) {
	case AW_STARTUP_MORE:
		return -EAGAIN;
	case AW_STARTUP_WHOLE:
		if (aw_record_calls.is_record(data, len))
			return 0;
		break;
	case AW_STARTUP_WRONG:
		break;
	}
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
