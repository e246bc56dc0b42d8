// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "pipeline/stream.h"

#include "worker/fail.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define BACKLOG 4

static int listener = -1;

static int stream_socket(void (*prepare)(int fd))
{
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
		fail_errno("socket");
	if (prepare)
		prepare(fd);
	return fd;
}

static int delay_nothing(int fd)
{
	int on = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail_errno("no connection");
	return fd;
}

void stream_listen(const struct sockaddr_in *at, void (*prepare)(int fd))
{
	listener = stream_socket(prepare);
	if (bind(listener, (const struct sockaddr *)at, sizeof(*at)) != 0 ||
	    listen(listener, BACKLOG) != 0)
		fail_errno("cannot listen");
}

int stream_accept(void)
{
	return delay_nothing(accept(listener, NULL, NULL));
}

int stream_connect(const struct sockaddr_in *to, void (*prepare)(int fd))
{
	int fd = stream_socket(prepare);

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) != 0)
		fail_errno("cannot connect");
	return delay_nothing(fd);
}

bool stream_read(int fd, void *to, size_t len)
{
	char *at = to;

	while (len) {
		ssize_t got = recv(fd, at, len, MSG_WAITALL);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail_errno("recv");
		if (got == 0)
			return false;
		at += got;
		len -= (size_t)got;
	}
	return true;
}

void stream_write(int fd, const void *head, size_t head_len, const void *body, size_t body_len)
{
	struct iovec pieces[2] = { { (void *)head, head_len }, { (void *)body, body_len } };
	int first = 0;

	while (first < 2) {
		ssize_t sent;

		if (!pieces[first].iov_len) {
			first++;
			continue;
		}
		sent = writev(fd, pieces + first, 2 - first);
		if (sent < 0 && errno != EINTR)
			fail_errno("writev");
		for (int i = first; i < 2 && sent > 0; i++) {
			size_t of_it = (size_t)sent < pieces[i].iov_len ? (size_t)sent
									: pieces[i].iov_len;

			pieces[i].iov_base = (char *)pieces[i].iov_base + of_it;
			pieces[i].iov_len -= of_it;
			sent -= (ssize_t)of_it;
		}
	}
}
