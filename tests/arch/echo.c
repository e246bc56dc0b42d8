// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A sockets program for test_ends.py, which preloads the sockets library: an echo server (-p PORT), or its client (-a ADDRESS
// -p PORT). On a machine of 32 bits it is built with a time_t of 64, for which libc has other names. Exit status: 0, or 1 when the
// echo was wrong or a call failed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEN 50000
#define SECONDS 20

static void require(bool held, const char *what)
{
	if (held)
		return;
	perror(what);
	exit(1);
}

static void wait_readable(int fd)
{
	struct timeval timeout = { .tv_sec = SECONDS };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	require(select(fd + 1, &in, NULL, NULL, &timeout) == 1 && FD_ISSET(fd, &in), "select");
	require(timeout.tv_sec <= SECONDS, "time that select left");
}

static void wait_writable(int fd)
{
	struct timespec timeout = { .tv_sec = SECONDS };
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };

	require(ppoll(&pollfd, 1, &timeout, NULL) == 1, "ppoll");
}

static size_t receive_some(int fd, char *bytes, size_t len)
{
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &msg, 0);

	require(n >= 0, "recvmsg");
	return (size_t)n;
}

static void send_all(int fd, char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct iovec iov = { bytes + at, len - at };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n;

		wait_writable(fd);
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
		require(n > 0, "sendmsg");
		at += (size_t)n;
	}
}

static void set_timeout(int fd)
{
	struct timeval timeout = { .tv_sec = SECONDS, .tv_usec = 500000 }, told;
	socklen_t len = sizeof(told);

	require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0, "set");
	require(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &len) == 0, "get");
	require(len == sizeof(told) && told.tv_sec == SECONDS && told.tv_usec == 500000, "told");
}

static void serve(int listener)
{
	static char bytes[LEN];
	int fd;
	size_t n;

	wait_readable(listener);
	fd = accept(listener, NULL, NULL);
	require(fd >= 0, "accept");
	while (wait_readable(fd), n = receive_some(fd, bytes, LEN))
		send_all(fd, bytes, n);
}

static void ask(int fd)
{
	static char out[LEN], in[LEN];
	size_t have = 0;
	int queued;

	set_timeout(fd);
	require(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
	for (size_t i = 0; i < LEN; i++)
		out[i] = (char)(i * 31 + i / 256);
	send_all(fd, out, LEN);
	while (have < LEN) {
		wait_readable(fd);
		require(ioctl(fd, FIONREAD, &queued) == 0 && queued > 0, "FIONREAD");
		have += receive_some(fd, in + have, LEN - have);
	}
	require(memcmp(in, out, LEN) == 0, "echo");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool server = argc == 3;

	require(fd >= 0 && (server || argc == 5), "usage: echo [-a ADDRESS] -p PORT");
	address.sin_port = htons((unsigned short)atoi(argv[argc - 1]));
	address.sin_addr.s_addr = server ? htonl(INADDR_LOOPBACK) : inet_addr(argv[2]);
	if (server) {
		require(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
		require(listen(fd, 1) == 0, "listen");
		serve(fd);
	} else {
		require(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
		ask(fd);
	}
	return 0;
}
