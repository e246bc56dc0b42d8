// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending. An FPDU goes to the kernel whole, so that nothing of it is lost with the process: before the send
// buffer could be too full for one, it is asked for its room. What the kernel takes in part nevertheless leaves its
// end in the record, which goes out before anything else.
#include "record/record.h"

#include "record/cursor.h"

#include "wire/crc32c.h"
#include "wire/octets.h"
#include "wire/rdmap.h"
#include "wire/term.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>

#define PIECES 14
/* The longest payload sent. Two make the 64 KiB that programs like to write; measured, docs/performance.md. */
#define PAYLOAD_MAX 32768u
/* A send buffer's limit counts the kernel's own structures, too: so many times the bytes are safe. */
#define OVERHEAD 2u

#define TERMINATE_LEN (FPDU_LEN_FIELD + DDP_UNTAGGED_LEN + TERM_CTRL_LEN + FPDU_CRC_LEN)

struct sender {
	struct aw_record_tx *tx;
	const struct aw_record_calls *calls;
	aw_frame_crc_fn *crc;
	int fd, flags;
};

/* How many bytes the send buffer takes for certain. */
static uint32_t look_for_room(const struct sender *s)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(memory);
	uint32_t limit, queued;

	if (s->calls->getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) != 0)
		return 0;
	limit = memory[SK_MEMINFO_SNDBUF];
	queued = memory[SK_MEMINFO_WMEM_QUEUED];
	return queued < limit ? (limit - queued) / OVERHEAD : 0;
}

/* The fd was not writable for an FPDU: from here on the kernel notes that somebody waits, and epoll will tell. */
static bool is_writable(const struct sender *s)
{
	struct pollfd pollfd = { .fd = s->fd, .events = POLLOUT };

	return s->calls->poll(&pollfd, 1, 0) != 0;
}

/*
 * The longest payload, at most len, whose FPDU is taken whole. 0: the fd is not writable. A writable fd's buffer has a
 * third of its limit free, so that something fits.
 */
static size_t fit(struct sender *s, size_t len)
{
	size_t most = len < PAYLOAD_MAX ? len : PAYLOAD_MAX;
	size_t room;

	if (s->tx->room >= aw_frame_len(most))
		return most;
	s->tx->room = look_for_room(s);
	if (s->tx->room >= aw_frame_len(most))
		return most;
	if (!is_writable(s))
		return 0;
	s->tx->room = look_for_room(s);
	room = s->tx->room > aw_frame_len(4) ? (s->tx->room - aw_frame_len(0)) & ~(size_t)3 : 0;
	return most < room ? most : room;
}

static ssize_t hand_over(const struct sender *s, struct iovec *iov, int count, int flags)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)count };
	ssize_t n = s->calls->sendmsg(s->fd, &msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

	return n < 0 ? -errno : n;
}

static int send_rest(const struct sender *s, int flags)
{
	while (s->tx->rest > 0) {
		struct iovec iov = { s->tx->bytes + s->tx->rest_at, s->tx->rest };
		ssize_t n = hand_over(s, &iov, 1, flags);

		if (n < 0)
			return (int)n;
		s->tx->rest_at += (uint32_t)n;
		s->tx->rest -= (uint32_t)n;
	}
	s->tx->reply = false;
	return 0;
}

int aw_record_flush(struct aw_record *record, const struct aw_record_calls *calls, int fd)
{
	struct sender s = { .tx = &record->tx, .calls = calls, .fd = fd };

	return record->tx.reply ? 0 : send_rest(&s, 0);
}

/* The bytes of iov behind the first skip ones. */
static void keep_rest(struct aw_record_tx *tx, const struct iovec *iov, int count, size_t skip)
{
	tx->rest_at = 0;
	tx->rest = 0;
	for (int i = 0; i < count; i++) {
		size_t gone = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= gone;
		memcpy(tx->bytes + tx->rest, (const uint8_t *)iov[i].iov_base + gone,
		       iov[i].iov_len - gone);
		tx->rest += (uint32_t)(iov[i].iov_len - gone);
	}
}

/* One FPDU of the next len bytes. 0 or a negative errno; then nothing was sent. */
static int send_frame(struct sender *s, const struct aw_cursor *from, size_t len, int flags)
{
	uint8_t head[AW_FRAME_HEAD], trailer[AW_FRAME_TRAILER_MAX];
	struct iovec iov[PIECES + 2] = { { head, sizeof(head) } };
	size_t covered;
	int count = aw_cursor_pieces(from, len, iov + 1, PIECES, &covered);
	ssize_t n;

	aw_frame_put_head(head, len, s->tx->msn + 1);
	iov[count + 1].iov_base = trailer;
	iov[count + 1].iov_len = aw_frame_put_trailer(trailer, head, iov + 1, count, s->crc);
	n = hand_over(s, iov, count + 2, flags);
	if (n < 0)
		return (int)n;
	s->tx->msn++;
	s->tx->room -= s->tx->room < aw_frame_len(len) ? s->tx->room : (uint32_t)aw_frame_len(len);
	keep_rest(s->tx, iov, count + 2, (size_t)n);
	return 0;
}

/* As much of len as PIECES pieces hold. */
static size_t within_pieces(const struct aw_cursor *from, size_t len)
{
	struct iovec pieces[PIECES];
	size_t covered;

	aw_cursor_pieces(from, len, pieces, PIECES, &covered);
	return covered;
}

/* TCP may wait for more bytes only if they come in this call for certain, or if the program has said that they come. */
static int wait_for_more(const struct sender *s, size_t len, size_t left)
{
	size_t next = left - len < PAYLOAD_MAX ? left - len : PAYLOAD_MAX;

	if (left == len)
		return s->flags & MSG_MORE;
	return s->tx->room >= aw_frame_len(len) + aw_frame_len(next) ? MSG_MORE : 0;
}

static int send_next(struct sender *s, struct aw_cursor *from)
{
	size_t len = within_pieces(from, fit(s, from->left));
	int err;

	if (len == 0)
		return -EAGAIN;
	err = send_frame(s, from, len, wait_for_more(s, len, from->left));
	if (err)
		return err;
	aw_cursor_skip(from, len);
	return s->tx->rest ? -EAGAIN : 0;
}

ssize_t aw_record_send(struct aw_record *record, const struct aw_record_calls *calls, int fd,
		       const struct iovec *iov, int count, int flags)
{
	struct sender s = {
		.tx = &record->tx,
		.calls = calls,
		.crc = record->crc ? calls->crc : NULL,
		.fd = fd,
		.flags = flags,
	};
	struct aw_cursor from = aw_cursor_begin(iov, count);
	size_t len = from.left;
	/* The FPDU follows at once: an empty buffer has room for both. */
	int err = send_rest(&s, record->tx.reply ? MSG_MORE : 0);

	if (record->tx.ended)
		return -EPIPE;
	while (!err && from.left > 0)
		err = send_next(&s, &from);
	return from.left < len || !err ? (ssize_t)(len - from.left) : err;
}

static size_t build_terminate(const struct aw_record *record, const struct aw_record_calls *calls,
			      enum aw_error error, uint8_t *bytes)
{
	const struct ddp_hdr ddp = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
		.qn = DDP_QN_TERMINATE,
		.msn = 1,
	};
	size_t at = FPDU_LEN_FIELD;
	uint32_t crc;

	at += ddp_put(&ddp, bytes + at);
	at += term_put(&(struct term_msg){ .error = error }, bytes + at);
	put_be16(bytes, (uint16_t)(at - FPDU_LEN_FIELD));
	crc = record->crc ? crc32c_final(calls->crc(CRC32C_INIT, bytes, at)) : 0;
	put_le32(bytes + at, crc);
	return at + FPDU_CRC_LEN;
}

void aw_record_end(struct aw_record *record, const struct aw_record_calls *calls, int fd)
{
	struct sender s = { .tx = &record->tx, .calls = calls, .fd = fd };
	enum aw_error error = record->rx.verdict;
	uint8_t bytes[TERMINATE_LEN];
	struct iovec iov = { bytes, 0 };

	if (record->tx.ended)
		return;
	record->tx.ended = true;
	if (error != AW_E_MPA_CLOSED && send_rest(&s, 0) == 0) {
		iov.iov_len = build_terminate(record, calls, error, bytes);
		hand_over(&s, &iov, 1, 0);
	}
	calls->shutdown(fd, SHUT_RDWR);
}
