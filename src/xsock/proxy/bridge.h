// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A bridge is a pump (endpoint/pump.h) in the proxy process: it waits for both sides in the loop, and closes them when the connection has
// ended. Only the proxy process's one thread calls these functions; there is no lock.
#ifndef XSOCK_PROXY_BRIDGE_H
#define XSOCK_PROXY_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "xsock/endpoint/line.h"

/*
 * How long a bridge whose program has closed waits for a peer that takes nothing. The kernel ends an orphan whose window stays
 * closed when the pause between its probes has grown to two minutes, some five minutes on.
 */
#define AW_BRIDGE_STALL_MS 600000

struct aw_bridge;

/* The arguments of aw_bridge_create(). */
struct aw_bridge_start {
	int far; /* the pair's far end; the bridge closes it */
	int tcp; /* the connection's TCP socket, which the line owns; or -1 */
	struct stat tcp_file; /* identifies tcp's file: the line may close tcp at any time */
	struct aw_line *line; /* the bridge closes it */
	struct linger linger;
	/*
	 * Called once when the bridge closes, before the bridge is freed. error is an errno or 0.
	 */
	void (*on_end)(struct aw_bridge *bridge, int error, void *arg);
	void *arg;
};

/*
 * Creates a bridge and has the loop call it. Returns 0 or an errno. After an error the caller still
 * owns far and line.
 */
int aw_bridge_create(const struct aw_bridge_start *start, struct aw_bridge **bridge);

/* Returns the TCP socket, for reading and setting options; -1: the line has closed it. */
int aw_bridge_tcp(const struct aw_bridge *bridge);
struct aw_line *aw_bridge_line(const struct aw_bridge *bridge);
/* Returns how many bytes of the program's the peer has yet to receive. */
size_t aw_bridge_unsent(struct aw_bridge *bridge);
/*
 * Resets the connection if its program has closed and its peer has taken nothing for AW_BRIDGE_STALL_MS, as reviews found;
 * the bridge is freed then. now_ns: the time of CLOCK_MONOTONIC.
 */
void aw_bridge_review(struct aw_bridge *bridge, int64_t now_ns);
/*
 * Sets the program's SO_LINGER. With l_onoff and a time of zero the program's close resets the
 * connection.
 */
void aw_bridge_set_linger(struct aw_bridge *bridge, const struct linger *linger);

#endif
