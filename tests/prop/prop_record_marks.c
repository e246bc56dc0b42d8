// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer whose FPDUs are right and whose urgent pointers are anywhere: in the middle of FPDUs, at the end of one that carries no
// urgent byte, far ahead, or absent where an urgent FPDU ends. The program gets every byte in order, but for urgent bytes
// that it does not have in line, then the end; no call needs more than the bytes that are there.
#include "prop/prop.h"

#include "record/record.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#define STEPS_MAX 400
#define STREAM_MAX 20000u
#define PAYLOAD_MAX 300u
#define ROOM_MAX 400u

/* The kernel's side: net/ipv4/tcp.c and tcp_input.c are what it does as they do. */
static struct {
	uint8_t bytes[STREAM_MAX];
	size_t len, arrived, taken;
	enum {
		NO_URGENT,
		NOT_YET,
		VALID,
		READ
	} urgent;
	size_t pointer; /* the place of the urgent byte */
	bool in_line;
	size_t lowat;
	int peek_offset; /* SO_PEEK_OFF, but 0 where that is -1 */
} net;

/* Payload bytes of the stream, and which of them an urgent FPDU carries. */
static uint8_t data[STREAM_MAX];
static bool may_miss[STREAM_MAX];
static size_t data_len, data_at;
static struct aw_record record;

static bool is_at_pointer(size_t at)
{
	return net.urgent && net.pointer == at;
}

static ssize_t take_urgent(struct msghdr *msg, int flags)
{
	errno = net.urgent == NOT_YET ? EAGAIN : EINVAL;
	if (net.in_line || net.urgent != VALID)
		return -1;
	memcpy(msg->msg_iov[0].iov_base, net.bytes + net.pointer, 1);
	if (!(flags & MSG_PEEK))
		net.urgent = READ;
	return 1;
}

/* How many bytes one read gets from a place: it ends in front of the pointer, and leaves out a byte that is aside. */
static size_t span_from(size_t *at)
{
	if (is_at_pointer(*at) && !net.in_line && *at < net.arrived)
		++*at;
	if (net.urgent && net.pointer > *at && net.pointer < net.arrived)
		return net.pointer - *at;
	return net.arrived - *at;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t at = net.taken + (flags & MSG_PEEK ? (size_t)net.peek_offset : 0), left, got = 0;

	(void)fd;
	PROP(flags & MSG_DONTWAIT || flags & MSG_OOB);
	if (flags & MSG_OOB)
		return take_urgent(msg, flags);
	left = span_from(&at);
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		size_t n = msg->msg_iov[i].iov_len < left ? msg->msg_iov[i].iov_len : left;

		memcpy(msg->msg_iov[i].iov_base, net.bytes + at, n);
		at += n;
		left -= n;
		got += n;
	}
	if (!(flags & MSG_PEEK)) {
		net.taken = at;
		if (net.taken > net.pointer)
			net.urgent = NO_URGENT;
	}
	errno = EAGAIN;
	return got ? (ssize_t)got : net.arrived == net.len ? 0 : -1;
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int number;

	(void)fd;
	PROP(level == SOL_SOCKET && len == sizeof(number));
	memcpy(&number, value, sizeof(number));
	PROP(name == SO_OOBINLINE || name == SO_PEEK_OFF || (name == SO_RCVLOWAT && number > 0));
	/* A second urgent byte would take the first one out of the stream. */
	PROP(name != SO_OOBINLINE || number || !is_at_pointer(net.taken));
	if (name == SO_OOBINLINE)
		net.in_line = number;
	else if (name == SO_PEEK_OFF)
		net.peek_offset = number > 0 ? number : 0;
	else
		net.lowat = (size_t)number;
	return 0;
}

static bool is_readable(void)
{
	return net.arrived - net.taken >= net.lowat || net.arrived == net.len;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	PROP(count == 1 && timeout_ms == 0);
	fds->revents = (short)((is_readable() ? POLLIN : 0) | (net.urgent == VALID ? POLLPRI : 0));
	fds->revents &= fds->events;
	return fds->revents != 0;
}

static int fake_ioctl(int fd, unsigned long request, int *answer)
{
	(void)fd;
	PROP(request == SIOCATMARK || (request == FIONREAD && net.in_line));
	*answer = request == FIONREAD ? (int)(net.arrived - net.taken) : is_at_pointer(net.taken);
	return 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.setsockopt = fake_setsockopt,
	.poll = fake_poll,
	.ioctl = fake_ioctl,
};

static void announce(size_t pointer)
{
	if (pointer < net.arrived || (net.urgent && pointer <= net.pointer))
		return;
	PROP(net.in_line || !is_at_pointer(net.taken));
	net.pointer = pointer;
	net.urgent = NOT_YET;
}

static void arrive(struct bytes *b)
{
	size_t more = bytes_u8(b) % 4 ? bytes_u8(b) % 40 : bytes_u16(b) % 2000;

	if (bytes_u8(b) % 2)
		announce(net.arrived + (bytes_u8(b) % 2 ? 27 : bytes_u8(b)));
	net.arrived = net.len - net.arrived < more ? net.len : net.arrived + more;
	if (net.urgent == NOT_YET && net.pointer < net.arrived)
		net.urgent = VALID;
}

static void build(struct bytes *b)
{
	uint32_t msn = 0;

	net.len = data_len = data_at = 0;
	while (b->left > 600 && net.len < STREAM_MAX - aw_fpdu_len(PAYLOAD_MAX)) {
		bool urgent = bytes_u8(b) % 2;
		size_t payload = urgent ? 1 : 1 + bytes_u8(b) % 4 * bytes_u8(b) % PAYLOAD_MAX;
		uint8_t *head = net.bytes + net.len;

		if (urgent)
			aw_fpdu_put_urgent_head(head, ++msn);
		else
			aw_fpdu_put_head(head, payload, ++msn);
		for (size_t i = 0; i < payload; i++, data_len++) {
			data[data_len] = head[AW_FPDU_HEAD + i] = (uint8_t)(data_len * 7 + 1);
			may_miss[data_len] = urgent;
		}
		net.len += aw_fpdu_put_trailer(head, payload);
	}
}

/* Where bytes that came stand in the stream, from a place on: the place behind them. */
static size_t follow(size_t at, const uint8_t *came, size_t len)
{
	for (size_t i = 0; i < len; i++, at++) {
		while (at < data_len && may_miss[at] && !record.rx.in_line && data[at] != came[i])
			at++;
		PROP(at < data_len && data[at] == came[i]);
	}
	return at;
}

static ssize_t receive_some(struct bytes *b)
{
	uint8_t came[ROOM_MAX], looked[ROOM_MAX];
	struct iovec iov = { came, 1 + bytes_u16(b) % ROOM_MAX }, look = { looked, iov.iov_len };
	ssize_t n;

	if (bytes_u8(b) % 3 == 0) {
		n = aw_record_peek(&record, 0, &look, 1, NULL);
		PROP(n >= 0 || n == -EAGAIN);
		if (n > 0)
			follow(data_at, looked, (size_t)n);
	}
	n = aw_record_receive(&record, 0, &iov, 1, 0);
	PROP(n >= 0 || n == -EAGAIN);
	if (n > 0)
		data_at = follow(data_at, came, (size_t)n);
	return n;
}

static void ask_urgent(struct bytes *b)
{
	uint8_t byte;
	ssize_t n = aw_record_receive_urgent(&record, 0, &byte, bytes_u8(b) % 2 ? MSG_PEEK : 0);

	PROP(n == 1 || n == -EAGAIN || n == -EINVAL);
	PROP(n != 1 || !record.rx.in_line);
	PROP(net.in_line);
}

/* As many bytes as the program may count are there to be had. */
static void count(void)
{
	ssize_t n = aw_record_pending(&record, 0);

	PROP(n >= 0 && (size_t)n <= data_len - data_at);
}

static void step(struct bytes *b)
{
	switch (bytes_u8(b) % 8) {
	case 0:
	case 1:
	case 2:
		arrive(b);
		break;
	case 3:
		ask_urgent(b);
		break;
	case 4:
		count();
		break;
	case 5:
		(void)aw_record_is_at_mark(&record, 0);
		break;
	default:
		(void)receive_some(b);
	}
}

/* A program that waits for the fd to be readable, and reads then, gets to the end. */
static void drain(struct bytes *b)
{
	net.arrived = net.len;
	for (size_t calls_made = 0; receive_some(b) != 0; calls_made++) {
		PROP(is_readable());
		PROP(calls_made < 2 * STREAM_MAX);
	}
	while (data_at < data_len && may_miss[data_at] && !record.rx.in_line)
		data_at++;
	PROP(data_at == data_len);
	PROP(!record.rx.fault && !record.rx.error);
}

void prop_run(struct bytes *b)
{
	memset(&net, 0, sizeof(net));
	net.in_line = true;
	net.lowat = 1;
	aw_record_init(&record);
	record.rx.in_line = bytes_u8(b) % 3 == 0;
	build(b);
	for (int i = 0; i < STEPS_MAX && b->left > 0; i++)
		step(b);
	drain(b);
}
