// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waits for many rsockets and the kernel's fds. Called by rs_select.c.
#ifndef XSOCK_RSOCKETS_RS_POLL_H
#define XSOCK_RSOCKETS_RS_POLL_H

#include <poll.h>

#include "xsock/rsockets/rs_socket.h"

/* As poll(2), with a time-out in ns. Returns the number of fds, -EINTR or -ENOMEM. */
int aw_rs_poll(struct pollfd *fds, nfds_t count, int64_t timeout_ns);

#endif
