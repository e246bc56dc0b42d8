// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks a server by UDP whether this connection may become iWARP: xsock/question.h.
#ifndef XSOCK_PRELOAD_ASK_H
#define XSOCK_PRELOAD_ASK_H

#include <stdbool.h>
#include <sys/socket.h>

/* ANYWARP_SOCKETS_ASK_MS: how long to wait, 10 unless told. A no is remembered for 10 seconds. */
bool aw_ask_server(const struct sockaddr_storage *local, const struct sockaddr_storage *remote);

#endif
