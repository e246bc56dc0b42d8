// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of a record whose sockets are the kernel's own.
#ifndef LIB_RECORD_CALLS_H
#define LIB_RECORD_CALLS_H

#include "record/record.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static inline int record_calls_ioctl(int fd, unsigned long request, int *answer)
{
	return ioctl(fd, request, answer);
}

/*
 * qemu-user takes the value of SO_MEMINFO for an int, since it does not know the option; the send buffer then is estimated. A
 * queued byte costs less than four.
 */
static inline int record_calls_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	uint32_t *memory = value;
	int result = getsockopt(fd, level, name, value, len), queued;
	socklen_t int_len = sizeof(int);

	if (result || level != SOL_SOCKET || name != SO_MEMINFO || *len != int_len)
		return result;
	*len = SK_MEMINFO_VARS * sizeof(*memory);
	if (ioctl(fd, SIOCOUTQ, &queued))
		return -1;
	memory[SK_MEMINFO_WMEM_QUEUED] = 4 * (uint32_t)queued;
	return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &memory[SK_MEMINFO_SNDBUF], &int_len);
}

/* Initializers of struct aw_record_calls: all but the CRC and, where a Reply comes, is_record. */
#define RECORD_CALLS                                                                   \
	.recvmsg = recvmsg, .sendmsg = sendmsg, .getsockopt = record_calls_getsockopt, \
	.setsockopt = setsockopt, .shutdown = shutdown, .poll = poll, .ioctl = record_calls_ioctl

#endif
