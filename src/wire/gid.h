// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InfiniBand's names of an end: a QP number, and a GID. A GID of RoCE v2 is an IP address, an IPv4
// address as ::ffff:a.b.c.d.
#ifndef WIRE_GID_H
#define WIRE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define QPN_MAX 0xffffffu
#define GID_LEN 16
#define GID_IPV4_AT 12

static inline bool gid_is_zero(const uint8_t *gid)
{
	static const uint8_t zero[GID_LEN];

	return memcmp(gid, zero, GID_LEN) == 0;
}

static inline bool gid_is_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[GID_IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, prefix, GID_IPV4_AT) == 0;
}

/* True for an IPv6 address that means an end of one link alone: another link may have an equal one. */
static inline bool gid_is_link_local(const uint8_t *gid)
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* addr: four octets in network order, as struct in_addr has them. */
static inline void gid_of_ipv4(uint8_t *gid, const void *addr)
{
	memset(gid, 0, GID_IPV4_AT - 2);
	memset(gid + GID_IPV4_AT - 2, 0xff, 2);
	memcpy(gid + GID_IPV4_AT, addr, GID_LEN - GID_IPV4_AT);
}

#endif
