// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the kernel by sock_diag(7) which sockets listen at a TCP port.
#ifndef XSOCK_KEEPER_SOCKDIAG_H
#define XSOCK_KEEPER_SOCKDIAG_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Stores the inodes of at most max listeners at port, which is in network byte order, and returns their number; -1: this
 * kernel has no sock_diag for TCP, or the process may not use it.
 */
int aw_sockdiag_listeners(uint16_t port, bool ipv6, uint64_t *inodes, int max);

#endif
