// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Socket addresses of both families.
#include "rdmacm/address.h"

#include <netinet/in.h>
#include <string.h>

static const struct sockaddr_in *in(const struct sockaddr *sa)
{
	return (const struct sockaddr_in *)sa;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *sa)
{
	return (const struct sockaddr_in6 *)sa;
}

socklen_t aw_address_len(int family)
{
	if (family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

uint16_t aw_address_port(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return in(sa)->sin_port;
	if (sa->sa_family == AF_INET6)
		return in6(sa)->sin6_port;
	return 0;
}

void aw_address_set_port(struct sockaddr *sa, uint16_t port)
{
	if (sa->sa_family == AF_INET)
		((struct sockaddr_in *)sa)->sin_port = port;
	else if (sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)sa)->sin6_port = port;
}

bool aw_address_is_wildcard(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return in(sa)->sin_addr.s_addr == htonl(INADDR_ANY);
	return sa->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6(sa)->sin6_addr);
}

void aw_address_wildcard(int family, struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->ss_family = (sa_family_t)family;
}

void aw_address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, aw_address_len(from->sa_family));
}

/*
 * As aw_address_copy, but an IPv4 address mapped into IPv6 (of a dual-stack listener) becomes IPv4.
 */
static void copy_unmapped(struct sockaddr_storage *to, const struct sockaddr *from)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)to;

	if (from->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6(from)->sin6_addr)) {
		aw_address_copy(to, from);
		return;
	}
	aw_address_wildcard(AF_INET, to);
	sin->sin_port = in6(from)->sin6_port;
	memcpy(&sin->sin_addr, &in6(from)->sin6_addr.s6_addr[12], sizeof(sin->sin_addr));
}

bool aw_address_names_device(const struct sockaddr *sa)
{
	struct sockaddr_storage unmapped;
	const struct sockaddr *plain = (const struct sockaddr *)&unmapped;

	copy_unmapped(&unmapped, sa);
	if (aw_address_is_wildcard(plain))
		return false;
	if (plain->sa_family == AF_INET)
		return ntohl(in(plain)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT != IN_LOOPBACKNET;
	return plain->sa_family != AF_INET6 || !IN6_IS_ADDR_LOOPBACK(&in6(plain)->sin6_addr);
}

void aw_address_set_ends(struct rdma_addr *addr, const struct sockaddr_storage *local,
			 const struct sockaddr_storage *peer)
{
	copy_unmapped(&addr->src_storage, (const struct sockaddr *)local);
	copy_unmapped(&addr->dst_storage, (const struct sockaddr *)peer);
	aw_address_gid(&addr->src_addr, &addr->addr.ibaddr.sgid);
	aw_address_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
}

void aw_address_gid(const struct sockaddr *sa, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (sa->sa_family == AF_INET6) {
		memcpy(gid->raw, &in6(sa)->sin6_addr, sizeof(gid->raw));
	} else if (sa->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &in(sa)->sin_addr, sizeof(in(sa)->sin_addr));
	}
}
