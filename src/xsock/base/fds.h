// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends a message with fds beside it (SCM_RIGHTS). Called by process/proxy.c and proxy/.
#ifndef XSOCK_BASE_FDS_H
#define XSOCK_BASE_FDS_H

#include <stddef.h>

/*
 * Sends len bytes and count fds, at most AW_REQUEST_FDS, on the socket `to`. flags: MSG_*;
 * MSG_NOSIGNAL is added. Returns 0 or an errno.
 */
int aw_fds_send(int to, const void *bytes, size_t len, const int *fds, int count, int flags);

#endif
