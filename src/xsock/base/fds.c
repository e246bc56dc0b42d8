// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends a message with fds.
#include "xsock/base/fds.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "xsock/base/libc.h"
#include "xsock/base/request.h"

int aw_fds_send(int to, const void *bytes, size_t len, const int *fds, int count, int flags)
{
	char room[CMSG_SPACE(sizeof(int) * AW_REQUEST_FDS)] = { 0 };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t size = sizeof(int) * (size_t)count;
	struct cmsghdr *head;
	ssize_t sent;

	if (count) {
		msg.msg_control = room;
		msg.msg_controllen = CMSG_SPACE(size);
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(head), fds, size);
	}
	do
		sent = aw_libc()->sendmsg(to, &msg, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? errno : 0;
}
