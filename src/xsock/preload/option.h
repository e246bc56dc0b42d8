// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of bridged sockets. Callers hold no lock.
#ifndef XSOCK_PRELOAD_OPTION_H
#define XSOCK_PRELOAD_OPTION_H

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/* As getsockopt(2) and setsockopt(2). */
int aw_option_get_bridged(int fd, int level, int name, void *value, socklen_t *len);
int aw_option_set_bridged(int fd, int level, int name, const void *value, socklen_t len);
/* Returns whether no connection of this library's can have the option, whether bridged or framed. */
bool aw_option_is_refused(int level, int name);
/* Returns whether getsockopt takes bytes out of the TCP socket: those would be FPDUs. */
bool aw_option_is_zero_copy(int level, int name);

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

/*
 * A read of fd, a bridged fd, has failed with ECONNRESET. Returns -1 with that errno, or 0: the program had the end of the stream
 * before, and TCP would tell that again.
 */
int aw_option_reset(int fd);
/*
 * A write of len bytes to fd, a bridged fd, has failed with EPIPE. Returns -1 with errno, of the connection's failure if no call has
 * told that; or len, where TCP would take the bytes although the peer has closed: the first time that the program writes then.
 */
ssize_t aw_option_broken(int fd, size_t len);

/* The kernel returns EFAULT for such a buffer; this library would crash. */
static inline bool aw_option_is_bad(const void *value, socklen_t len)
{
	return !value && len;
}

/* The kernel reads a length as an int. */
static inline bool aw_option_is_negative(socklen_t len)
{
	return (int)len < 0;
}

/* Copies have bytes to the program's buffer, or as many as fit. Returns 0. */
static inline int aw_option_copy_out(const void *from, size_t have, void *value, socklen_t *len)
{
	if (*len > have)
		*len = (socklen_t)have;
	memcpy(value, from, *len);
	return 0;
}

#endif
