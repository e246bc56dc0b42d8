// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer's side of a bridge: an endpoint, or a record over its TCP socket. No call waits. Calls are as those of
// xsock/ep.h with the same names.
#ifndef XSOCK_PROXY_LINE_H
#define XSOCK_PROXY_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "xsock/endpoint/ep.h"

#define AW_LINE_FDS 2

struct aw_line_fd {
	int fd; /* -1: none */
	uint32_t events; /* epoll's */
};

struct aw_line {
	const struct aw_line_ops *ops;
};

struct aw_line_ops {
	ssize_t (*send)(struct aw_line *line, const struct iovec *iov, int flags);
	ssize_t (*recv)(struct aw_line *line, const struct iovec *iov, int flags);
	/* The program sends no more; closed: it has closed its end, too. */
	void (*shutdown)(struct aw_line *line, bool closed);
	/* Frees the line. */
	void (*close)(struct aw_line *line, bool abort);
	short (*ready)(struct aw_line *line);
	void (*fds)(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS]);
	bool (*arm)(struct aw_line *line);
	int (*error)(struct aw_line *line);
	bool (*at_mark)(struct aw_line *line);
	/* Bytes that the peer has not got yet. As long as there are some, the line's fds make the bridge look again. */
	size_t (*unsent)(struct aw_line *line);
	/* Bytes that were taken and that a close would lose. */
	size_t (*owed)(struct aw_line *line);
	/* A kept option (xsock/kept.h) that the program has set. */
	void (*set_option)(struct aw_line *line, int level, int name, int value);
	void (*set_linger)(struct aw_line *line, const struct linger *linger);
	void (*stats)(struct aw_line *line, struct aw_xs_stats *stats);
};

/* The line of an endpoint that is under way, and is the line's from here on. NULL: no memory. */
struct aw_line *aw_line_of_ep(struct aw_xs_ep *ep);

#endif
