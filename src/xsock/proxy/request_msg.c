// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of the fds that each request comes with, and what the kernel reports about an fd.
#include "xsock/proxy/request_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/rules.h"
#include "xsock/base/sockopt.h"
#include "xsock/proxy/closer.h"

enum fd_kind {
	FD_TCP,
	FD_NEAR,
	FD_FAR,
	FD_REPLY,
	FD_MEMORY,
};

static const struct form {
	uint8_t count; /* how many fds */
	enum fd_kind kinds[AW_REQUEST_FDS];
} forms[] = {
	[AW_REQUEST_START] = { 3, { FD_TCP, FD_FAR, FD_NEAR } },
	[AW_REQUEST_GET_OPTION] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_SET_OPTION] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_SOCKET] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_DRAINED] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_ERROR] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_RECORD] = { 5, { FD_TCP, FD_FAR, FD_NEAR, FD_MEMORY, FD_REPLY } },
	[AW_REQUEST_PRESENT] = { 0, { 0 } },
};

static void take_cmsg(struct aw_request_msg *msg, const struct cmsghdr *head)
{
	size_t len = head->cmsg_len - CMSG_LEN(0);

	if (head->cmsg_level != SOL_SOCKET)
		return;
	if (head->cmsg_type == SCM_CREDENTIALS && len == sizeof(msg->from)) {
		memcpy(&msg->from, CMSG_DATA(head), len);
	} else if (head->cmsg_type == SCM_RIGHTS && len <= sizeof(msg->fds)) {
		memcpy(msg->fds, CMSG_DATA(head), len);
		msg->count = (int)(len / sizeof(int));
	}
}

int aw_request_msg_recv(int control, struct aw_request_msg *msg)
{
	char room[CMSG_SPACE(sizeof(msg->fds)) + CMSG_SPACE(sizeof(msg->from))];
	struct iovec iov = { &msg->request, sizeof(msg->request) };
	/* Not the room's size: its padding would hold another fd, which nothing would close. */
	struct msghdr header = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = CMSG_SPACE(sizeof(msg->from)) +
						   CMSG_LEN(sizeof(msg->fds)) };
	ssize_t got;

	memset(msg, 0, sizeof(*msg));
	do
		got = recvmsg(control, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return 0;
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&header); head; head = CMSG_NXTHDR(&header, head))
		take_cmsg(msg, head);
	/* every message has SCM_CREDENTIALS, so that this is the end */
	if (got == 0 && !header.msg_controllen)
		return -1;
	if (header.msg_flags & MSG_CTRUNC)
		aw_log(AW_LOG_ERROR, "the proxy process has no fd left and loses a connection: "
				     "raise the hard limit of open files");
	if (got != (ssize_t)sizeof(msg->request) || header.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		msg->request.magic = 0;
	return 1;
}

static bool is_local(int fd, int type)
{
	return aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, -1) == AF_UNIX &&
	       aw_sockopt_int(fd, SOL_SOCKET, SO_TYPE, -1) == type;
}

/*
 * Checks an fd, and notes what the request needs of it. No call here reaches a file system before the fd is known to be
 * the kernel's own file: a file system in user space may not answer.
 */
static bool fd_check(struct aw_request_msg *msg, int at, enum fd_kind kind)
{
	struct aw_request *request = &msg->request;
	socklen_t len = sizeof(request->remote);
	int domain, fd = msg->fds[at];
	struct stat file;

	switch (kind) {
	case FD_TCP:
		domain = aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, -1);
		if ((domain != AF_INET && domain != AF_INET6) ||
		    aw_sockopt_int(fd, SOL_SOCKET, SO_PROTOCOL, -1) != IPPROTO_TCP)
			return false;
		/* The peer's address is for the status alone. */
		(void)getpeername(fd, (struct sockaddr *)&request->remote, &len);
		return true;
	case FD_NEAR:
		/* fstat() of a socket never waits. */
		if (!is_local(fd, SOCK_STREAM) || fstat(fd, &file) != 0)
			return false;
		request->ino = file.st_ino;
		return true;
	case FD_FAR:
		return is_local(fd, SOCK_STREAM);
	case FD_REPLY:
		return is_local(fd, SOCK_SEQPACKET);
	case FD_MEMORY:
		/* Only memfds have seals; a read of another file may wait. */
		return fcntl(fd, F_GET_SEALS) >= 0;
	}
	return false;
}

bool aw_request_msg_check(struct aw_request_msg *msg)
{
	struct aw_request *request = &msg->request;
	const struct form *form;

	if (request->magic != AW_REQUEST_MAGIC || request->kind < AW_REQUEST_START ||
	    request->kind > AW_REQUEST_PRESENT || request->role > 2 ||
	    request->mode > AW_XS_MODE_LAST || request->len < 0 ||
	    request->len > AW_REQUEST_VALUE_MAX)
		return false;
	request->pid = msg->from.pid;
	memset(&request->remote, 0, sizeof(request->remote));
	form = &forms[request->kind];
	if (msg->count != form->count)
		return false;
	for (int i = 0; i < msg->count; i++)
		if (!fd_check(msg, i, form->kinds[i]))
			return false;
	return true;
}

int aw_request_msg_take_fd(struct aw_request_msg *msg, int at)
{
	int fd = msg->fds[at];

	msg->fds[at] = -1;
	return fd;
}

void aw_request_msg_close(struct aw_request_msg *msg)
{
	for (int i = 0; i < msg->count; i++)
		if (msg->fds[i] >= 0)
			aw_closer_close(msg->fds[i]);
}
