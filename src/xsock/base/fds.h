// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message with fds beside it.
#ifndef XSOCK_BASE_FDS_H
#define XSOCK_BASE_FDS_H

#include <stddef.h>

#define AW_FDS_MAX 33 /* AW_REQUEST_FDS */

/* 0 or an errno. flags: MSG_*, beside MSG_NOSIGNAL. */
int aw_fds_send(int to, const void *octets, size_t len, const int *fds, int count, int flags);

#endif
