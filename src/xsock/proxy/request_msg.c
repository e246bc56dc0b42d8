// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of the fds that each request comes with, and what the kernel reports about an fd.
#include "xsock/proxy/request_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/sockopt.h"
#include "xsock/proxy/closer.h"

enum fd_kind {
	FD_TCP,
	FD_NEAR,
	FD_FAR,
	FD_REPLY,
	FD_MEMORY,
};

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14; all sockets of a network namespace have the same one */
#endif

static const struct form {
	uint8_t count; /* how many fds */
	enum fd_kind kinds[AW_REQUEST_FDS];
} forms[] = {
	[AW_REQUEST_START] = { 3, { FD_TCP, FD_FAR, FD_NEAR } },
	[AW_REQUEST_LISTEN] = { 2, { FD_TCP, FD_REPLY } },
	[AW_REQUEST_ACCEPTED] = { 1, { FD_TCP } },
	[AW_REQUEST_DECIDE] = { 2, { FD_TCP, FD_REPLY } },
	[AW_REQUEST_FAREWELL] = { 1, { FD_TCP } },
	[AW_REQUEST_GET_OPTION] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_SET_OPTION] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_SOCKET] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_DRAINED] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_ERROR] = { 2, { FD_NEAR, FD_REPLY } },
	[AW_REQUEST_RELEASE] = { 1, { FD_REPLY } },
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

/* Reads the cookie of fd's network namespace. False: the kernel is older than Linux 5.14. */
static bool read_network(int fd, uint64_t *network)
{
	socklen_t len = sizeof(*network);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, network, &len) == 0;
}

/*
 * Returns whether fd is of another network namespace. A program that makes one has every port and
 * address there.
 */
static bool is_elsewhere(int fd)
{
	static uint64_t ours;
	uint64_t network;
	int own;

	if (!ours) {
		own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		(void)read_network(own, &ours);
		if (own >= 0)
			close(own);
	}
	return ours && read_network(fd, &network) && network != ours;
}

/* Returns whether the request is served by the socket's addresses alone. */
static bool goes_by_names(const struct aw_request *request)
{
	return request->kind == AW_REQUEST_LISTEN || request->kind == AW_REQUEST_ACCEPTED ||
	       request->kind == AW_REQUEST_DECIDE;
}

/*
 * Checks that fd is a TCP socket and reads its addresses. The local address of a socket in another
 * network namespace may be another program's here: such a socket gets none, and its peer's is for
 * the status alone.
 */
static bool is_tcp(int fd, struct aw_request *request)
{
	socklen_t local_len = sizeof(request->local), remote_len = sizeof(request->remote);
	int domain = aw_sockopt_int(fd, SOL_SOCKET, SO_DOMAIN, -1);

	if ((domain != AF_INET && domain != AF_INET6) ||
	    aw_sockopt_int(fd, SOL_SOCKET, SO_PROTOCOL, -1) != IPPROTO_TCP)
		return false;
	(void)getpeername(fd, (struct sockaddr *)&request->remote, &remote_len);
	if (is_elsewhere(fd))
		return !goes_by_names(request);
	(void)getsockname(fd, (struct sockaddr *)&request->local, &local_len);
	request->v6only = aw_sockopt_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	request->shares_port = aw_sockopt_int(fd, SOL_SOCKET, SO_REUSEPORT, -1) > 0;
	return true;
}

/* Reads the inode of an fd that is known to be a socket: fstat() of a socket never waits. */
static bool read_ino(struct aw_request_msg *msg, int at)
{
	struct stat file;

	if (fstat(msg->fds[at], &file) != 0)
		return false;
	msg->request.ino = file.st_ino;
	return true;
}

/*
 * Checks an fd. No call here reaches a file system before the fd is known to be the kernel's own
 * file: a file system in user space may not answer.
 */
static bool fd_check(struct aw_request_msg *msg, int at, enum fd_kind kind)
{
	int fd = msg->fds[at];

	switch (kind) {
	case FD_TCP:
		return is_tcp(fd, &msg->request) && read_ino(msg, at);
	case FD_NEAR:
		return is_local(fd, SOCK_STREAM) && read_ino(msg, at);
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

static bool has_all(struct aw_request_msg *msg, const struct form *form)
{
	if (msg->count != form->count)
		return false;
	for (int i = 0; i < msg->count; i++)
		if (!fd_check(msg, i, form->kinds[i]))
			return false;
	return true;
}

bool aw_request_msg_check(struct aw_request_msg *msg)
{
	struct aw_request *request = &msg->request;

	if (request->magic != AW_REQUEST_MAGIC || request->kind < AW_REQUEST_START ||
	    request->kind > AW_REQUEST_PRESENT || request->role > 2 || request->mode > 2 ||
	    request->len < 0 || request->len > AW_REQUEST_VALUE_MAX)
		return false;
	request->pid = msg->from.pid;
	if (request->kind != AW_REQUEST_RELEASE)
		memset(&request->local, 0, sizeof(request->local));
	memset(&request->remote, 0, sizeof(request->remote));
	return has_all(msg, &forms[request->kind]);
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

/* A process of another user might exec a program with more rights before the look. */
bool aw_request_msg_may_bind(const struct aw_request_msg *msg)
{
	unsigned long long effective = 0;
	char path[32], line[128];
	FILE *status;

	if (!msg->from.pid || msg->from.uid != geteuid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)msg->from.pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status) &&
	       sscanf(line, "CapEff: %llx", &effective) != 1)
		;
	if (status)
		fclose(status);
	return effective >> CAP_NET_BIND_SERVICE & 1;
}
