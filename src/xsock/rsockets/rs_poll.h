// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Waiting for many rsockets and the kernel's fds.
#ifndef XSOCK_RSOCKETS_RS_POLL_H
#define XSOCK_RSOCKETS_RS_POLL_H

#include <poll.h>

#include "xsock/rsockets/rs_socket.h"

/* As poll(2), but for the unit of time; -EINTR, -ENOMEM. */
int aw_rs_poll(struct pollfd *fds, nfds_t count, int64_t timeout_ns);

#endif
