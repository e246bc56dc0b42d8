// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TCP peers by hand.
#define _GNU_SOURCE /* accept4 */
#include "raw.h"

#include "cm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* S and C flags, revision 2, 4 octets: A, IRD 16; C and D, ORD 16. */
const uint8_t raw_request[RAW_REQUEST_LEN] = { 'M',  'P',  'A', ' ', 'I',  'D', ' ',  'R',
					       'e',  'q',  ' ', 'F', 'r',  'a', 'm',  'e',
					       0x50, 0x02, 0,	4,   0x80, 16,	0xc0, 16 };

const uint8_t raw_rtr_write[RAW_RTR_WRITE_LEN] = { 0xc1, 0x40, 0, 0, 0, 1 };

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

/* Octet by octet and bit by bit: not the library's. */
static uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

void raw_send_fpdu(int fd, const void *ulpdu, size_t len)
{
	uint8_t fpdu[2 + RAW_ULPDU_MAX + 3 + 4] = { (uint8_t)(len >> 8), (uint8_t)len };
	size_t end = (2 + len + 3) & ~(size_t)3;
	uint32_t crc;

	assert_true(len <= RAW_ULPDU_MAX);
	memcpy(fpdu + 2, ulpdu, len);
	crc = crc32c(fpdu, end);
	for (int i = 0; i < 4; i++)
		fpdu[end + (size_t)i] = (uint8_t)(crc >> 8 * i);
	raw_send(fd, fpdu, end + 4);
}

size_t raw_recv_fpdu(int fd, uint8_t ulpdu[RAW_ULPDU_MAX])
{
	uint8_t fpdu[2 + RAW_ULPDU_MAX + 3 + 4];
	size_t len, end;
	uint32_t crc = 0;

	raw_recv(fd, fpdu, 2);
	len = (size_t)fpdu[0] << 8 | fpdu[1];
	assert_true(len <= RAW_ULPDU_MAX);
	end = (2 + len + 3) & ~(size_t)3;
	raw_recv(fd, fpdu + 2, end + 4 - 2);
	for (int i = 0; i < 4; i++)
		crc |= (uint32_t)fpdu[end + (size_t)i] << 8 * i;
	assert_int_equal(crc, crc32c(fpdu, end));
	memcpy(ulpdu, fpdu + 2, len);
	return len;
}

void raw_expect_end(int fd)
{
	uint8_t octets[256];
	ssize_t n;

	while ((n = recv(fd, octets, sizeof(octets), 0)) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
}

void raw_reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

int raw_pending(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	return poll(&pfd, 1, 0);
}

static void *serve(void *arg)
{
	struct raw_server *server = arg;
	uint8_t request[RAW_REQUEST_LEN];

	for (int i = 0; i < 2; i++) {
		server->fd = raw_accept(server->listener);
		raw_recv(server->fd, request, sizeof(request));
		close(server->fd);
	}
	server->fd = raw_accept(server->listener);
	raw_recv(server->fd, request, RAW_PLAIN_LEN);
	raw_send(server->fd, server->reply, server->reply_len);
	return NULL;
}

void raw_server_start(struct raw_server *server, int listener, const void *reply, size_t len)
{
	*server = (struct raw_server){ .listener = listener, .reply = reply, .reply_len = len };
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

int raw_server_join(struct raw_server *server)
{
	pthread_join(server->thread, NULL);
	return server->fd;
}
