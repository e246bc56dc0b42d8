// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closes fds that a program has passed: a close may wait for a peer, and the proxy process's only thread must not.
#ifndef XSOCK_PROXY_CLOSER_H
#define XSOCK_PROXY_CLOSER_H

void aw_closer_close(int fd);

#endif
