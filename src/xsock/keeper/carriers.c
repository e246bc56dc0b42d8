// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A list; who cannot be told anything is gone, and its connections with it. How these have ended it has told before.
#include "xsock/keeper/carriers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "xsock/keeper/conns.h"

#define INOS (AW_ORDER_VALUE_MAX / sizeof(uint64_t))

struct carrier {
	struct carrier *next;
	struct aw_loop *loop;
	struct aw_source source; /* its control */
	size_t count;
	uint64_t inos[INOS];
};

static struct carrier *carriers;

/* False: there is no more, for now or for ever. */
static bool hear_one(const struct carrier *carrier, bool *is_gone)
{
	struct aw_order order;
	ssize_t got = recv(carrier->source.fd, &order, sizeof(order), MSG_DONTWAIT);
	int error;

	if (got == (ssize_t)sizeof(order) && order.kind == AW_ORDER_ENDED) {
		memcpy(&error, order.value, sizeof(error));
		aw_conns_note(order.ino, error);
	}
	*is_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
	return got > 0;
}

static void drop(struct carrier *carrier)
{
	struct carrier **at = &carriers;
	int control = carrier->source.fd;

	while (*at != carrier)
		at = &(*at)->next;
	*at = carrier->next;
	aw_loop_set(carrier->loop, &carrier->source, -1, 0);
	close(control);
	aw_loop_bury(carrier->loop, &carrier->source);
}

static void hear(struct carrier *carrier)
{
	bool is_gone = false;

	while (hear_one(carrier, &is_gone))
		;
	if (is_gone)
		drop(carrier);
}

void aw_carriers_hear(void)
{
	struct carrier *carrier, *next;

	for (carrier = carriers; carrier; carrier = next) {
		next = carrier->next;
		hear(carrier);
	}
}

static void ready(struct aw_source *source, uint32_t events)
{
	(void)events;
	hear(source->owner);
}

static void bury(struct aw_source *source)
{
	free(source->owner);
}

void aw_carriers_add(struct aw_loop *loop, const struct aw_order *order, int control)
{
	struct carrier *carrier = calloc(1, sizeof(*carrier));

	if (!carrier || order->len < 0 || order->len > AW_ORDER_VALUE_MAX) {
		free(carrier);
		close(control);
		return;
	}
	carrier->loop = loop;
	carrier->source =
		(struct aw_source){ .fd = -1, .ready = ready, .bury = bury, .owner = carrier };
	if (aw_loop_set(loop, &carrier->source, control, EPOLLIN) != 0) {
		free(carrier);
		close(control);
		return;
	}
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
	return sendmsg(carrier->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EPIPE && errno != ECONNRESET);
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
	struct carrier *carrier = carriers;

	while (carrier && !has(carrier, order->ino))
		carrier = carrier->next;
	if (!carrier || tell(carrier, order, fd))
		return carrier != NULL;
	hear(carrier);
	return false;
}

void aw_carriers_tell(const struct aw_order *order, int fd)
{
	for (const struct carrier *carrier = carriers; carrier; carrier = carrier->next)
		(void)tell(carrier, order, fd);
}
