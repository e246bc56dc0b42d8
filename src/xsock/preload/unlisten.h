// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listener is about to be closed. Keeps errno.
#ifndef XSOCK_PRELOAD_UNLISTEN_H
#define XSOCK_PRELOAD_UNLISTEN_H

void aw_socket_unlisten(int listener);

#endif
