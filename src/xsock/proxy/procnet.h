// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the sockets that listen at a port in /proc/net/tcp or tcp6. Called by listeners.c.
#ifndef XSOCK_PROXY_PROCNET_H
#define XSOCK_PROXY_PROCNET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Stores the inodes of at most max sockets that listen at port, which is in network byte order.
 * Returns their number; -1: the table cannot be read.
 */
int aw_procnet_listeners(uint16_t port, bool ipv6, uint64_t *inodes, int max);

#endif
