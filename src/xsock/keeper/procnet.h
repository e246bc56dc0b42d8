// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks in /proc/net/tcp and tcp6 whether a socket still listens: some process has it open; and who else does.
#ifndef XSOCK_KEEPER_PROCNET_H
#define XSOCK_KEEPER_PROCNET_H

#include <stdbool.h>
#include <stdint.h>

bool aw_procnet_listens(uint64_t ino, bool ipv6);
/* Whether anybody listens at the port, which is in network order, that is not known. */
bool aw_procnet_has_stranger(uint16_t port, bool (*is_known)(uint64_t ino));

#endif
