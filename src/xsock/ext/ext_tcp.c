// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions wait by poll(2), whether the program has made its socket blocking or not.
#include "xsock/ext/ext_tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/clock.h"

#define MS_NS 1000000

int aw_ext_left_ms(int64_t until_ns)
{
	int64_t left = until_ns - aw_now_ns();

	return left > 0 ? (int)((left + MS_NS - 1) / MS_NS) : 0;
}

static int await_events(int fd, short events, int64_t until_ns)
{
	struct pollfd pollfd = { .fd = fd, .events = events };
	int left, ready;

	do {
		left = aw_ext_left_ms(until_ns);
		ready = left ? poll(&pollfd, 1, left) : 0;
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return errno;
	return ready ? 0 : ETIMEDOUT;
}

static bool may_retry(void)
{
	return errno == EAGAIN || errno == EINTR;
}

int aw_ext_tcp_write(int fd, const void *bytes, size_t len, int64_t until_ns)
{
	const uint8_t *from = bytes;
	int err = 0;

	while (len > 0 && !err) {
		ssize_t sent = send(fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent >= 0) {
			from += sent;
			len -= (size_t)sent;
		} else {
			err = may_retry() ? await_events(fd, POLLOUT, until_ns) : errno;
		}
	}
	return err;
}

int aw_ext_tcp_read(int fd, void *bytes, size_t len, int64_t until_ns)
{
	uint8_t *to = bytes;
	int err = 0;

	while (len > 0 && !err) {
		ssize_t got = recv(fd, to, len, MSG_DONTWAIT);

		if (got > 0) {
			to += got;
			len -= (size_t)got;
		} else if (got == 0) {
			err = ECONNRESET;
		} else {
			err = may_retry() ? await_events(fd, POLLIN, until_ns) : errno;
		}
	}
	return err;
}

/*
 * Waits until len bytes are there, with SO_RCVLOWAT at len: a shorter queue wakes the thread only
 * when the stream has ended.
 */
static int peek_awake(int fd, void *bytes, size_t len, int64_t until_ns)
{
	ssize_t got, before = -1;

	for (;;) {
		int err = await_events(fd, POLLIN, until_ns);

		if (err)
			return err;
		got = recv(fd, bytes, len, MSG_PEEK | MSG_DONTWAIT);
		if (got == (ssize_t)len)
			return 0;
		if (got < 0 && !may_retry())
			return errno;
		if (got >= 0 && got == before)
			return ECONNRESET;
		before = got;
	}
}

int aw_ext_tcp_peek(int fd, void *bytes, size_t len, int64_t until_ns)
{
	int lowat = (int)len, before = 1, err;
	socklen_t size = sizeof(before);

	getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, &size);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat));
	err = peek_awake(fd, bytes, len, until_ns);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &before, sizeof(before));
	return err;
}
