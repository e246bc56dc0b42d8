// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The release of a UDP port: a proxy process answers probes (base/probe_wire.h) at a listener's
// port until a program binds that port. Callers hold no lock.
#ifndef XSOCK_PRELOAD_RELEASE_H
#define XSOCK_PRELOAD_RELEASE_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * A program's bind to the UDP address addr has failed with EADDRINUSE. Ask this program's proxy
 * process, or those of all other programs of the same user, to release it. Return whether any has
 * done so.
 */
bool aw_release_ours(const struct sockaddr *addr, socklen_t len);
bool aw_release_others(const struct sockaddr *addr, socklen_t len);

#endif
