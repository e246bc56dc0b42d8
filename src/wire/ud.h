// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A datagram of a UD QP: the header before its payload in one UDP datagram, and the 40 octets
// before it in a receive. Octets to values and back; net/ud decides which QP takes it.
// docs/roce-ud.md.
#ifndef WIRE_UD_H
#define WIRE_UD_H

#include "wire/gid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UD_HDR_LEN 24
#define UD_PAYLOAD_MAX 4096 /* the largest MTU that InfiniBand has */
#define UD_DATAGRAM_MAX (UD_HDR_LEN + UD_PAYLOAD_MAX)
#define UD_GRH_LEN 40
#define UD_QPN_MULTICAST 0xffffffu
#define UD_SL_MAX 15

enum ud_flag {
	UD_FLAG_IMM = 1,
	UD_FLAG_SOLICITED = 2,
};

struct ud_hdr {
	uint8_t flags; /* enum ud_flag */
	uint8_t sl; /* service level, 0 to UD_SL_MAX */
	uint32_t dest_qpn; /* 24 bits */
	uint32_t src_qpn; /* likewise */
	uint32_t qkey;
	uint32_t imm; /* 0 without UD_FLAG_IMM */
};

/* The route of a datagram, as the network layer tells it. */
struct ud_route {
	uint8_t src[GID_LEN];
	uint8_t dst[GID_LEN];
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t ifindex; /* interface that it came in by; 0: not known. In no header */
};

/*
 * False when it is no datagram of ours: too short or too long, another magic or version, bits or
 * numbers without a meaning. *hdr is written only on success; the payload follows UD_HDR_LEN
 * octets.
 */
bool ud_parse(const uint8_t *datagram, size_t len, struct ud_hdr *hdr);

/* Writes UD_HDR_LEN octets. */
void ud_build(const struct ud_hdr *hdr, uint8_t *p);

/* The address that a GID stands for. RoCE v1 writes an IPv4 group as ff0e::ffff:a.b.c.d. */
void ud_addr_of_gid(const uint8_t *gid, uint8_t *addr);

bool ud_addr_is_multicast(const uint8_t *addr);

/*
 * Writes the UD_GRH_LEN octets that RoCE v2 puts before the payload: an IPv6 header, or zeros and an
 * IPv4 header. len: octets of payload.
 */
void ud_grh_build(const struct ud_route *route, size_t len, uint8_t *p);

#endif
