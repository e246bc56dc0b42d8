// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record over its TCP socket as a bridge's line. Other processes may go on using both.
#ifndef XSOCK_PROXY_LINE_RECORD_H
#define XSOCK_PROXY_LINE_RECORD_H

#include "xsock/endpoint/line.h"
#include "xsock/proxy/share.h"

struct aw_line_record_start {
	int tcp; /* the line closes it */
	int far; /* the far end; the bridge closes it */
	int near; /* the near end, for other processes that hold the slot; the line closes it; -1: none do */
	struct aw_share share; /* the line gives it back */
	bool threads; /* the program has threads that may sleep on the TCP socket */
};

/* NULL, and errno: no memory or fd; the caller still owns the fds and the share. */
struct aw_line *aw_line_of_record(const struct aw_line_record_start *start);
/* Frees a line, or NULL, and leaves the fds and the share to the caller. */
void aw_line_record_free(struct aw_line *line);
/* Returns the near end, which the line still owns; -1: the line has closed it. */
int aw_line_record_near(const struct aw_line *line);

#endif
