// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP probe. A client in `auto` sends it to a server once its TCP connection is established, to
// ask whether this connection may become iWARP; it goes to the address and port that TCP has
// connected to. No reply, and any reply but a yes with the same nonce, means no. Numbers are in
// network byte order.
//
//     bytes 0-7   "anywarp?", in a reply "anywarp!"
//     byte  8     1, the version
//     byte  9     in a probe 4 if the client has records, else 0; in a reply 1 (yes) or 0 (no), and with yes 4 more
//                 if both the client and the server have records. 2 stood for records without urgent bytes: such
//                 an end and one of today agree on a bridge
//     bytes 10-11 the client's TCP port
//     bytes 12-27 the client's address as it knows it, IPv4 mapped into IPv6
//     bytes 28-43 a random nonce
#ifndef XSOCK_BASE_PROBE_WIRE_H
#define XSOCK_BASE_PROBE_WIRE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define AW_PROBE_LEN 44
#define AW_PROBE_ASKS "anywarp?"
#define AW_PROBE_ANSWERS "anywarp!"
#define AW_PROBE_VERSION 1
#define AW_PROBE_VERSION_AT 8
#define AW_PROBE_YES_AT 9
#define AW_PROBE_YES 1
#define AW_PROBE_RECORDS 4
#define AW_PROBE_PORT_AT 10
#define AW_PROBE_ADDR_AT 12
#define AW_PROBE_NONCE_AT 28
#define AW_PROBE_NONCE_LEN 16

/*
 * Stores the address as 16 bytes and its port, both in network byte order. False: not an IP
 * address.
 */
static inline bool aw_probe_addr(const struct sockaddr *addr, uint8_t ip[16], uint16_t *port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (addr->sa_family == AF_INET) {
		memcpy(&v4, addr, sizeof(v4));
		memset(ip, 0, 10);
		memset(ip + 10, 0xff, 2);
		memcpy(ip + 12, &v4.sin_addr, 4);
		*port = v4.sin_port;
		return true;
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(&v6, addr, sizeof(v6));
	memcpy(ip, &v6.sin6_addr, 16);
	*port = v6.sin6_port;
	return true;
}

#endif
