// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of a record whose sockets are the kernel's own.
#ifndef LIB_RECORD_CALLS_H
#define LIB_RECORD_CALLS_H

#include "record/record.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

static inline int record_calls_ioctl(int fd, unsigned long request, int *answer)
{
	return ioctl(fd, request, answer);
}

/* Initializers of struct aw_record_calls: all but the CRC and, where a Reply comes, is_record. */
#define RECORD_CALLS                                                      \
	.recvmsg = recvmsg, .sendmsg = sendmsg, .getsockopt = getsockopt, \
	.setsockopt = setsockopt, .shutdown = shutdown, .poll = poll, .ioctl = record_calls_ioctl

#endif
