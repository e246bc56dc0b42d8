// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the preloaded library tells its keeper, the process that carries the program's iWARP
// connections: one datagram an order on a SOCK_SEQPACKET pair, fds beside it. Both ends are of one
// build; no order comes from the network. But whoever the program has become may write orders of its own: the
// keeper believes the kernel alone. An order names a socket by an fd of it, and its sender is who the kernel says.
#ifndef XSOCK_ORDER_H
#define XSOCK_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define AW_KEEPER_NAME "anywarp-keeper"
#define AW_KEEPER_CONTROL 3 /* the keeper's end, as it finds it */
#define AW_ORDER_MAGIC 0x61775831u
#define AW_ORDER_VALUE_MAX 512
#define AW_ORDER_FDS 5 /* RECORD's */

/*
 * With each its fds. TCP: a TCP socket. near: the program's end of a pair.  arena: that of the
 * program's records. reply: the socket for the answer. What is
 * not the sender's to say (below) the keeper finds out from them.
 */
enum aw_order_kind {
	AW_ORDER_START = 1, /* TCP, the pair's far end, near */
	AW_ORDER_LISTEN, /* TCP, reply: answer questions for this listener, whose program has records or not */
	AW_ORDER_ACCEPTED, /* TCP: it is the program's, whose listener is about to go */
	AW_ORDER_DECIDE, /* TCP, reply: has its client asked? No: it never will be iWARP */
	AW_ORDER_FAREWELL, /* TCP: its program has closed it, and its client, which has asked, sends a Request yet */
	AW_ORDER_GET_OPTION, /* near, reply: one that is kept */
	AW_ORDER_SET_OPTION, /* near, reply: likewise, or SO_LINGER */
	AW_ORDER_SOCKET, /* near, reply: the TCP socket, for an option that the sender then gets or sets */
	AW_ORDER_DRAIN, /* near, reply: when all of it is on its way, or after value, an int of ms */
	AW_ORDER_ERROR, /* near, reply: why did it end: an errno or 0 */
	AW_ORDER_RELEASE, /* reply, by the door none: the program wants the UDP address local */
	AW_ORDER_RECORD, /* TCP, the pair's far end, near, arena, reply: the socket's slot is to be bridged, unless it is */
	AW_ORDER_PRESENT, /* the sender has come to connections of another's */
};

struct aw_order {
	uint32_t magic;
	uint8_t kind, role, mode, nodelay;
	uint8_t threads; /* the program has several */
	uint8_t alone; /* no other process holds the slot */
	uint8_t records; /* the program has them, so that what its client was answered stands */
	uint32_t slot; /* of a record, in the arena */
	int32_t fd; /* the program's, for the status */
	int32_t level, name, len; /* an option, and how many octets value has */
	uint8_t value[AW_ORDER_VALUE_MAX];
	struct sockaddr_storage local; /* RELEASE's; else the keeper's finding, as all below */
	struct sockaddr_storage remote;
	int32_t pid;
	bool v6only;
	uint64_t ino; /* of near, or of the listener */
};

/* SOCKET's has the socket beside it; RECORD's has the near end of the bridge that there is already. */
struct aw_answer {
	int32_t error; /* an errno, or 0 */
	int32_t len;
	uint8_t value[AW_ORDER_VALUE_MAX];
};

#endif
