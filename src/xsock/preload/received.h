// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An fd has come by SCM_RIGHTS: what is it to us?
#ifndef XSOCK_PRELOAD_RECEIVED_H
#define XSOCK_PRELOAD_RECEIVED_H

void aw_socket_received(int fd);

#endif
