// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Urgent bytes (MSG_OOB, SIOCATMARK). The kernel knows where the urgent pointer is; the FPDU whose last
// byte is there carries the program's urgent byte. SO_OOBINLINE must not be off while the urgent pointer
// is at the socket's next byte: the kernel would drop that byte when another urgent one comes.
#include "record/urgent.h"

#include "record/bounce.h"
#include "record/lowat.h"
#include "record/reply.h"
#include "record/rx.h"

#include "wire/fpdu.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define LOOK 65536u /* bytes of a bounce buffer that all looks fill, one after the other */
#define TRIES 8 /* as long as later urgent bytes come */

_Static_assert(AW_URGENT_LEN == AW_FPDU_HEAD + 1 + 3 + FPDU_CRC_LEN, "one byte, three of pad");

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
	ssize_t n = aw_rx_take_last(rx, fd, rx->bytes + AW_URGENT_FRONT);
	int err = n < 0 ? (int)n : aw_rx_check(record, rx->bytes, 1);

	if (err)
		return err;
	rx->have = 0;
	rx->mark = mark;
	return 0;
}

int aw_urgent_pass(struct aw_record *record, int fd)
{
	aw_lowat_set(&record->rx, fd, 1 + aw_lowat_bytes(1));
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
	if (!rx->held && rx->have < AW_URGENT_FRONT) {
		struct iovec iov = { rx->bytes + rx->have, AW_URGENT_FRONT - rx->have };
		ssize_t n = aw_rx_recvmsg(fd, &iov, 1, MSG_PEEK);

		if (n == (ssize_t)iov.iov_len && aw_fpdu_is_urgent(rx->bytes)) {
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

/* Calls recv(MSG_OOB) with SO_OOBINLINE off. 1, or a negative errno; the byte is the FPDU's last. */
static ssize_t ask_kernel(int fd, int flags)
{
	int off = 0, on = 1;
	uint8_t last;
	struct iovec iov = { &last, 1 };
	ssize_t n;

	aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &off, sizeof(off));
	n = aw_rx_recvmsg(fd, &iov, 1, MSG_OOB | flags);
	aw_record_calls.setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	return n;
}

/* True when this is the front of an urgent FPDU, its CRC right as far as it goes. */
static bool is_right(const uint8_t *front)
{
	uint8_t fpdu[AW_URGENT_LEN];

	if (!aw_fpdu_is_urgent(front))
		return false;
	memcpy(fpdu, front, AW_FPDU_HEAD + 1);
	aw_fpdu_put_trailer(fpdu, 1);
	return memcmp(fpdu, front, AW_URGENT_FRONT) == 0;
}

/* Looks at the bytes in front of the urgent pointer. 0, or a negative errno. */
static int found_look(const struct aw_record *record, int fd, struct found *found)
{
	const struct aw_record_rx *rx = &record->rx;
	struct aw_bounce *bounce = aw_bounce_take();
	uint8_t front[AW_URGENT_FRONT];
	ssize_t n;

	if (!bounce)
		return -ENOMEM;
	for (size_t i = 0; i < AW_BOUNCE_PIECES; i++)
		bounce->pieces[i] = (struct iovec){ bounce->bytes, LOOK };
	n = aw_rx_recvmsg(fd, bounce->pieces, AW_BOUNCE_PIECES, MSG_PEEK);
	if (n >= 0)
		*found = (struct found){ .ahead = (size_t)n };
	if (n >= 0 && rx->have + found->ahead >= AW_URGENT_FRONT) {
		/* The last of the record's own bytes, and those ahead, which have filled the buffer again and again. */
		for (size_t i = 0; i < AW_URGENT_FRONT; i++) {
			size_t back = AW_URGENT_FRONT - i;

			front[i] = found->ahead >= back
					   ? bounce->bytes[(found->ahead - back) % LOOK]
					   : rx->bytes[rx->have + found->ahead - back];
		}
		found->right = is_right(front);
		found->byte = front[AW_FPDU_HEAD];
	}
	aw_bounce_put(bounce);
	if (n < 0)
		return n == -ENODATA ? -EAGAIN : (int)n;
	return 0;
}

/* Receives the kernel's urgent byte, at which the program does not stand. */
static ssize_t search_urgent(struct aw_record *record, int fd, uint8_t *byte, int flags)
{
	size_t came = aw_rx_queued(fd), ahead;
	struct found found;

	if (found_look(record, fd, &found) != 0)
		return -EAGAIN;
	if (!found.right) {
		/* The pointer is at no urgent FPDU's end, and poll would tell of it for ever. */
		if (found.ahead < came)
			(void)ask_kernel(fd, 0);
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
		(void)ask_kernel(fd, 0);
		if (found_look(record, fd, &found) != 0 || !found.right)
			return -EAGAIN;
		*byte = found.byte;
		if (found.ahead == ahead)
			return 1;
	}
	return 1;
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
	*byte = rx->bytes[AW_FPDU_HEAD];
	if (flags & MSG_PEEK)
		return is_right(rx->bytes) ? 1 : -EAGAIN;
	err = take_last(record, fd, AW_MARK_BEHIND);
	if (err) {
		rx->ended = true;
		return err;
	}
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
	size_t payload;

	if (rx->reply_due || rx->held)
		return;
	if (rx->have >= FPDU_LEN_FIELD &&
	    (!aw_fpdu_payload(rx->bytes, &payload) || rx->have + 1 >= aw_fpdu_len(payload)))
		return;
	if (aw_rx_take(rx, fd, &iov, 1) != 1)
		return;
	rx->have++;
	aw_lowat_await(rx, fd);
}

ssize_t aw_record_receive_urgent(struct aw_record *record, int fd, uint8_t *byte, int flags)
{
	struct aw_record_rx *rx = &record->rx;
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
	n = ask_kernel(fd, MSG_PEEK);
	if (n == -ENODATA)
		return 0;
	return n < 0 ? n : search_urgent(record, fd, byte, flags);
}
