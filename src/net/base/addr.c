// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Formats socket addresses with getnameinfo in its numeric form, which queries no name server.
#include "net/base/addr.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

#define HOST_MAX 64
#define PORT_MAX 6

socklen_t aw_addr_len(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	if (addr->sa_family == AF_INET6)
		return sizeof(struct sockaddr_in6);
	return 0;
}

struct aw_addr_text aw_addr_text(const struct sockaddr_storage *addr)
{
	const struct sockaddr *sa = (const struct sockaddr *)addr;
	struct aw_addr_text out = { "unknown" };
	char host[HOST_MAX], port[PORT_MAX];
	socklen_t len = aw_addr_len(sa);

	if (!len || getnameinfo(sa, len, host, sizeof(host), port, sizeof(port),
				NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return out;
	snprintf(out.text, sizeof(out.text), sa->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
		 port);
	return out;
}
