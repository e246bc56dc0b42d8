// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Socket addresses of both families: pure functions.
#ifndef RDMACM_ADDRESS_H
#define RDMACM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* The length of an address of this family; 0 for a family other than IPv4 and IPv6. */
socklen_t aw_address_len(int family);

/* Port in network order. */
uint16_t aw_address_port(const struct sockaddr *sa);
void aw_address_set_port(struct sockaddr *sa, uint16_t port);

bool aw_address_is_wildcard(const struct sockaddr *sa);

/* True unless the address is a wildcard or of loopback, also where it is IPv4 mapped into IPv6. */
bool aw_address_names_device(const struct sockaddr *sa);

/* The wildcard of family with port 0. */
void aw_address_wildcard(int family, struct sockaddr_storage *sa);

/* Copies as many bytes as the family has; the rest is zero. */
void aw_address_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/* Sets both ends of a connection, mapped addresses as IPv4, with their GIDs. */
void aw_address_set_ends(struct rdma_addr *addr, const struct sockaddr_storage *local,
			 const struct sockaddr_storage *peer);

/* The GID of an address: the address itself, or ::ffff:a.b.c.d. */
void aw_address_gid(const struct sockaddr *sa, union ibv_gid *gid);

#endif
