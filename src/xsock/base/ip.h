// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses of sockets; an IP address as 16 bytes, IPv4 mapped into IPv6.
#ifndef XSOCK_BASE_IP_H
#define XSOCK_BASE_IP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* The address of a TCP socket, in a fifth of the bytes of struct sockaddr_storage. */
union aw_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * Stores the address as 16 bytes and its port, both in network byte order. False: not an IP
 * address.
 */
static inline bool aw_ip_get(const struct sockaddr *addr, uint8_t ip[16], uint16_t *port)
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

static inline bool aw_ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

/* Writes the address as people do. */
static inline void aw_ip_write(const uint8_t ip[16], char text[INET6_ADDRSTRLEN])
{
	bool v4 = aw_ip_is_v4(ip);

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, text, INET6_ADDRSTRLEN);
}

#endif
