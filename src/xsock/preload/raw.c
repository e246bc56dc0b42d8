// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Knows the system calls about an fd, and calls the wrapper of each.
#include "xsock/preload/raw.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"

int aw_raw_fd_argument(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_recvmsg:
	case SYS_sendmsg:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
	case SYS_shutdown:
	case SYS_sendfile:
	case SYS_ioctl:
	case SYS_fcntl:
	case SYS_dup:
	case SYS_dup3:
	case SYS_preadv2:
	case SYS_pwritev2:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
		return 0;
	case SYS_splice:
	case SYS_epoll_ctl:
		return 2;
	default:
		return -1;
	}
}

/*
 * Returns whether the first byte of a buffer can be read: a program that uses syscall(2) may count
 * on EFAULT.
 */
static bool is_mapped(long at, long len)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)at, 1 };

	return len <= 0 ||
	       aw_libc()->syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == 1 ||
	       errno != EFAULT;
}

static bool has_one_buffer(long number)
{
	return number == SYS_read || number == SYS_write || number == SYS_recvfrom ||
	       number == SYS_sendto;
}

/* Calls that move bytes to or from one buffer. */
static long call_buffer(long number, const long *a)
{
	int fd = (int)a[0];

	if (!is_mapped(a[1], a[2]))
		return aw_fail_with(EFAULT);
	if (number == SYS_read)
		return read(fd, (void *)a[1], (size_t)a[2]);
	if (number == SYS_write)
		return write(fd, (const void *)a[1], (size_t)a[2]);
	if (number == SYS_recvfrom)
		return recvfrom(fd, (void *)a[1], (size_t)a[2], (int)a[3], (struct sockaddr *)a[4],
				(socklen_t *)a[5]);
	return send(fd, (const void *)a[1], (size_t)a[2], (int)a[3]);
}

/* The kernel takes an offset as two words, the lower one first. */
static off64_t offset_of(const long *words)
{
	return sizeof(long) == sizeof(off64_t) ? words[0]
					       : (off64_t)((uint64_t)(unsigned long)words[1] << 32 |
							   (unsigned long)words[0]);
}

/* The other calls of aw_raw_fd_argument but epoll_ctl. */
static long call_other(long number, const long *a)
{
	int fd = (int)a[0];

	switch (number) {
	case SYS_readv:
		return readv(fd, (const struct iovec *)a[1], (int)a[2]);
	case SYS_writev:
		return writev(fd, (const struct iovec *)a[1], (int)a[2]);
	case SYS_recvmsg:
		return recvmsg(fd, (struct msghdr *)a[1], (int)a[2]);
	case SYS_sendmsg:
		return sendmsg(fd, (const struct msghdr *)a[1], (int)a[2]);
	case SYS_recvmmsg:
		return recvmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3],
				(struct timespec *)a[4]);
	case SYS_sendmmsg:
		return sendmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3]);
	case SYS_sendfile:
		return sendfile(fd, (int)a[1], (off_t *)a[2], (size_t)a[3]);
	case SYS_splice:
		return splice((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4],
			      (unsigned)a[5]);
	case SYS_shutdown:
		return shutdown(fd, (int)a[1]);
	case SYS_ioctl:
		return ioctl(fd, (unsigned long)a[1], (void *)a[2]);
	case SYS_fcntl:
		return fcntl(fd, (int)a[1], (void *)a[2]);
	case SYS_dup:
		return dup(fd);
	case SYS_preadv2:
		return preadv64v2(fd, (const struct iovec *)a[1], (int)a[2], offset_of(a + 3),
				  (int)a[5]);
	case SYS_pwritev2:
		return pwritev64v2(fd, (const struct iovec *)a[1], (int)a[2], offset_of(a + 3),
				   (int)a[5]);
#ifdef SYS_dup2
	case SYS_dup2:
		return dup2(fd, (int)a[1]);
#endif
	default: /* SYS_dup3 */
		return dup3(fd, (int)a[1], (int)a[2]);
	}
}

bool aw_raw_call_framed(long number, const long *arguments, long *result)
{
	int fd_index = aw_raw_fd_argument(number);

	if (fd_index < 0 || number == SYS_epoll_ctl ||
	    (!aw_framed_slot((int)arguments[fd_index]) &&
	     !(number == SYS_splice && aw_framed_slot((int)arguments[0]))))
		return false;
	*result = has_one_buffer(number) ? call_buffer(number, arguments)
					 : call_other(number, arguments);
	return true;
}
