// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bridge carries bytes between a line (line.h) and a socket pair's far end, whose near end is what the
// program has for its connection. It never loses or doubles a byte: what one side does not take
// waits, and is not read from the other side before.
#ifndef XSOCK_PROXY_BRIDGE_H
#define XSOCK_PROXY_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "xsock/proxy/line.h"
#include "xsock/proxy/loop.h"

struct aw_bridge;

/* What a bridge is begun with. */
struct aw_bridge_start {
	int far; /* the pair's end; the bridge's own */
	int tcp; /* the connection's socket, which is the line's; or -1 */
	struct stat tcp_file; /* what it is: the line may close it at any time */
	struct aw_line *line; /* the bridge's own */
	struct linger linger;
	/* The bridge is over, with this errno or 0; called once, before it is freed. */
	void (*over)(struct aw_bridge *bridge, int error, void *arg);
	void *arg;
};

/* 0 or an errno; then nothing has changed owners. */
int aw_bridge_create(struct aw_loop *loop, const struct aw_bridge_start *start,
		     struct aw_bridge **bridge);

/* For options; -1: it is closed. */
int aw_bridge_tcp(const struct aw_bridge *bridge);
struct aw_line *aw_bridge_line(const struct aw_bridge *bridge);
/* Bytes that the program has written and the bridge has not taken; that the bridge holds. */
size_t aw_bridge_unread(const struct aw_bridge *bridge);
size_t aw_bridge_unsent(const struct aw_bridge *bridge);
/* l_onoff with no time: the program's close resets the connection. */
void aw_bridge_set_linger(struct aw_bridge *bridge, const struct linger *linger);
/* Moves what can be moved. */
void aw_bridge_pump(struct aw_bridge *bridge);

#endif
