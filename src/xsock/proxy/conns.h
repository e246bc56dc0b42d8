// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections of the proxy process, found by the inode of the program's end of the pair.
#ifndef XSOCK_PROXY_CONNS_H
#define XSOCK_PROXY_CONNS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "xsock/base/kept.h"
#include "xsock/base/request.h"
#include "xsock/proxy/bridge.h"
#include "xsock/proxy/line_record.h"

/*
 * How long an endpoint waits for its peer's MPA start-up. A program may write, close and exit long
 * before its server accepts the connection.
 */
#define AW_CONNS_STARTUP_MS 600000

struct aw_proxy_conn {
	LIST_ENTRY(aw_proxy_conn) all, same_ino, same_tcp; /* same_*: with such an inode */
	struct aw_bridge *bridge;
	uint64_t ino;
	uint64_t tcp_ino; /* the inode of a record's TCP socket; 0: the line is an endpoint */
	pid_t pid; /* the process that began the connection, and the number of its fd there */
	int fd;
	uint8_t mode; /* enum aw_xs_mode */
	union aw_address remote;
	struct aw_kept kept;
};

/*
 * Creates an endpoint over *tcp and a line for it. NULL, and errno: it has failed. *tcp becomes -1 when the endpoint takes it, and
 * stays so if the line then fails.
 */
struct aw_line *aw_conns_make_line(bool initiates, bool nodelay, int *tcp);

/* Returns the connection whose near end has this inode, or NULL. */
struct aw_proxy_conn *aw_conns_find(uint64_t ino);

/*
 * Begins a connection over an endpoint. Takes tcp and far, also when it fails; a failure is logged,
 * and the program finds far closed.
 */
void aw_conns_start(const struct aw_request *request, int tcp, int far);
/*
 * Begins a connection over a record. Returns 0 or an errno; after an error the caller still owns
 * the fds and the share of record.
 */
int aw_conns_start_record(const struct aw_request *request,
			  const struct aw_line_record_start *record);
/*
 * Returns the near end of the bridge over this TCP socket's record, or -1. The line still owns the
 * fd.
 */
int aw_conns_near(uint64_t tcp_ino);
/*
 * Returns the errno that a connection ended with, or 0. The errno is returned once, as SO_ERROR is.
 */
int aw_conns_error(uint64_t ino);
/* Called now and then: resets connections whose program has closed and whose peer takes nothing. */
void aw_conns_review(void);
const struct aw_proxy_conn *aw_conns_first(void);

#endif
