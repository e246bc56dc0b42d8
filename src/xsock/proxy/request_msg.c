// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of what each order comes with, and the questions that the kernel is asked of an fd.
#include "xsock/proxy/request_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/base/log.h"
#include "xsock/proxy/closer.h"

enum paper {
	PAPER_TCP,
	PAPER_NEAR,
	PAPER_FAR,
	PAPER_REPLY,
	PAPER_MEMORY,
};

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14; every socket of a network namespace has the same one */
#endif

static const struct form {
	uint8_t count; /* of fds */
	enum paper papers[AW_REQUEST_FDS];
} forms[] = {
	[AW_REQUEST_START] = { 3, { PAPER_TCP, PAPER_FAR, PAPER_NEAR } },
	[AW_REQUEST_LISTEN] = { 2, { PAPER_TCP, PAPER_REPLY } },
	[AW_REQUEST_ACCEPTED] = { 1, { PAPER_TCP } },
	[AW_REQUEST_DECIDE] = { 2, { PAPER_TCP, PAPER_REPLY } },
	[AW_REQUEST_FAREWELL] = { 1, { PAPER_TCP } },
	[AW_REQUEST_GET_OPTION] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_REQUEST_SET_OPTION] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_REQUEST_SOCKET] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_REQUEST_DRAIN] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_REQUEST_ERROR] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_REQUEST_RELEASE] = { 1, { PAPER_REPLY } },
	[AW_REQUEST_RECORD] = { 5,
				{ PAPER_TCP, PAPER_FAR, PAPER_NEAR, PAPER_MEMORY, PAPER_REPLY } },
	[AW_REQUEST_PRESENT] = { 0, { 0 } },
};

static void take(struct aw_request_msg *msg, const struct cmsghdr *head)
{
	size_t octets = head->cmsg_len - CMSG_LEN(0);

	if (head->cmsg_level != SOL_SOCKET)
		return;
	if (head->cmsg_type == SCM_CREDENTIALS && octets == sizeof(msg->from)) {
		memcpy(&msg->from, CMSG_DATA(head), octets);
	} else if (head->cmsg_type == SCM_RIGHTS && octets <= sizeof(msg->fds)) {
		memcpy(msg->fds, CMSG_DATA(head), octets);
		msg->count = (int)(octets / sizeof(int));
	}
}

int aw_request_msg_recv(int control, struct aw_request_msg *msg)
{
	char room[CMSG_SPACE(sizeof(msg->fds)) + CMSG_SPACE(sizeof(msg->from))];
	struct iovec iov = { &msg->request, sizeof(msg->request) };
	/* Not the room's size: its padding is room for another fd, which nobody would close. */
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
		take(msg, head);
	if (got == 0 && !header.msg_controllen) /* a message has its sender beside it */
		return -1;
	if (header.msg_flags & MSG_CTRUNC)
		aw_xs_log(AW_XS_LOG_ERROR,
			  "the proxy process has no fd left and loses a connection: "
			  "raise the hard limit of open files");
	if (got != (ssize_t)sizeof(msg->request) || header.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		msg->request.magic = 0;
	return 1;
}

static int option_of(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

static bool is_local(int fd, int type)
{
	return option_of(fd, SO_DOMAIN) == AF_UNIX && option_of(fd, SO_TYPE) == type;
}

/* False: the kernel (before Linux 5.14) does not say. */
static bool read_network(int fd, uint64_t *network)
{
	socklen_t len = sizeof(*network);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, network, &len) == 0;
}

/* Whoever makes a network namespace has any port and any address there. */
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

/* Whether the order is carried out by the socket's names alone. */
static bool goes_by_names(const struct aw_request *request)
{
	return request->kind == AW_REQUEST_LISTEN || request->kind == AW_REQUEST_ACCEPTED ||
	       request->kind == AW_REQUEST_DECIDE;
}

/*
 * Its names, as far as it has them. In another network namespace a connection's own name would be another's here: it
 * has none then, and the peer's is for the status alone.
 */
static bool is_tcp(int fd, struct aw_request *request)
{
	socklen_t local_len = sizeof(request->local), remote_len = sizeof(request->remote);
	int domain = option_of(fd, SO_DOMAIN), v6only = 0;
	socklen_t len = sizeof(v6only);

	if ((domain != AF_INET && domain != AF_INET6) || option_of(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return false;
	(void)getpeername(fd, (struct sockaddr *)&request->remote, &remote_len);
	if (is_elsewhere(fd))
		return !goes_by_names(request);
	(void)getsockname(fd, (struct sockaddr *)&request->local, &local_len);
	(void)getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len);
	request->v6only = v6only;
	return true;
}

/* Of a socket, of which it is at hand. */
static bool read_ino(struct aw_request_msg *msg, int at)
{
	struct stat file;

	if (fstat(msg->fds[at], &file) != 0)
		return false;
	msg->request.ino = file.st_ino;
	return true;
}

/* No question goes to a file system before it is known to be the kernel's own: one in user space may not answer. */
static bool is_right(struct aw_request_msg *msg, int at, enum paper paper)
{
	int fd = msg->fds[at];

	switch (paper) {
	case PAPER_TCP:
		return is_tcp(fd, &msg->request) && read_ino(msg, at);
	case PAPER_NEAR:
		return is_local(fd, SOCK_STREAM) && read_ino(msg, at);
	case PAPER_FAR:
		return is_local(fd, SOCK_STREAM);
	case PAPER_REPLY:
		return is_local(fd, SOCK_SEQPACKET);
	case PAPER_MEMORY:
		/* It is memory: a read of another file may wait. */
		return fcntl(fd, F_GET_SEALS) >= 0;
	}
	return false;
}

static bool has_all(struct aw_request_msg *msg, const struct form *form)
{
	if (msg->count != form->count)
		return false;
	for (int i = 0; i < msg->count; i++)
		if (!is_right(msg, i, form->papers[i]))
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

/* Of a process of our own user: another one might become a program with more rights before we look. */
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
