// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of bridged sockets. Callers hold no lock.
#ifndef XSOCK_PRELOAD_OPTION_H
#define XSOCK_PRELOAD_OPTION_H

/*
 * Before fd's close: if SO_LINGER is set and fd is the socket's last fd in this process, waits
 * until TCP has sent what was written.
 */
void aw_option_linger(int fd);

/*
 * Returns 0 if the stream of fd, a bridged fd whose read has returned 0, has ended without a
 * failure, or -1 with the errno of the connection's failure.
 */
int aw_option_end(int fd);

#endif
