// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of what each order comes with, and the questions that the kernel is asked of an fd.
#include "xsock/keeper/letter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/keeper/closer.h"
#include "xsock/preload/say.h"

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
	enum paper papers[AW_ORDER_FDS];
} forms[] = {
	[AW_ORDER_START] = { 3, { PAPER_TCP, PAPER_FAR, PAPER_NEAR } },
	[AW_ORDER_LISTEN] = { 2, { PAPER_TCP, PAPER_REPLY } },
	[AW_ORDER_ACCEPTED] = { 1, { PAPER_TCP } },
	[AW_ORDER_DECIDE] = { 2, { PAPER_TCP, PAPER_REPLY } },
	[AW_ORDER_FAREWELL] = { 1, { PAPER_TCP } },
	[AW_ORDER_GET_OPTION] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_ORDER_SET_OPTION] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_ORDER_SOCKET] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_ORDER_DRAIN] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_ORDER_ERROR] = { 2, { PAPER_NEAR, PAPER_REPLY } },
	[AW_ORDER_RELEASE] = { 1, { PAPER_REPLY } },
	[AW_ORDER_RECORD] = { 5, { PAPER_TCP, PAPER_FAR, PAPER_NEAR, PAPER_MEMORY, PAPER_REPLY } },
	[AW_ORDER_PRESENT] = { 0, { 0 } },
};

static void take(struct aw_letter *letter, const struct cmsghdr *head)
{
	size_t octets = head->cmsg_len - CMSG_LEN(0);

	if (head->cmsg_level != SOL_SOCKET)
		return;
	if (head->cmsg_type == SCM_CREDENTIALS && octets == sizeof(letter->from)) {
		memcpy(&letter->from, CMSG_DATA(head), octets);
	} else if (head->cmsg_type == SCM_RIGHTS && octets <= sizeof(letter->fds)) {
		memcpy(letter->fds, CMSG_DATA(head), octets);
		letter->count = (int)(octets / sizeof(int));
	}
}

int aw_letter_read(int control, struct aw_letter *letter)
{
	char room[CMSG_SPACE(sizeof(letter->fds)) + CMSG_SPACE(sizeof(letter->from))];
	struct iovec iov = { &letter->order, sizeof(letter->order) };
	/* Not the room's size: its padding is room for another fd, which nobody would close. */
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = CMSG_SPACE(sizeof(letter->from)) +
						CMSG_LEN(sizeof(letter->fds)) };
	ssize_t got;

	memset(letter, 0, sizeof(*letter));
	do
		got = recvmsg(control, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return 0;
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&msg); head; head = CMSG_NXTHDR(&msg, head))
		take(letter, head);
	if (got == 0 && !msg.msg_controllen) /* a message has its sender beside it */
		return -1;
	if (msg.msg_flags & MSG_CTRUNC)
		aw_say(AW_SAY_ERROR, "the keeper has no fd left and loses a connection: "
				     "raise the hard limit of open files");
	if (got != (ssize_t)sizeof(letter->order) || msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		letter->order.magic = 0;
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
static bool goes_by_names(const struct aw_order *order)
{
	return order->kind == AW_ORDER_LISTEN || order->kind == AW_ORDER_ACCEPTED ||
	       order->kind == AW_ORDER_DECIDE;
}

/*
 * Its names, as far as it has them. In another network namespace a connection's own name would be another's here: it
 * has none then, and the peer's is for the status alone.
 */
static bool is_tcp(int fd, struct aw_order *order)
{
	socklen_t local_len = sizeof(order->local), remote_len = sizeof(order->remote);
	int domain = option_of(fd, SO_DOMAIN), v6only = 0;
	socklen_t len = sizeof(v6only);

	if ((domain != AF_INET && domain != AF_INET6) || option_of(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return false;
	(void)getpeername(fd, (struct sockaddr *)&order->remote, &remote_len);
	if (is_elsewhere(fd))
		return !goes_by_names(order);
	(void)getsockname(fd, (struct sockaddr *)&order->local, &local_len);
	(void)getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len);
	order->v6only = v6only;
	return true;
}

/* Of a socket, of which it is at hand. */
static bool read_ino(struct aw_letter *letter, int at)
{
	struct stat file;

	if (fstat(letter->fds[at], &file) != 0)
		return false;
	letter->order.ino = file.st_ino;
	return true;
}

/* No question goes to a file system before it is known to be the kernel's own: one in user space may not answer. */
static bool is_right(struct aw_letter *letter, int at, enum paper paper)
{
	int fd = letter->fds[at];

	switch (paper) {
	case PAPER_TCP:
		return is_tcp(fd, &letter->order) && read_ino(letter, at);
	case PAPER_NEAR:
		return is_local(fd, SOCK_STREAM) && read_ino(letter, at);
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

static bool has_all(struct aw_letter *letter, const struct form *form)
{
	if (letter->count != form->count)
		return false;
	for (int i = 0; i < letter->count; i++)
		if (!is_right(letter, i, form->papers[i]))
			return false;
	return true;
}

bool aw_letter_check(struct aw_letter *letter)
{
	struct aw_order *order = &letter->order;

	if (order->magic != AW_ORDER_MAGIC || order->kind < AW_ORDER_START ||
	    order->kind > AW_ORDER_PRESENT || order->role > 2 || order->mode > 2 ||
	    order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return false;
	order->pid = letter->from.pid;
	if (order->kind != AW_ORDER_RELEASE)
		memset(&order->local, 0, sizeof(order->local));
	memset(&order->remote, 0, sizeof(order->remote));
	return has_all(letter, &forms[order->kind]);
}

int aw_letter_keep(struct aw_letter *letter, int at)
{
	int fd = letter->fds[at];

	letter->fds[at] = -1;
	return fd;
}

void aw_letter_close(struct aw_letter *letter)
{
	for (int i = 0; i < letter->count; i++)
		if (letter->fds[i] >= 0)
			aw_closer_close(letter->fds[i]);
}

/* Of a process of our own user: another one might become a program with more rights before we look. */
bool aw_letter_may_bind(const struct aw_letter *letter)
{
	unsigned long long effective = 0;
	char path[32], line[128];
	FILE *status;

	if (!letter->from.pid || letter->from.uid != geteuid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)letter->from.pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status) &&
	       sscanf(line, "CapEff: %llx", &effective) != 1)
		;
	if (status)
		fclose(status);
	return effective >> CAP_NET_BIND_SERVICE & 1;
}
