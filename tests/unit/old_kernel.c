// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Linked with --wrap=preadv2: a kernel that reads no eventfd without blocking, as those before 5.8.
#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags);

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	(void)fd, (void)iov, (void)count, (void)offset, (void)flags;
	errno = EOPNOTSUPP;
	return -1;
}
