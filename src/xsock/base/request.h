// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the preloaded library tells its proxy process, the process that carries the program's iWARP
// connections: one datagram an order on a SOCK_SEQPACKET pair, fds beside it. Both ends are of one
// build; no order comes from the network. But whoever the program has become may write orders of its own: the
// proxy process believes the kernel alone. An order names a socket by an fd of it, and its sender is who the kernel says.
#ifndef XSOCK_BASE_REQUEST_H
#define XSOCK_BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_PROXY_NAME "anywarp-proxy"
#define AW_PROXY_CONTROL 3 /* the proxy process's end, as it finds it */
#define AW_REQUEST_MAGIC 0x61775831u
#define AW_REQUEST_VALUE_MAX 512
#define AW_REQUEST_FDS 5 /* RECORD's */

/*
 * With each its fds. TCP: a TCP socket. near: the program's end of a pair.  arena: that of the
 * program's records. reply: the socket for the answer. What is
 * not the sender's to say (below) the proxy process finds out from them.
 */
enum aw_request_kind {
	AW_REQUEST_START = 1, /* TCP, the pair's far end, near */
	AW_REQUEST_LISTEN, /* TCP, reply: answer questions for this listener, whose program has records or not */
	AW_REQUEST_ACCEPTED, /* TCP: it is the program's, whose listener is about to go */
	AW_REQUEST_DECIDE, /* TCP, reply: has its client asked? No: it never will be iWARP */
	AW_REQUEST_FAREWELL, /* TCP: its program has closed it, and its client, which has asked, sends a Request yet */
	AW_REQUEST_GET_OPTION, /* near, reply: one that is kept */
	AW_REQUEST_SET_OPTION, /* near, reply: likewise, or SO_LINGER */
	AW_REQUEST_SOCKET, /* near, reply: the TCP socket, for an option that the sender then gets or sets */
	AW_REQUEST_DRAIN, /* near, reply: when all of it is on its way, or after value, an int of ms */
	AW_REQUEST_ERROR, /* near, reply: why did it end: an errno or 0 */
	AW_REQUEST_RELEASE, /* reply, by the door none: the program wants the UDP address local */
	AW_REQUEST_RECORD, /* TCP, the pair's far end, near, arena, reply: the socket's slot is to be bridged, unless it is */
	AW_REQUEST_PRESENT, /* the sender has come to connections of another's */
};

struct aw_request {
	uint32_t magic;
	uint8_t kind, role, mode, nodelay;
	uint8_t threads; /* the program has several */
	uint8_t alone; /* no other process holds the slot */
	uint8_t records; /* the program has them, so that what its client was answered stands */
	uint32_t slot; /* of a record, in the arena */
	int32_t fd; /* the program's, for the status */
	int32_t level, name, len; /* an option, and how many bytes value has */
	uint8_t value[AW_REQUEST_VALUE_MAX];
	struct sockaddr_storage
		local; /* RELEASE's; else the proxy process's finding, as all below */
	struct sockaddr_storage remote;
	int32_t pid;
	bool v6only;
	uint64_t ino; /* of near, or of the listener */
};

/* SOCKET's has the socket beside it; RECORD's has the near end of the bridge that there is already. */
struct aw_reply {
	int32_t error; /* an errno, or 0 */
	int32_t len;
	uint8_t value[AW_REQUEST_VALUE_MAX];
};

#endif
