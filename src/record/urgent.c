// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Urgent bytes (MSG_OOB, SIOCATMARK). The kernel knows where the urgent pointer is; the FPDU whose last
// byte is there carries the program's urgent byte. SO_OOBINLINE must not be off while the urgent pointer
// is at the socket's next byte: the kernel would drop that byte when another urgent one comes.
#include "record/urgent.h"

#include "record/bounce.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/rx.h"
#include "record/sealed.h"

#include "wire/fpdu.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define LOOK 65536u /* bytes of a bounce buffer that all looks fill, one after the other */
#define TRIES 8 /* as long as later urgent bytes come */

#define FRONT_MAX (AW_SEALED_URGENT - 1)

/* The bytes in front of the urgent pointer. */
struct found {
	size_t ahead; /* their number */
	bool right; /* they end with an urgent FPDU's front */
	uint8_t byte; /* the payload of that FPDU */
};

bool aw_urgent_is_at_pointer(int fd)
{
	int answer = 0;

	return aw_record_calls.ioctl(fd, SIOCATMARK, &answer) == 0 && answer;
}

bool aw_urgent_is_mark(struct aw_record_rx *rx, int fd)
{
	if (!aw_urgent_is_at_pointer(fd))
		return false;
	rx->mark = AW_MARK_FRONT;
	return true;
}

/* Takes the FPDU's last byte out of the socket, and the FPDU out of the stream. */
static int take_last(struct aw_record *record, int fd, enum aw_mark mark)
{
	struct aw_record_rx *rx = &record->rx;
	const struct aw_frame frame = { aw_key_is_on(&rx->key) ? AW_FRAME_URGENT : AW_FRAME_DATA,
					aw_urgent_front(rx) + 1, 1 };
	ssize_t n = aw_rx_take_last(rx, fd, rx->bytes + frame.len - 1);
	int err = n < 0 ? (int)n : aw_rx_check(record, rx->bytes, &frame);

	if (err)
		return err;
	rx->have = 0;
	rx->mark = mark;
	return 0;
}

int aw_urgent_pass(struct aw_record *record, int fd)
{
	aw_lowat_set(&record->rx, fd, 1 + aw_lowat_bytes(&record->rx.key, 1));
	if (aw_rx_is_ready(fd, POLLPRI) && !aw_rx_is_ready(fd, POLLIN))
		return -EAGAIN;
	return take_last(record, fd, AW_MARK_NONE);
}

void aw_urgent_renew(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;
	int err;

	switch (rx->mark) {
	case AW_MARK_NONE:
		break;
	case AW_MARK_FRONT:
		if (aw_urgent_is_at_pointer(fd))
			return;
		/* A later urgent byte has overtaken this one: TCP takes it out of the stream, unless it is in line. */
		rx->mark = AW_MARK_NONE;
		err = rx->in_line ? 0 : take_last(record, fd, AW_MARK_NONE);
		if (err && err != -EAGAIN) {
			rx->ended = true;
			rx->error = -err;
		}
		break;
	case AW_MARK_BEHIND:
		if (aw_rx_is_ready(fd, POLLPRI) || aw_urgent_is_at_pointer(fd))
			rx->mark = AW_MARK_NONE;
		break;
	}
}

/* True when the program is at the mark. A front that comes next is then in the record, not in the socket. */
static bool reach_mark(struct aw_record *record, int fd)
{
	struct aw_record_rx *rx = &record->rx;

	if (rx->ended || aw_reply_take(record, fd) != 0)
		return false;
	aw_rx_pass_updates(record, fd);
	if (!rx->held && rx->have < aw_urgent_front(rx)) {
		struct iovec iov = { rx->bytes + rx->have, aw_urgent_front(rx) - rx->have };
		ssize_t n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);

		if (n == (ssize_t)iov.iov_len && aw_frame_is_urgent(&rx->key, rx->bytes)) {
			n = aw_rx_take(rx, fd, &iov, 1);
			rx->have += n > 0 ? (uint32_t)n : 0;
		}
	}
	if (!aw_urgent_is_front(rx) || !aw_urgent_is_mark(rx, fd))
		return false;
	aw_lowat_await(rx, fd);
	return true;
}

bool aw_record_is_at_mark(struct aw_record *record, int fd)
{
	aw_urgent_renew(record, fd);
	return record->rx.mark != AW_MARK_NONE || reach_mark(record, fd);
}

/* Calls recv(MSG_OOB) with SO_OOBINLINE off. 1, or a negative errno; *last is the FPDU's last byte. */
static ssize_t ask_kernel(int fd, int flags, uint8_t *last)
{
	int off = 0, on = 1;
	struct iovec iov = { last, 1 };
	ssize_t n;

	aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &off, sizeof(off));
	n = aw_rx_recvmsg(fd, &iov, 1, MSG_OOB | flags);
	aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	return n;
}

/* Returns whether this is the front of an urgent FPDU, its CRC right as far as it goes; *byte is its payload. */
static bool is_right(const uint8_t *front, uint8_t *byte)
{
	uint8_t fpdu[AW_FPDU_HEAD + 1 + AW_FPDU_TRAILER_MAX];
	size_t len;

	if (!aw_fpdu_is_urgent(front))
		return false;
	memcpy(fpdu, front, AW_FPDU_HEAD + 1);
	*byte = front[AW_FPDU_HEAD];
	len = aw_fpdu_put_trailer(fpdu, 1);
	return memcmp(fpdu, front, len - 1) == 0;
}

/* The same under TLS: the last byte is needed, too. */
static bool is_sealed_right(struct aw_record_key key, const uint8_t *front, uint8_t last,
			    uint32_t msn, uint8_t *byte)
{
	uint8_t bytes[AW_SEALED_URGENT];
	struct aw_sealed_message message;
	struct aw_frame frame;

	memcpy(bytes, front, sizeof(bytes) - 1);
	bytes[sizeof(bytes) - 1] = last;
	if (!aw_sealed_read(bytes, &frame) || frame.kind != AW_FRAME_URGENT ||
	    aw_sealed_open(&key, bytes, &frame, msn, &message) != AW_OK)
		return false;
	*byte = bytes[AW_SEALED_HEAD];
	return true;
}

/*
 * Goes over the frames of the record's own bytes and of those ahead, which are in front of the urgent pointer; the front is left. Their number
 * has to be known so that the front can be opened. False: they end elsewhere.
 */
static bool walk_to_front(const struct aw_record_rx *rx, uint8_t *bytes, size_t len,
			  struct aw_record_key *key, uint32_t *msn)
{
	struct aw_sealed_message message;
	struct aw_frame frame;
	size_t at = 0;

	while (len - at != aw_urgent_front(rx)) {
		bool held = rx->held && at == 0;

		if (len - at < AW_AEAD_HEAD || !aw_sealed_read(bytes + at, &frame) ||
		    len - at < frame.len)
			return false;
		if (frame.kind == AW_FRAME_UPDATE) {
			if (aw_sealed_open(key, bytes + at, &frame, *msn, &message) != AW_OK)
				return false;
		} else if (!held) {
			key->seq++;
			(*msn)++;
		}
		at += frame.len;
	}
	memmove(bytes, bytes + at, len - at);
	return true;
}

/* As found_look, under TLS. */
static int found_look_sealed(const struct aw_record_rx *rx, int fd, uint8_t last,
			     struct found *found)
{
	size_t have = rx->have, room = have + aw_rx_queued(fd);
	uint8_t *bytes =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { bytes + have, room - have };
	struct aw_record_key key = rx->key;
	uint32_t msn = rx->msn;
	ssize_t n;

	if (bytes == MAP_FAILED)
		return -ENOMEM;
	memcpy(bytes, rx->bytes, have);
	n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);
	if (n >= 0) {
		*found = (struct found){ .ahead = (size_t)n };
		found->right = walk_to_front(rx, bytes, have + (size_t)n, &key, &msn) &&
			       is_sealed_right(key, bytes, last, msn, &found->byte);
	}
	munmap(bytes, room);
	if (n < 0)
		return n == -ENODATA ? -EAGAIN : (int)n;
	return 0;
}

/* Looks at the bytes in front of the urgent pointer, at which last is. 0, or a negative errno. */
static int found_look(const struct aw_record *record, int fd, uint8_t last, struct found *found)
{
	const struct aw_record_rx *rx = &record->rx;
	size_t len = aw_urgent_front(rx);
	struct aw_bounce *bounce;
	uint8_t front[FRONT_MAX];
	ssize_t n;

	if (aw_key_is_on(&rx->key))
		return found_look_sealed(rx, fd, last, found);
	bounce = aw_bounce_take();
	if (!bounce)
		return -ENOMEM;
	for (size_t i = 0; i < AW_BOUNCE_PIECES; i++)
		bounce->pieces[i] = (struct iovec){ bounce->bytes, LOOK };
	n = aw_rx_recvmsg(fd, bounce->pieces, AW_BOUNCE_PIECES, MSG_PEEK);
	if (n >= 0)
		*found = (struct found){ .ahead = (size_t)n };
	if (n >= 0 && rx->have + found->ahead >= len) {
		/* The last of the record's own bytes, and those ahead, which have filled the buffer again and again. */
		for (size_t i = 0; i < len; i++) {
			size_t back = len - i;

			front[i] = found->ahead >= back
					   ? bounce->bytes[(found->ahead - back) % LOOK]
					   : rx->bytes[rx->have + found->ahead - back];
		}
		found->right = is_right(front, &found->byte);
	}
	aw_bounce_put(bounce);
	if (n < 0)
		return n == -ENODATA ? -EAGAIN : (int)n;
	return 0;
}

/* Receives the kernel's urgent byte, at which the program does not stand. */
static ssize_t search_urgent(struct aw_record *record, int fd, uint8_t last, uint8_t *byte,
			     int flags)
{
	size_t came = aw_rx_queued(fd), ahead;
	struct found found;

	if (found_look(record, fd, last, &found) != 0)
		return -EAGAIN;
	if (!found.right) {
		/* The pointer is at no urgent FPDU's end, and poll would tell of it for ever. */
		if (found.ahead < came)
			(void)ask_kernel(fd, 0, &last);
		return -EAGAIN;
	}
	if (flags & MSG_PEEK) {
		*byte = found.byte;
		return 1;
	}

	/*
	 * The kernel notes that the urgent byte was received. If a later one has come meanwhile, the kernel has noted that one, and the
	 * earlier one is overtaken.
	 */
	for (int tries = 0; tries < TRIES; tries++) {
		ahead = found.ahead;
		(void)ask_kernel(fd, 0, &last);
		if (found_look(record, fd, last, &found) != 0 || !found.right)
			return -EAGAIN;
		*byte = found.byte;
		if (found.ahead == ahead)
			return 1;
	}
	return 1;
}

/* Looks at the urgent byte at which the program stands: its FPDU's last byte is the socket's next. */
static bool is_front_right(const struct aw_record_rx *rx, int fd, uint8_t *byte)
{
	uint8_t last;
	struct iovec iov = { &last, 1 };

	if (!aw_key_is_on(&rx->key))
		return is_right(rx->bytes, byte);
	return aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK) == 1 &&
	       is_sealed_right(rx->key, rx->bytes, last, rx->msn, byte);
}

/* Receives the urgent byte at which the program stands: it is in the record. */
static ssize_t give_front(struct aw_record *record, int fd, uint8_t *byte, int flags)
{
	struct aw_record_rx *rx = &record->rx;
	int err;

	if (!aw_rx_queued(fd))
		return -EAGAIN;
	if (!aw_rx_is_ready(fd, POLLPRI))
		return -EINVAL;
	if (flags & MSG_PEEK)
		return is_front_right(rx, fd, byte) ? 1 : -EAGAIN;
	err = take_last(record, fd, AW_MARK_BEHIND);
	if (err) {
		rx->ended = true;
		return err;
	}
	*byte = rx->bytes[aw_frame_head(&rx->key)];
	aw_lowat_await(rx, fd);
	return 1;
}

/*
 * Passes an urgent pointer that is at the socket's next byte, and at no urgent FPDU's end. That byte
 * moves to the record, unless it makes an FPDU whole and so the fd readable.
 */
static void pass_false_mark(struct aw_record_rx *rx, int fd)
{
	struct iovec iov = { rx->bytes + rx->have, 1 };
	struct aw_frame frame;

	if (rx->reply_due || rx->held)
		return;
	if (rx->have >= aw_frame_field(&rx->key) &&
	    (!aw_frame_read(&rx->key, rx->bytes, &frame) || rx->have + 1 >= frame.len))
		return;
	if (aw_rx_take(rx, fd, &iov, 1) != 1)
		return;
	rx->have++;
	aw_lowat_await(rx, fd);
}

ssize_t aw_record_receive_urgent(struct aw_record *record, int fd, uint8_t *byte, int flags)
{
	struct aw_record_rx *rx = &record->rx;
	uint8_t last = 0;
	ssize_t n;

	aw_urgent_renew(record, fd);
	if (rx->in_line || rx->ended)
		return -EINVAL;
	(void)reach_mark(record, fd);
	if (aw_urgent_is_at_pointer(fd)) {
		if (aw_urgent_is_front(rx))
			return give_front(record, fd, byte, flags);
		pass_false_mark(rx, fd);
		return -EINVAL;
	}
	if (aw_urgent_is_front(rx) && !aw_rx_queued(fd))
		return -EAGAIN; /* the urgent pointer may be at the byte that comes next */
	n = ask_kernel(fd, MSG_PEEK, &last);
	if (n == -ENODATA)
		return 0;
	return n < 0 ? n : search_urgent(record, fd, last, byte, flags);
}
