// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The buffers of a call.
#ifndef XSOCK_BASE_IOV_H
#define XSOCK_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

static inline size_t aw_iov_length(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

#endif
