// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options, reads and writes of extended sockets (aw_sock.extended): libanywarp-xsock.so in this
// process has their connections. Callers hold no lock.
#ifndef XSOCK_PRELOAD_EXTENDED_H
#define XSOCK_PRELOAD_EXTENDED_H

#include <sys/uio.h>

#include "xsock/preload/end.h"
#include "xsock/process/fdtab.h"

/* TCP's options, and SO_ERROR, as getsockopt(2) and setsockopt(2). */
int aw_extended_get_option(const struct aw_sock *sock, int level, int name, void *value,
			   socklen_t *len);
/*
 * For a bridged fd: a read and a write that do without the pair. False: the pair has to be used.
 * True: *result and errno are the call's.
 */
bool aw_extended_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_extended_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
/* The program is about to ask the pair of fd, or fd if it is bridged, for bytes in another way. Keeps errno. */
void aw_extended_watch(int fd);
static inline void aw_extended_watch_bridged(int fd)
{
	if (aw_end_is_bridged(fd))
		aw_extended_watch(fd);
}
/* The program is about to close fd, or to put another file at its number. */
void aw_extended_closing(int fd);
/* Returns whether a poll has to call aw_extended_watch for its fds. */
bool aw_extended_any_direct(void);
int aw_extended_set_option(const struct aw_sock *sock, int level, int name, const void *value,
			   socklen_t len);

#endif
