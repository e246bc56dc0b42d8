// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A record over its TCP socket as a bridge's line. Other processes may go on with both meanwhile.
#ifndef XSOCK_PROXY_LINE_RECORD_H
#define XSOCK_PROXY_LINE_RECORD_H

#include "xsock/proxy/line.h"
#include "xsock/proxy/share.h"

struct aw_line_record_start {
	int tcp; /* the line's own */
	int far; /* the bridge's */
	int near; /* the line's own, for others that hold the slot, as long as there are any; -1: there are none */
	struct aw_share share; /* the line's own */
	bool threads; /* the program has threads that may sleep on the TCP socket */
};

/* NULL: no memory, and nothing has changed owners. */
struct aw_line *aw_line_of_record(const struct aw_line_record_start *start);
/* The program's end, for another program that holds the slot; it stays the line's. -1: there was none left. */
int aw_line_record_near(const struct aw_line *line);

#endif
