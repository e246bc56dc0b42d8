// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loopback TCP for tests.
#include "tcp.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

socklen_t tcp_addr_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static int patient(int fd)
{
	const struct timeval wait = { .tv_sec = TCP_WAIT_S };
	int one = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int tcp_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

void tcp_unblock(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

int tcp_bind(int family, struct sockaddr_storage *addr)
{
	int fd = tcp_socket(family);
	socklen_t len;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = (sa_family_t)family;
	if (family == AF_INET)
		((struct sockaddr_in *)addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)addr)->sin6_addr = in6addr_loopback;
	len = tcp_addr_len(addr);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

int tcp_listen(int backlog, struct sockaddr_storage *addr)
{
	int fd = tcp_bind(AF_INET, addr);

	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return patient(fd);
}

int tcp_accept(int listener)
{
	return patient(accept(listener, NULL, NULL));
}

int tcp_connect(const struct sockaddr_storage *addr)
{
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)addr, tcp_addr_len(addr)), 0);
	return patient(fd);
}

void tcp_pair(int fds[2])
{
	struct sockaddr_storage addr;
	int listener = tcp_listen(1, &addr);

	fds[0] = tcp_connect(&addr);
	fds[1] = tcp_accept(listener);
	close(listener);
}

void tcp_send(int fd, const void *octets, size_t len)
{
	assert_int_equal(send(fd, octets, len, MSG_NOSIGNAL), len);
}

void tcp_send_slowly(int fd, const void *octets, size_t len)
{
	for (size_t i = 0; i < len; i++)
		tcp_send(fd, (const uint8_t *)octets + i, 1);
}

void tcp_recv(int fd, void *octets, size_t len)
{
	assert_int_equal(recv(fd, octets, len, MSG_WAITALL), len);
}

void tcp_assert_over(int fd)
{
	uint8_t octet;
	ssize_t n = recv(fd, &octet, 1, 0);

	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

void tcp_reset(int fd)
{
	const struct linger hard = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}
