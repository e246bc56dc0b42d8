// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A list; who cannot be told anything is gone, and its connections with it.
#include "xsock/keeper/carriers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define INOS (AW_ORDER_VALUE_MAX / sizeof(uint64_t))

struct carrier {
	struct carrier *next;
	int control;
	size_t count;
	uint64_t inos[INOS];
};

static struct carrier *carriers;

void aw_carriers_add(const struct aw_order *order, int control)
{
	struct carrier *carrier = calloc(1, sizeof(*carrier));

	if (!carrier || order->len < 0 || order->len > AW_ORDER_VALUE_MAX) {
		free(carrier);
		close(control);
		return;
	}
	carrier->control = control;
	carrier->count = (size_t)order->len / sizeof(uint64_t);
	memcpy(carrier->inos, order->value, carrier->count * sizeof(uint64_t));
	carrier->next = carriers;
	carriers = carrier;
}

/* False: it is gone. */
static bool tell(const struct carrier *carrier, const struct aw_order *order, int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { .iov_base = (void *)order, .iov_len = sizeof(*order) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(carrier->control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EPIPE && errno != ECONNRESET);
}

static void drop(struct carrier **at)
{
	struct carrier *carrier = *at;

	*at = carrier->next;
	close(carrier->control);
	free(carrier);
}

static bool has(const struct carrier *carrier, uint64_t ino)
{
	for (size_t i = 0; i < carrier->count; i++)
		if (carrier->inos[i] == ino)
			return true;
	return false;
}

bool aw_carriers_pass(const struct aw_order *order, int fd)
{
	for (struct carrier **at = &carriers; *at; at = &(*at)->next) {
		if (!has(*at, order->ino))
			continue;
		if (tell(*at, order, fd))
			return true;
		drop(at);
		return false;
	}
	return false;
}

void aw_carriers_tell(const struct aw_order *order, int fd)
{
	struct carrier **at = &carriers;

	while (*at) {
		if (tell(*at, order, fd))
			at = &(*at)->next;
		else
			drop(at);
	}
}
