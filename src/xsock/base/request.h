// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests that the preloaded library sends to its proxy process, which has the program's iWARP
// connections: each request is one datagram on a SOCK_SEQPACKET pair, with fds beside it. Both ends
// are of one build, and no request comes from the network. A program that has changed its user
// keeps its socket to the proxy process. The proxy process therefore trusts nothing in a request
// that the kernel can tell it: a request names a socket by an fd, and the kernel names the sender.
//
// The program itself sets the socket options that the proxy process does not keep, on the TCP
// socket that the proxy process lends it for the call. The proxy process maps no memory of the
// program's. The name of a socket that comes with an fd from another process is believed if that
// process is of the same user or of root (process/name.h).
#ifndef XSOCK_BASE_REQUEST_H
#define XSOCK_BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "xsock/base/ip.h"

#define AW_PROXY_NAME "anywarp-proxy"
#define AW_PROXY_CONTROL 3 /* the number of the proxy process's end */
#define AW_REQUEST_MAGIC 0x61775831u
#define AW_REQUEST_VALUE_MAX \
	8 /* struct linger; of a larger value the kernel, too, takes the first bytes */
#define AW_REQUEST_FDS 5 /* those of RECORD */

/*
 * Each with its fds. TCP: a TCP socket. near: the program's end of a pair; far: the other end.
 * arena: that of the program's records. reply: the socket that the reply goes to. The proxy process
 * finds out from the fds what it does not take from the sender (below).
 */
enum aw_request_kind {
	AW_REQUEST_START = 1, /* TCP, far, near: start MPA on TCP and bridge it */
	AW_REQUEST_GET_OPTION, /* near, reply: get a kept option */
	AW_REQUEST_SET_OPTION, /* near, reply: set a kept option or SO_LINGER */
	/* near, reply: send the TCP socket, on which the sender gets or sets an option */
	AW_REQUEST_SOCKET,
	AW_REQUEST_DRAINED, /* near, reply: has the peer all bytes? EAGAIN: it has not */
	AW_REQUEST_ERROR, /* near, reply: the errno that the connection ended with, or 0 */
	AW_REQUEST_RECORD, /* TCP, far, near, arena, reply: bridge the socket's slot unless it is */
	AW_REQUEST_PRESENT, /* the sender has got connections by fork or exec: serve its status */
};

struct aw_request {
	uint32_t magic;
	uint8_t kind, role, mode, nodelay;
	uint8_t threads; /* the program has several threads */
	uint8_t alone; /* no other process holds the slot */
	uint32_t slot; /* the number of the record's slot */
	int32_t fd; /* the program's fd, for the status */
	int32_t level, name, len; /* an option; len: the bytes of value */
	uint8_t value[AW_REQUEST_VALUE_MAX];
	/* filled in by the proxy process */
	union aw_address remote;
	int32_t pid;
	uint64_t ino; /* of near */
};

/*
 * A reply. That to SOCKET has the TCP socket beside it; that to RECORD has the near end if the slot
 * was bridged already.
 */
struct aw_reply {
	int32_t error; /* an errno, or 0 */
	int32_t len;
	uint8_t value[AW_REQUEST_VALUE_MAX];
};

#endif
