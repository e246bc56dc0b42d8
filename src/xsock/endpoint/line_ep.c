// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint as a line.
#include "xsock/endpoint/line.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>

_Static_assert(AW_LINE_FDS == AW_XS_EP_FDS, "a line has an endpoint's fds");

static struct aw_xs_ep *ep_of(struct aw_line *line)
{
	return ((struct aw_line_ep *)line)->ep;
}

static ssize_t ep_send(struct aw_line *line, const struct iovec *iov, int flags)
{
	return aw_xs_ep_send(ep_of(line), iov, 1, flags);
}

static ssize_t ep_recv(struct aw_line *line, const struct iovec *iov, int flags)
{
	return aw_xs_ep_recv(ep_of(line), iov, 1, flags);
}

/*
 * Shuts down writing, unless the program has closed: ep_close() then tells the peer of both
 * directions' end in one message.
 */
static void ep_shutdown(struct aw_line *line, bool closed)
{
	if (!closed)
		(void)aw_xs_ep_shutdown(ep_of(line), SHUT_WR);
}

static void ep_close(struct aw_line *line, bool abort)
{
	aw_xs_ep_close(ep_of(line), abort);
	free(line);
}

static short ep_ready(struct aw_line *line, size_t undelivered)
{
	(void)undelivered;
	return aw_xs_ep_ready(ep_of(line));
}

static void ep_fds(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS])
{
	struct pollfd polled[AW_XS_EP_FDS];

	aw_xs_ep_fds(ep_of(line), polled);
	for (int i = 0; i < AW_LINE_FDS; i++)
		fds[i] = (struct aw_line_fd){ polled[i].fd, (uint32_t)polled[i].events };
}

static bool ep_arm(struct aw_line *line)
{
	return aw_xs_ep_arm(ep_of(line));
}

static int ep_error(struct aw_line *line)
{
	return aw_xs_ep_error(ep_of(line));
}

static bool ep_at_mark(struct aw_line *line)
{
	return aw_xs_ep_at_mark(ep_of(line));
}

static size_t ep_unsent(struct aw_line *line)
{
	return aw_xs_ep_unsent(ep_of(line));
}

/* Returns 0: a closed endpoint lingers until its bytes are sent. */
static size_t ep_owed(struct aw_line *line)
{
	(void)line;
	return 0;
}

static void ep_set_option(struct aw_line *line, int level, int name, int value)
{
	if (level == IPPROTO_TCP && name == TCP_NODELAY)
		aw_xs_ep_set_nodelay(ep_of(line), value != 0);
}

/* Does nothing: the bridge resets the connection itself. */
static void ep_set_linger(struct aw_line *line, const struct linger *linger)
{
	(void)line;
	(void)linger;
}

static void ep_stats(struct aw_line *line, struct aw_xs_stats *stats)
{
	aw_xs_ep_stats(ep_of(line), stats);
}

void aw_line_ep_init(struct aw_line_ep *line, struct aw_xs_ep *ep)
{
	static const struct aw_line_ops ops = {
		.send = ep_send,
		.recv = ep_recv,
		.shutdown = ep_shutdown,
		.close = ep_close,
		.ready = ep_ready,
		.fds = ep_fds,
		.arm = ep_arm,
		.error = ep_error,
		.at_mark = ep_at_mark,
		.unsent = ep_unsent,
		.owed = ep_owed,
		.set_option = ep_set_option,
		.set_linger = ep_set_linger,
		.stats = ep_stats,
	};

	*line = (struct aw_line_ep){ { &ops }, ep };
}

struct aw_line *aw_line_of_ep(struct aw_xs_ep *ep)
{
	struct aw_line_ep *line = malloc(sizeof(*line));

	if (!line)
		return NULL;
	aw_line_ep_init(line, ep);
	return &line->line;
}
