// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the preloaded library tells its keeper, the process that carries the program's iWARP
// connections: one datagram an order on a SOCK_SEQPACKET pair, fds beside it. Both ends are of one
// build; no order comes from the network.
#ifndef XSOCK_ORDER_H
#define XSOCK_ORDER_H

#include <stdint.h>
#include <sys/socket.h>

#define AW_KEEPER_NAME "anywarp-keeper"
#define AW_KEEPER_CONTROL 3 /* the keeper's end, as it finds it */
#define AW_ORDER_MAGIC 0x61775831u
#define AW_ORDER_VALUE_MAX 512
#define AW_ORDER_FDS 3

enum aw_order_kind {
	AW_ORDER_START, /* fds: the TCP socket, the far end of the pair */
	AW_ORDER_LISTEN, /* answer questions for the listener ino at local */
	AW_ORDER_ACCEPTED, /* remote's connection to local is the program's, whose listener is about to go */
	AW_ORDER_DECIDE, /* has remote asked for its connection to local? No: it never will be iWARP */
	AW_ORDER_GET_OPTION, /* of the connection ino */
	AW_ORDER_SET_OPTION,
	AW_ORDER_DRAIN, /* answered when all of ino is on its way, or after value, an int of ms */
	AW_ORDER_RELEASE, /* the program wants the UDP address local */
	AW_ORDER_DIRECT, /* one has begun in the program itself; fds: its TCP socket, its lifeline, its will */
	AW_ORDER_CARRIER, /* fd: who orders another keeper, which has the connections in value, an array of inos */
	AW_ORDER_STATUS, /* to a carrier: the program pid, line by line */
	AW_ORDER_ERROR, /* why did the connection ino end: an errno or 0 */
	AW_ORDER_PRESENT, /* the process pid has come to connections of another's */
	AW_ORDER_ENDED, /* from a carrier: ino has ended, with the errno value */
};

/* One with an answer has the socket for it as its last fd. */
struct aw_order {
	uint32_t magic;
	uint8_t kind, role, mode, nodelay;
	int32_t pid, fd; /* the program's, for the status */
	uint64_t ino; /* of the program's end of the pair, or of the listener */
	struct sockaddr_storage local, remote;
	int32_t level, name, len; /* an option, and how many octets value has */
	uint8_t value[AW_ORDER_VALUE_MAX];
};

struct aw_answer {
	int32_t error; /* an errno, or 0 */
	int32_t len;
	uint8_t value[AW_ORDER_VALUE_MAX];
};

#endif
