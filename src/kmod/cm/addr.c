// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Operations on socket addresses.
#include "kmod/cm/addr.h"

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/string.h>
#include <net/ipv6.h>

static const struct sockaddr_in *v4_of(const struct sockaddr_storage *addr)
{
	return (const struct sockaddr_in *)addr;
}

static const struct sockaddr_in6 *v6_of(const struct sockaddr_storage *addr)
{
	return (const struct sockaddr_in6 *)addr;
}

int awk_addr_len(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return sizeof(struct sockaddr_in);
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

bool awk_addr_is_any(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return v4_of(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return ipv6_addr_any(&v6_of(addr)->sin6_addr);
}

/* Both families have the port at the same place. */
static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port));

void awk_addr_set_port(struct sockaddr_storage *addr, __be16 port)
{
	((struct sockaddr_in *)addr)->sin_port = port;
}

__be16 awk_addr_port(const struct sockaddr_storage *addr)
{
	return v4_of(addr)->sin_port;
}

u32 awk_addr_hash(const struct sockaddr_storage *addr)
{
	__be32 low = addr->ss_family == AF_INET ? v4_of(addr)->sin_addr.s_addr
						: v6_of(addr)->sin6_addr.s6_addr32[3];

	return ntohl(low) + ntohs(awk_addr_port(addr));
}

bool awk_addr_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family || awk_addr_port(a) != awk_addr_port(b))
		return false;
	if (a->ss_family == AF_INET)
		return v4_of(a)->sin_addr.s_addr == v4_of(b)->sin_addr.s_addr;
	return ipv6_addr_equal(&v6_of(a)->sin6_addr, &v6_of(b)->sin6_addr) &&
	       v6_of(a)->sin6_scope_id == v6_of(b)->sin6_scope_id;
}

static void unwrap(struct sockaddr_storage *addr)
{
	struct sockaddr_in plain = { .sin_family = AF_INET };

	if (addr->ss_family != AF_INET6 || !ipv6_addr_v4mapped(&v6_of(addr)->sin6_addr))
		return;
	plain.sin_port = v6_of(addr)->sin6_port;
	plain.sin_addr.s_addr = v6_of(addr)->sin6_addr.s6_addr32[3];
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &plain, sizeof(plain));
}

void awk_addr_learn(struct socket *sock, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote)
{
	kernel_getsockname(sock, (struct sockaddr *)local);
	kernel_getpeername(sock, (struct sockaddr *)remote);
	unwrap(local);
	unwrap(remote);
}
