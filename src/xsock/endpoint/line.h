// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer's side of a pump: an endpoint (line_ep.c), or in the proxy process also a record over its TCP socket
// (proxy/line_record.c), a session of TLS (proxy/line_tls.c) or a client whose Request is still due (proxy/line_client.c). No function waits. A function without a comment does what
// aw_xs_ep_ of the same name does (ep.h).
#ifndef XSOCK_ENDPOINT_LINE_H
#define XSOCK_ENDPOINT_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "xsock/endpoint/ep.h"

#define AW_LINE_FDS 2

struct aw_line_fd {
	int fd; /* -1: there is none */
	uint32_t events; /* EPOLL* */
};

struct aw_line {
	const struct aw_line_ops *ops;
};

struct aw_line_ops {
	ssize_t (*send)(struct aw_line *line, const struct iovec *iov, int flags);
	ssize_t (*recv)(struct aw_line *line, const struct iovec *iov, int flags);
	/*
	 * Called once the program has shut down writing. closed: the program has also closed its
	 * end.
	 */
	void (*shutdown)(struct aw_line *line, bool closed);
	/* Closes the connection, by a reset if abort, and frees the line. */
	void (*close)(struct aw_line *line, bool abort);
	/* undelivered: how many bytes that recv has given are not in the pair yet. */
	short (*ready)(struct aw_line *line, size_t undelivered);
	void (*fds)(struct aw_line *line, struct aw_line_fd fds[AW_LINE_FDS]);
	bool (*arm)(struct aw_line *line);
	int (*error)(struct aw_line *line);
	bool (*at_mark)(struct aw_line *line);
	/*
	 * Returns how many bytes the peer has not received. While there are some, the line's fds
	 * become ready again.
	 */
	size_t (*unsent)(struct aw_line *line);
	/* Returns how many bytes the line has taken that a close would lose. */
	size_t (*owed)(struct aw_line *line);
	/* Applies a kept option (xsock/base/kept.h) that the program has set. */
	void (*set_option)(struct aw_line *line, int level, int name, int value);
	void (*set_linger)(struct aw_line *line, const struct linger *linger);
	void (*stats)(struct aw_line *line, struct aw_xs_stats *stats);
	/* NULL, or a function that returns the line that has taken this one's place, which is freed; NULL: none has. */
	struct aw_line *(*become)(struct aw_line *line);
};

struct aw_line_ep {
	struct aw_line line;
	struct aw_xs_ep *ep;
};

/* Makes a line of an endpoint in the caller's memory: close is for the next function's alone. */
void aw_line_ep_init(struct aw_line_ep *line, struct aw_xs_ep *ep);
/*
 * Makes a line of an endpoint in start-up, and takes the endpoint. NULL: no memory; the caller
 * keeps ep.
 */
struct aw_line *aw_line_of_ep(struct aw_xs_ep *ep);

#endif
