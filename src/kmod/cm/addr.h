// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Socket addresses of IPv4 and IPv6.
#ifndef KMOD_CM_ADDR_H
#define KMOD_CM_ADDR_H

#include <linux/net.h>
#include <linux/socket.h>

/* Bytes of an address; 0 for another family. */
int awk_addr_len(const struct sockaddr_storage *addr);
bool awk_addr_is_any(const struct sockaddr_storage *addr);
void awk_addr_set_port(struct sockaddr_storage *addr, __be16 port);
__be16 awk_addr_port(const struct sockaddr_storage *addr);
/* Of address and port. */
u32 awk_addr_hash(const struct sockaddr_storage *addr);
/* The same family, address, port and scope. */
bool awk_addr_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* Writes both ends of a socket; an IPv4 address that IPv6 wraps is written as IPv4. */
void awk_addr_learn(struct socket *sock, struct sockaddr_storage *local,
		    struct sockaddr_storage *remote);

#endif
