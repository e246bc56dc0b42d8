// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of a UD datagram and the header that its receive shows. An octet that has no meaning
// is zero, so that a later version can give it one.
#include "wire/ud.h"

#include "wire/octets.h"

#include <string.h>

enum {
	MAGIC = 0,
	VERSION = 4,
	FLAGS = 5,
	SL = 6,
	ZERO = 7,
	DEST_QPN = 8,
	SRC_QPN = 12,
	QKEY = 16,
	IMM = 20,
};

enum {
	MAGIC_VALUE = 0x61774453, /* "awDS" */
	VERSION_VALUE = 1,
	FLAGS_KNOWN = UD_FLAG_IMM | UD_FLAG_SOLICITED,
};

enum {
	UDP_HDR_LEN = 8,
	UDP_PROTOCOL = 17,
	IPV4_AT = 20, /* behind as many zeros */
	IPV4_HDR_LEN = 20,
	IPV4_VERSION_IHL = 0x45,
	IPV4_DONT_FRAGMENT = 0x4000,
	IPV4_CHECKSUM = 10,
};

static bool numbers_valid(const struct ud_hdr *hdr)
{
	if (hdr->dest_qpn > QPN_MAX || hdr->src_qpn > QPN_MAX || hdr->sl > UD_SL_MAX)
		return false;
	return hdr->flags & UD_FLAG_IMM || hdr->imm == 0;
}

bool ud_parse(const uint8_t *datagram, size_t len, struct ud_hdr *hdr)
{
	if (len < UD_HDR_LEN || len > UD_DATAGRAM_MAX)
		return false;
	if (get_be32(datagram + MAGIC) != MAGIC_VALUE || datagram[VERSION] != VERSION_VALUE ||
	    datagram[FLAGS] & ~FLAGS_KNOWN || datagram[ZERO] != 0)
		return false;
	const struct ud_hdr found = {
		.flags = datagram[FLAGS],
		.sl = datagram[SL],
		.dest_qpn = get_be32(datagram + DEST_QPN),
		.src_qpn = get_be32(datagram + SRC_QPN),
		.qkey = get_be32(datagram + QKEY),
		.imm = get_be32(datagram + IMM),
	};

	if (!numbers_valid(&found))
		return false;
	*hdr = found;
	return true;
}

void ud_build(const struct ud_hdr *hdr, uint8_t *p)
{
	put_be32(p + MAGIC, MAGIC_VALUE);
	p[VERSION] = VERSION_VALUE;
	p[FLAGS] = hdr->flags;
	p[SL] = hdr->sl;
	p[ZERO] = 0;
	put_be32(p + DEST_QPN, hdr->dest_qpn);
	put_be32(p + SRC_QPN, hdr->src_qpn);
	put_be32(p + QKEY, hdr->qkey);
	put_be32(p + IMM, hdr->flags & UD_FLAG_IMM ? hdr->imm : 0);
}

void ud_addr_of_gid(const uint8_t *gid, uint8_t *addr)
{
	static const uint8_t roce_v1[GID_IPV4_AT] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };

	if (memcmp(gid, roce_v1, sizeof(roce_v1)) == 0)
		gid_of_ipv4(addr, gid + GID_IPV4_AT);
	else
		memcpy(addr, gid, GID_LEN);
}

bool ud_addr_is_multicast(const uint8_t *addr)
{
	if (gid_is_ipv4(addr))
		return (addr[GID_IPV4_AT] & 0xf0) == 0xe0;
	return addr[0] == 0xff;
}

/* RFC 791 3.1: the ones' complement of the ones' complement sum, its own field taken as zero. */
static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_HDR_LEN; i += 2)
		sum += get_be16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void ipv4_build(const struct ud_route *route, size_t udp_len, uint8_t *p)
{
	memset(p, 0, UD_GRH_LEN);
	p += IPV4_AT;
	p[0] = IPV4_VERSION_IHL;
	p[1] = route->traffic_class;
	put_be16(p + 2, (uint16_t)(IPV4_HDR_LEN + udp_len));
	put_be16(p + 6, IPV4_DONT_FRAGMENT);
	p[8] = route->hop_limit;
	p[9] = UDP_PROTOCOL;
	memcpy(p + 12, route->src + GID_IPV4_AT, 4);
	memcpy(p + 16, route->dst + GID_IPV4_AT, 4);
	put_be16(p + IPV4_CHECKSUM, ipv4_checksum(p));
}

static void ipv6_build(const struct ud_route *route, size_t udp_len, uint8_t *p)
{
	put_be32(p, 6u << 28 | (uint32_t)route->traffic_class << 20);
	put_be16(p + 4, (uint16_t)udp_len);
	p[6] = UDP_PROTOCOL;
	p[7] = route->hop_limit;
	memcpy(p + 8, route->src, GID_LEN);
	memcpy(p + 24, route->dst, GID_LEN);
}

void ud_grh_build(const struct ud_route *route, size_t len, uint8_t *p)
{
	size_t udp_len = UDP_HDR_LEN + UD_HDR_LEN + len;

	if (gid_is_ipv4(route->dst))
		ipv4_build(route, udp_len, p);
	else
		ipv6_build(route, udp_len, p);
}
