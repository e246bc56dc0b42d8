// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: octets to and from an fd. A bridged one is the kernel's own, so there is only the first
// touch to see to.
#include "xsock/preload/end.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/touch.h"

AW_WRAPPER ssize_t read(int fd, void *buf, size_t count)
{
	if (aw_touch(fd, AW_TOUCH_READ, false))
		return -1;
	return aw_end_of_read(fd, aw_libc()->read(fd, buf, count), count);
}

AW_WRAPPER ssize_t __read_chk(int fd, void *buf, size_t count, size_t room)
{
	if (aw_touch(fd, AW_TOUCH_READ, false))
		return -1;
	return aw_end_of_read(fd, aw_libc()->__read_chk(fd, buf, count, room), count);
}

AW_WRAPPER ssize_t readv(int fd, const struct iovec *iov, int count)
{
	if (aw_touch(fd, AW_TOUCH_READ, false))
		return -1;
	return aw_end_of_read(fd, aw_libc()->readv(fd, iov, count), count > 0);
}

AW_WRAPPER ssize_t write(int fd, const void *buf, size_t count)
{
	if (aw_touch(fd, AW_TOUCH_WRITE, false))
		return -1;
	return aw_end_of_plain_write(fd, aw_libc()->write(fd, buf, count));
}

AW_WRAPPER ssize_t writev(int fd, const struct iovec *iov, int count)
{
	if (aw_touch(fd, AW_TOUCH_WRITE, false))
		return -1;
	return aw_end_of_plain_write(fd, aw_libc()->writev(fd, iov, count));
}

AW_WRAPPER ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	if (aw_touch(out, AW_TOUCH_WRITE, false))
		return -1;
	return aw_libc()->sendfile(out, in, offset, count);
}

AW_WRAPPER ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	if (aw_touch(out, AW_TOUCH_WRITE, false))
		return -1;
	return aw_libc()->sendfile64(out, in, offset, count);
}

AW_WRAPPER ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t count,
			  unsigned flags)
{
	if (aw_touch(in, AW_TOUCH_READ, flags & SPLICE_F_NONBLOCK) ||
	    aw_touch(out, AW_TOUCH_WRITE, flags & SPLICE_F_NONBLOCK))
		return -1;
	return aw_libc()->splice(in, in_offset, out, out_offset, count, flags);
}

/* stdio reads and writes inside libc, where no wrapper sees it. */
AW_WRAPPER FILE *fdopen(int fd, const char *mode)
{
	if (aw_touch(fd, AW_TOUCH_WRITE, false))
		return NULL;
	return aw_libc()->fdopen(fd, mode);
}

AW_WRAPPER int shutdown(int fd, int how)
{
	if (aw_touch(fd, AW_TOUCH_WRITE, false))
		return -1;
	return aw_libc()->shutdown(fd, how);
}
