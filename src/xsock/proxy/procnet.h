// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks in /proc/net/tcp or tcp6 who listens at a port: some process has the socket open.
#ifndef XSOCK_PROXY_PROCNET_H
#define XSOCK_PROXY_PROCNET_H

#include <stdbool.h>
#include <stdint.h>

/* The inodes of at most max listeners at the port, which is in network order: how many; -1: nobody can tell. */
int aw_procnet_listeners(uint16_t port, bool ipv6, uint64_t *inodes, int max);

#endif
