// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closes the fds that programs have passed to the proxy process. A close may wait for a peer, and
// the proxy process's one thread must not wait.
#ifndef XSOCK_PROXY_CLOSER_H
#define XSOCK_PROXY_CLOSER_H

void aw_closer_close(int fd);

#endif
