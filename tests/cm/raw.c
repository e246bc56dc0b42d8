// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP peers by hand.
#define _GNU_SOURCE /* accept4 */
#include "raw.h"

#include "cm.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* S and C flags, revision 2, 4 octets: A, IRD 16; C and D, ORD 16. */
const uint8_t raw_request[RAW_REQUEST_LEN] = { 'M',  'P',  'A', ' ', 'I',  'D', ' ',  'R',
					       'e',  'q',  ' ', 'F', 'r',  'a', 'm',  'e',
					       0x50, 0x02, 0,	4,   0x80, 16,	0xc0, 16 };

static int timed(int fd)
{
	struct timeval tv = { .tv_sec = EVENT_MS / 1000 };

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

int raw_listen(uint16_t *port)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", 0);
	socklen_t len = sizeof(ss);
	int fd = timed(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	assert_int_equal(bind(fd, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	*port = ntohs(((struct sockaddr_in *)&ss)->sin_port);
	return fd;
}

int raw_accept(int listener)
{
	return timed(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

int raw_connect(uint16_t port)
{
	struct sockaddr_storage ss = cm_address("127.0.0.1", port);
	int fd = timed(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	assert_int_equal(connect(fd, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), 0);
	return fd;
}

void raw_send(int fd, const void *octets, size_t len)
{
	assert_int_equal(send(fd, octets, len, MSG_NOSIGNAL), (ssize_t)len);
}

void raw_recv(int fd, void *octets, size_t len)
{
	assert_int_equal(recv(fd, octets, len, MSG_WAITALL), (ssize_t)len);
}

void raw_expect_end(int fd)
{
	uint8_t octets[256];
	ssize_t n;

	while ((n = recv(fd, octets, sizeof(octets), 0)) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
}
