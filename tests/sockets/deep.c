// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A module that is loaded with RTLD_DEEPBIND: its calls go to libc past the library under test.
#include <stddef.h>
#include <sys/socket.h>

int accept_deep(int listener);
ssize_t send_deep(int fd, const void *bytes, size_t len);
ssize_t recv_deep(int fd, void *bytes, size_t len);

int accept_deep(int listener)
{
	return accept(listener, NULL, NULL);
}

ssize_t send_deep(int fd, const void *bytes, size_t len)
{
	return send(fd, bytes, len, 0);
}

ssize_t recv_deep(int fd, void *bytes, size_t len)
{
	return recv(fd, bytes, len, MSG_WAITALL);
}
