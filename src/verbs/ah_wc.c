// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The address of the sender of a received datagram, from its work completion and the 40 bytes in
// front of its payload. Those are a GRH, an IPv6 header (same layout), or an IPv4 header in the
// last 20 of the 40 behind 20 bytes of zero. A header of neither kind is an error.
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

enum {
	IPV4_AT = 20, // the IPv4 header's place in the 40 bytes
	IPV4_TTL_AT = IPV4_AT + 8,
	IPV4_SRC_AT = IPV4_AT + 12,
	IPV4_DST_AT = IPV4_AT + 16,
	IPV4_VERSION_IHL = 0x45, // no options: the header fills its 20 bytes
	SGID_INDEX_MAX = 255, // grh.sgid_index is 8 bits wide
};

static void gid_from_ipv4(union ibv_gid *gid, const uint8_t *addr)
{
	memset(gid->raw, 0, 10);
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, addr, 4);
}

// The way back: the sender becomes the destination, the receiver the source.
static int route_back(const struct ibv_grh *grh, struct ibv_global_route *route,
		      union ibv_gid *sgid)
{
	const uint8_t *octets = (const uint8_t *)grh;
	uint32_t version_tclass_flow = be32toh(grh->version_tclass_flow);

	if (version_tclass_flow >> 28 == 6) {
		route->dgid = grh->sgid;
		*sgid = grh->dgid;
		route->flow_label = version_tclass_flow & 0xfffff;
		route->traffic_class = (uint8_t)(version_tclass_flow >> 20);
		route->hop_limit = 0xff;
		return 0;
	}
	if (octets[IPV4_AT] == IPV4_VERSION_IHL) {
		gid_from_ipv4(&route->dgid, octets + IPV4_SRC_AT);
		gid_from_ipv4(sgid, octets + IPV4_DST_AT);
		route->traffic_class = octets[IPV4_AT + 1];
		route->hop_limit = octets[IPV4_TTL_AT];
		return 0;
	}
	errno = EPROTONOSUPPORT;
	return -1;
}

// Returns 0, or -1 with errno when the header or its receiver is unknown.
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	struct ibv_gid_entry entry;
	union ibv_gid sgid;
	int found = -1, err = 0;

	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;

	ah_attr->is_global = 1;
	if (route_back(grh, &ah_attr->grh, &sgid))
		return -1;

	// Two links may have equal addresses. An ifindex (vendor_err) that fits none of them, 0 for one, leaves the choice to the order
	// of the table: a program may have filled in the work completion itself.
	for (uint32_t index = 0; index <= SGID_INDEX_MAX && (!err || err == ENODATA); index++) {
		err = ibv_query_gid_ex(context, port_num, index, &entry, 0);
		if (err || memcmp(&entry.gid, &sgid, sizeof(sgid)))
			continue;
		if (found < 0 || entry.ndev_ifindex == wc->vendor_err)
			found = (int)index;
		if (entry.ndev_ifindex == wc->vendor_err)
			break;
	}
	if (found < 0) {
		errno = EINVAL;
		return -1;
	}
	ah_attr->grh.sgid_index = (uint8_t)found;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
