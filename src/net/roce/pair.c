// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two ends are ordered by their GIDs as bytes, then by their QPNs: every pair of ends has an order,
// and the ends need not agree on anything first (as in BGP, RFC 4271 6.8).
#include "net/roce/pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

void aw_pair_loopback_gid(uint8_t gid[GID_LEN])
{
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };

	gid_of_ipv4(gid, &loopback);
}

void aw_pair_address(const struct aw_pair_end *end, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	if (gid_is_ipv4(end->gid)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, end->gid + GID_IPV4_AT, sizeof(in->sin_addr));
		return;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, end->gid, GID_LEN);
	if (gid_is_link_local(end->gid))
		in6->sin6_scope_id = end->scope;
}

static int compare(const struct aw_pair_end *a, const struct aw_pair_end *b)
{
	int order = memcmp(a->gid, b->gid, GID_LEN);

	return order ? order : (a->qpn > b->qpn) - (a->qpn < b->qpn);
}

bool aw_pair_is_caller(const struct aw_pair *told)
{
	return compare(&told->local, &told->remote) < 0;
}

bool aw_pair_is_self(const struct aw_pair *told)
{
	return compare(&told->local, &told->remote) == 0;
}

bool aw_pair_is_from(const struct pair *request, const struct sockaddr_storage *peer)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)peer;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;
	uint8_t gid[GID_LEN];

	if (peer->ss_family == AF_INET)
		gid_of_ipv4(gid, &in->sin_addr);
	else if (peer->ss_family == AF_INET6)
		memcpy(gid, &in6->sin6_addr, GID_LEN);
	else
		return false;
	return !memcmp(gid, request->src_gid, GID_LEN);
}

/* The type of QP that one of this type talks to. */
static enum pair_type peer_of(enum pair_type type)
{
	switch (type) {
	case PAIR_RC:
	case PAIR_UC:
		break;
	case PAIR_XRC_INITIATOR:
		return PAIR_XRC_TARGET;
	case PAIR_XRC_TARGET:
		return PAIR_XRC_INITIATOR;
	}
	return type;
}

enum pair_answer aw_pair_match(const struct aw_pair *told, const struct pair *request,
			       const struct sockaddr_storage *from)
{
	const struct aw_pair_end *remote = &told->remote;

	if (request->dst_qpn != told->local.qpn)
		return PAIR_NO_QP;
	if (request->src_qpn != remote->qpn || memcmp(request->src_gid, remote->gid, GID_LEN) != 0)
		return PAIR_OTHER_PEER;

	/* The same link-local address may exist on another link. */
	if (gid_is_link_local(remote->gid) && remote->scope &&
	    ((const struct sockaddr_in6 *)from)->sin6_scope_id != remote->scope)
		return PAIR_OTHER_PEER;
	return request->type == peer_of(told->type) ? PAIR_OK : PAIR_OTHER_TYPE;
}

enum aw_pair_verdict aw_pair_judge(enum aw_pair_phase phase, const struct aw_pair *told,
				   const struct pair *request, const struct sockaddr_storage *from)
{
	switch (phase) {
	case AW_PAIR_UNTOLD:
	case AW_PAIR_JOINED:
	case AW_PAIR_OVER:
		/* The peer may be ahead: its QP was reset, and this end's will be. */
		return AW_PAIR_HOLD;
	case AW_PAIR_WAITING:
	case AW_PAIR_CALLING:
	case AW_PAIR_ASKED:
		break;
	}
	if (aw_pair_match(told, request, from))
		return AW_PAIR_REJECT;
	bool ours_stays = phase == AW_PAIR_ASKED && aw_pair_is_caller(told);

	return ours_stays ? AW_PAIR_HOLD : AW_PAIR_ACCEPT;
}
