// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket calls of a library whose file is named as a verbs library's, for test_check_wire.c.
#include "check_wire_calls.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int verbs_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	/* No tail call, which would hide the caller. */
	volatile int done = connect(fd, to, len);

	return done;
}

int verbs_accept(int fd)
{
	volatile int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	return accepted;
}

ssize_t verbs_send(int fd, const void *bytes, size_t len)
{
	return send(fd, bytes, len, MSG_NOSIGNAL);
}

/* In two pieces. */
ssize_t verbs_sendmsg(int fd, const void *bytes, size_t len)
{
	char *at = (char *)(uintptr_t)bytes;
	struct iovec pieces[] = { { at, len / 3 }, { at + len / 3, len - len / 3 } };
	struct msghdr msg = { .msg_iov = pieces, .msg_iovlen = 2 };

	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

ssize_t verbs_recv(int fd, void *bytes, size_t len, int flags)
{
	return recv(fd, bytes, len, flags);
}

int verbs_shutdown(int fd)
{
	return shutdown(fd, SHUT_WR);
}

int verbs_close(int fd)
{
	return close(fd);
}
