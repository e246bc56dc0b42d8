// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two records over a TCP connection that a fake kernel carries, which splits what it carries anywhere and takes in part what it
// is given. The bytes that come are those that were sent, a look changes nothing, and the fd is readable whenever,
// and, but for the beginning of an FPDU, only when, the program can read something. With three of four seeds all of it is under
// TLS, whose keys change now and then.
#include "prop/prop.h"

#include "../lib/record_tls.h"
#include "record/record.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define STEPS_MAX 300
#define QUEUE_MAX (1u << 20)
#define BUFFERS 3
#define BUFFER_MAX 70000u

/* The fake kernel's one direction. */
static struct {
	uint8_t bytes[QUEUE_MAX];
	size_t sent, arrived, taken; /* taken <= arrived <= sent */
	size_t limit; /* SO_SNDBUF */
	uint32_t lowat;
	bool splits; /* takes less than it has room for */
	bool shut;
	struct bytes *choices;
} net;

static struct aw_record records[2];
#define sender records[0]
#define receiver records[1]
static uint8_t data[QUEUE_MAX], came[BUFFER_MAX * BUFFERS], looked[BUFFER_MAX * BUFFERS];
static size_t accepted, received;

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t used(void)
{
	return net.sent - net.taken;
}

static ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t room = net.limit > used() ? net.limit - used() : 0, done = 0;

	(void)fd;
	PROP(flags & MSG_DONTWAIT);
	if (net.splits)
		room = smaller(room, 1 + bytes_u16(net.choices));
	if (room == 0) {
		errno = EAGAIN;
		return -1;
	}
	for (size_t i = 0; i < (size_t)msg->msg_iovlen && done < room; i++) {
		size_t n = smaller(msg->msg_iov[i].iov_len, room - done);

		PROP(net.sent + n <= QUEUE_MAX);
		memcpy(net.bytes + net.sent, msg->msg_iov[i].iov_base, n);
		net.sent += n;
		done += n;
	}
	return (ssize_t)done;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t at = net.taken;

	(void)fd;
	PROP(flags & MSG_DONTWAIT);
	if (at == net.arrived && net.shut && net.arrived == net.sent)
		return 0;
	if (at == net.arrived) {
		errno = EAGAIN;
		return -1;
	}
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		size_t n = smaller(msg->msg_iov[i].iov_len, net.arrived - at);

		memcpy(msg->msg_iov[i].iov_base, net.bytes + at, n);
		at += n;
	}
	if (!(flags & MSG_PEEK)) {
		at -= net.taken;
		net.taken += at;
		return (ssize_t)at;
	}
	return (ssize_t)(at - net.taken);
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t *memory = value;

	(void)fd;
	errno = ENOPROTOOPT;
	if (level != SOL_SOCKET)
		return -1;
	PROP(name == SO_MEMINFO && *len == SK_MEMINFO_VARS * sizeof(*memory));
	memory[SK_MEMINFO_SNDBUF] = (uint32_t)net.limit;
	memory[SK_MEMINFO_WMEM_QUEUED] = (uint32_t)used();
	return 0;
}

static int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	int lowat;

	(void)fd;
	PROP(level == SOL_SOCKET && name == SO_RCVLOWAT && len == sizeof(lowat));
	memcpy(&lowat, value, sizeof(lowat));
	PROP(lowat >= 1);
	net.lowat = (uint32_t)lowat;
	return 0;
}

/* As the kernel has it: a third of the buffer is free. */
static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	PROP(count == 1 && fds->events == POLLOUT && timeout_ms == 0);
	fds->revents = used() <= net.limit / 3 * 2 ? POLLOUT : 0;
	return fds->revents != 0;
}

static int fake_shutdown(int fd, int how)
{
	(void)fd;
	PROP(how == SHUT_RD && receiver.rx.notified);
	net.shut = true;
	return 0;
}

static int fake_ioctl(int fd, unsigned long request, int *answer)
{
	(void)fd;
	*answer = request == FIONREAD ? (int)(net.arrived - net.taken) : 0;
	return 0;
}

const struct aw_record_calls aw_record_calls = {
	.recvmsg = fake_recvmsg,
	.sendmsg = fake_sendmsg,
	.getsockopt = fake_getsockopt,
	.setsockopt = fake_setsockopt,
	.poll = fake_poll,
	.ioctl = fake_ioctl,
	.shutdown = fake_shutdown,
	.cipher = &aw_cipher,
};

static bool is_readable(void)
{
	return net.arrived - net.taken >= net.lowat || (net.shut && net.arrived == net.sent);
}

/* Payload of which the whole FPDU has arrived: counted by its header, from the first. */
static size_t whole_payload(void)
{
	const struct aw_record_key *key = &receiver.rx.key;
	struct aw_frame frame;
	size_t at = 0, sum = 0;

	while (net.arrived - at >= aw_frame_field(key) &&
	       aw_frame_read(key, net.bytes + at, &frame) && net.arrived - at >= frame.len) {
		at += frame.len;
		sum += frame.payload;
	}
	return sum;
}

static size_t length(struct bytes *b, size_t most)
{
	size_t kind = bytes_u8(b) % 4, n = bytes_u16(b);

	return 1 + (kind == 0 ? n % 8 : kind == 1 ? n % 200 : n) % most;
}

/* Up to BUFFERS pieces of memory at base. */
static int cut(struct bytes *b, uint8_t *base, size_t most, struct iovec *iov)
{
	int count = 1 + bytes_u8(b) % BUFFERS;

	for (int i = 0; i < count; i++) {
		size_t len = bytes_u8(b) % 8 && most > 0 ? length(b, most) : 0;

		iov[i] = (struct iovec){ base, len };
		base += len;
		most -= len;
	}
	return count;
}

static void send_some(struct bytes *b)
{
	struct iovec iov[BUFFERS];
	size_t most = smaller(BUFFER_MAX, sizeof(data) / 2 - accepted);
	int count;
	ssize_t n;

	if (most < BUFFERS)
		return;
	count = cut(b, data + accepted, most, iov);
	n = aw_record_send(&sender, 0, iov, count, 0);
	PROP(n >= 0 || n == -EAGAIN);
	accepted += n > 0 ? (size_t)n : 0;
}

static void receive_some(struct bytes *b)
{
	size_t there = whole_payload() - received, room = 0;
	struct iovec iov[BUFFERS];
	int count = cut(b, came, BUFFER_MAX, iov);
	ssize_t n;

	for (int i = 0; i < count; i++)
		room += iov[i].iov_len;
	if (bytes_u8(b) % 4 == 0) {
		struct iovec look = { looked, smaller(room, sizeof(looked)) };
		bool waits = bytes_bool(b);
		size_t due = 0;

		n = aw_record_peek(&receiver, 0, &look, 1, waits ? &due : NULL);
		/* A look that waits sees all that is there, and for more of it more bytes must come. */
		PROP(!waits || n <= 0 || n == (ssize_t)smaller(look.iov_len, there));
		PROP(!waits || n <= 0 || n == (ssize_t)look.iov_len ||
		     due > net.arrived - net.taken);
		PROP(n > 0 || due == 0);
		PROP(room == 0 || n == (there ? (ssize_t)smaller(room, there) : -EAGAIN) ||
		     n >= (ssize_t)smaller(there, 65536));
		PROP(n <= 0 || memcmp(looked, data + received, (size_t)n) == 0);
	}
	n = aw_record_receive(&receiver, 0, iov, count, 0);
	PROP(room == 0 || n == (there ? (ssize_t)smaller(room, there) : -EAGAIN));
	if (n > 0) {
		PROP(memcmp(came, data + received, (size_t)n) == 0);
		received += (size_t)n;
	}
}

static void arrive(struct bytes *b)
{
	net.arrived +=
		smaller(net.sent - net.arrived, bytes_u8(b) % 3 ? net.sent : length(b, 40000));
}

/* A program that waits for so many bytes hears of them: of fewer it may. */
static bool is_awake(void)
{
	size_t there = whole_payload() - received;

	return there == 0 || there < receiver.rx.wanted || is_readable();
}

static void step(struct bytes *b)
{
	if (bytes_u8(b) % 16 == 0) /* a KeyUpdate goes before the next FPDU */
		atomic_fetch_add(&sender.rx.asked, 1);
	switch (bytes_u8(b) % 9) {
	case 0:
	case 1:
	case 2:
		send_some(b);
		break;
	case 3:
	case 4:
		arrive(b);
		break;
	case 5:
		aw_record_flush(&sender, 0);
		break;
	case 6:
		aw_record_set_wanted(&receiver, 0,
				     bytes_u8(b) % 3 ? (uint32_t)length(b, 40000) : 1);
		break;
	default:
		receive_some(b);
	}
	PROP(is_awake());
}

/* All that was accepted comes, then the end. */
static void drain(void)
{
	struct iovec iov = { came, sizeof(came) };
	ssize_t n;

	net.splits = false;
	while (received < accepted || sender.tx.rest) {
		aw_record_flush(&sender, 0);
		net.arrived = net.sent;
		n = aw_record_receive(&receiver, 0, &iov, 1, 0);
		PROP(n > 0);
		PROP(memcmp(came, data + received, (size_t)n) == 0);
		received += (size_t)n;
	}
	net.arrived = net.sent;
	PROP(aw_record_receive(&receiver, 0, &iov, 1, 0) == -EAGAIN);
	PROP(!is_readable());
	PROP(aw_record_finish(&sender, 0) == 0);
	net.arrived = net.sent;
	net.shut = true;
	PROP(aw_record_receive(&receiver, 0, &iov, 1, 0) == 0);
	PROP(aw_record_receive(&receiver, 0, &iov, 1, 0) == 0);
}

void prop_run(struct bytes *b)
{
	memset(&net, 0, offsetof(__typeof__(net), choices));
	net.choices = b;
	net.lowat = 1;
	net.limit = 4096u << bytes_u8(b) % 7;
	net.splits = bytes_u8(b) % 3 == 0;
	accepted = received = 0;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	record_tls_begin(records, (const int[2]){ 0, 0 }, bytes_u8(b) % 4);
	for (int i = 0; i < STEPS_MAX && b->left > 0; i++)
		step(b);
	drain();
}
