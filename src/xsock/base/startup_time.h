// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a peer has for its part of a start-up: a client for its Request from the accept on, a server for its Reply from the
// Request on.
#ifndef XSOCK_BASE_STARTUP_TIME_H
#define XSOCK_BASE_STARTUP_TIME_H

#define AW_PEER_STARTUP_MS 10000

#endif
