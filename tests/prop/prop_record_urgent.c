// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Urgent bytes of a record beside those of plain TCP, both on the kernel's loopback: the same calls get the same answers, for
// bytes, marks, counts and poll. Before each call all that was sent has arrived.
#include "prop/prop.h"

#include "../lib/record_calls.h"
#include "../lib/record_tls.h"
#include "record/record.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define STEPS_MAX 60
#define SEND_MAX 40u
#define ROOM_MAX 60u

static struct {
	int fds[2]; /* sender's, receiver's */
} plain, framed;
static struct aw_record records[2];
#define sender records[0]
#define receiver records[1]
static uint8_t next_byte;

const struct aw_record_calls aw_record_calls = { RECORD_CALLS, .cipher = &aw_cipher };

static void connect_pair(int fds[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger reset = { .l_onoff = 1 };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	PROP(bind(listener, (struct sockaddr *)&addr, len) == 0 && listen(listener, 1) == 0 &&
	     getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	PROP(connect(fds[0], (struct sockaddr *)&addr, len) == 0);
	fds[1] = accept(listener, NULL, NULL);
	close(listener);
	PROP(fds[1] >= 0 && setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
	     setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	PROP(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info;
}

/* Loopback loses nothing: what was sent is there, or about to be. */
static void await_arrival(const int fds[2])
{
	struct tcp_info from = info_of(fds[0]);

	while (from.tcpi_notsent_bytes || info_of(fds[1]).tcpi_bytes_received <
						  from.tcpi_bytes_sent - from.tcpi_bytes_retrans) {
		sched_yield();
		from = info_of(fds[0]);
	}
}

static ssize_t receive_plain(void *to, size_t len, int flags)
{
	ssize_t n = recv(plain.fds[1], to, len, flags | MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static ssize_t receive_framed(void *to, size_t len, int flags)
{
	struct iovec iov = { to, len };

	if (flags & MSG_OOB)
		return aw_record_receive_urgent(&receiver, framed.fds[1], to, flags & MSG_PEEK);
	return flags & MSG_PEEK ? aw_record_peek(&receiver, framed.fds[1], &iov, 1, NULL)
				: aw_record_receive(&receiver, framed.fds[1], &iov, 1, 0);
}

static void compare_receive(size_t len, int flags)
{
	uint8_t of_plain[ROOM_MAX], of_framed[ROOM_MAX];
	ssize_t n = receive_plain(of_plain, len, flags), m = receive_framed(of_framed, len, flags);

	PROP(n == m);
	PROP(n <= 0 || memcmp(of_plain, of_framed, (size_t)n) == 0);
}

static void compare_mark(void)
{
	int at_mark = -1;

	PROP(ioctl(plain.fds[1], SIOCATMARK, &at_mark) == 0);
	PROP(aw_record_is_at_mark(&receiver, framed.fds[1]) == (at_mark == 1));
}

static void compare_count(void)
{
	int count = -1;

	PROP(ioctl(plain.fds[1], FIONREAD, &count) == 0);
	PROP(aw_record_pending(&receiver, framed.fds[1]) == count);
}

static short ready(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN | POLLPRI };

	return poll(&pollfd, 1, 0) > 0 ? pollfd.revents : 0;
}

/* The record's fd is readable for an urgent FPDU until the program has asked: here it has. */
static void compare_poll(void)
{
	PROP(ready(plain.fds[1]) == ready(framed.fds[1]));
}

/*
 * A program that stands at an urgent byte when the next one comes loses it, and TCP knows by itself where the program
 * stands, the record from the program's last call: so this asks.
 */
static void send_both(size_t len, int flags)
{
	uint8_t bytes[SEND_MAX];
	struct iovec iov = { bytes, len };

	for (size_t i = 0; i < len; i++)
		bytes[i] = ++next_byte;
	PROP(send(plain.fds[0], bytes, len, flags) == (ssize_t)len);
	PROP(aw_record_send(&sender, framed.fds[0], &iov, 1, flags) == (ssize_t)len);
	await_arrival(plain.fds);
	await_arrival(framed.fds);
	compare_mark();
}

/* A read at a mark with nothing behind it costs TCP's program the urgent byte, and the record's nothing. */
static void read_both(size_t len)
{
	int at_mark = -1;

	PROP(ioctl(plain.fds[1], SIOCATMARK, &at_mark) == 0);
	if (at_mark && ready(plain.fds[1]) == POLLPRI)
		PROP(receive_framed(&(uint8_t){ 0 }, 1, 0) == -EAGAIN);
	else
		compare_receive(len, 0);
}

static void step(struct bytes *b)
{
	if (bytes_u8(b) % 16 == 0) /* a KeyUpdate goes before the next FPDU */
		atomic_fetch_add(&sender.rx.asked, 1);
	switch (bytes_u8(b) % 10) {
	case 0:
	case 1:
		send_both(1 + bytes_u8(b) % SEND_MAX, 0);
		break;
	case 2:
		send_both(1 + bytes_u8(b) % 3, MSG_OOB);
		break;
	case 3:
		compare_receive(1, MSG_OOB);
		break;
	case 4:
		compare_receive(1, MSG_OOB | MSG_PEEK);
		break;
	case 5:
		compare_receive(1 + bytes_u8(b) % ROOM_MAX, MSG_PEEK);
		break;
	case 6:
		compare_count();
		break;
	default:
		read_both(1 + bytes_u8(b) % ROOM_MAX);
	}
	compare_mark();
	compare_poll();
}

static void set_in_line(bool in_line)
{
	int value = in_line, on = 1;

	PROP(setsockopt(plain.fds[1], SOL_SOCKET, SO_OOBINLINE, &value, sizeof(value)) == 0);
	PROP(setsockopt(framed.fds[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) == 0);
	receiver.rx.in_line = in_line;
}

void prop_run(struct bytes *b)
{
	connect_pair(plain.fds);
	connect_pair(framed.fds);
	record_tls_begin(records, framed.fds, bytes_u8(b) % 4);
	set_in_line(bytes_u8(b) % 3 == 0);
	next_byte = 0;
	for (int i = 0; i < STEPS_MAX && b->left > 0; i++)
		step(b);
	for (int i = 0; i < 2; i++) {
		close(plain.fds[i]);
		close(framed.fds[i]);
	}
}
