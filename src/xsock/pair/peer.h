// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the other end of a TCP connection within the host and the network namespace, by sock_diag(7).
#ifndef XSOCK_PAIR_PEER_H
#define XSOCK_PAIR_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "xsock/pair/name.h"

/*
 * Finds the inode of the socket whose own address is remote and whose peer's is local. False: there is none that a process of this
 * network namespace has, or this kernel has no sock_diag for TCP.
 */
bool aw_pair_find_peer(const struct aw_tcp_end *local, const struct aw_tcp_end *remote, ino_t *ino);

#endif
