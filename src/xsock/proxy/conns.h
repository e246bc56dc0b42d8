// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The connections that the proxy process carries, by the inode of the program's end of the pair.
#ifndef XSOCK_PROXY_CONNS_H
#define XSOCK_PROXY_CONNS_H

#include <stddef.h>
#include <stdint.h>

#include "xsock/base/kept.h"
#include "xsock/base/request.h"
#include "xsock/proxy/bridge.h"
#include "xsock/proxy/line_record.h"

/* A program that has written and closed may be gone when its server comes to the connection. */
#define AW_CONNS_PATIENCE_MS 600000

struct aw_conn {
	struct aw_conn *next;
	struct aw_bridge *bridge;
	uint64_t ino;
	uint64_t tcp_ino; /* of the TCP socket of a record; 0: an endpoint has it */
	pid_t pid; /* who began it, and fd there */
	int fd;
	uint8_t mode;
	struct sockaddr_storage remote;
	struct aw_kept kept;
};

/* NULL: there is none (any more). */
struct aw_conn *aw_conns_find(uint64_t ino);

/* Begins one. The fds are the proxy process's from here on. */
void aw_conns_start(struct aw_loop *loop, const struct aw_request *request, int tcp, int far);
/* Begins one with a record. 0 or an errno; then nothing has changed owners. */
int aw_conns_start_record(struct aw_loop *loop, const struct aw_request *request,
			  const struct aw_line_record_start *record);
/* The near end of the bridge over this TCP socket's record; -1: there is none. It stays where it is. */
int aw_conns_near(uint64_t tcp_ino);
/* The errno that a connection ended with, or 0; told once, like SO_ERROR. */
int aw_conns_error(uint64_t ino);
size_t aw_conns_count(void);
const struct aw_conn *aw_conns_first(void);

#endif
