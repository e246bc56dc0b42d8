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

/* Calls that move bytes to or from one buffer. */
static bool call_buffer(long number, const long *a, long *result)
{
	int fd = (int)a[0];

	if (number != SYS_read && number != SYS_write && number != SYS_recvfrom &&
	    number != SYS_sendto)
		return false;
	*result = -1;
	if (!is_mapped(a[1], a[2]))
		errno = EFAULT;
	else if (number == SYS_read)
		*result = read(fd, (void *)a[1], (size_t)a[2]);
	else if (number == SYS_write)
		*result = write(fd, (const void *)a[1], (size_t)a[2]);
	else if (number == SYS_recvfrom)
		*result = recvfrom(fd, (void *)a[1], (size_t)a[2], (int)a[3],
				   (struct sockaddr *)a[4], (socklen_t *)a[5]);
	else
		*result = send(fd, (const void *)a[1], (size_t)a[2], (int)a[3]);
	return true;
}

/* Calls that move bytes of vectors, messages and files. */
static bool call_vector(long number, const long *a, long *result)
{
	int fd = (int)a[0];

	switch (number) {
	case SYS_readv:
		*result = readv(fd, (const struct iovec *)a[1], (int)a[2]);
		return true;
	case SYS_writev:
		*result = writev(fd, (const struct iovec *)a[1], (int)a[2]);
		return true;
	case SYS_recvmsg:
		*result = recvmsg(fd, (struct msghdr *)a[1], (int)a[2]);
		return true;
	case SYS_sendmsg:
		*result = sendmsg(fd, (const struct msghdr *)a[1], (int)a[2]);
		return true;
	case SYS_recvmmsg:
		*result = recvmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3],
				   (struct timespec *)a[4]);
		return true;
	case SYS_sendmmsg:
		*result = sendmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3]);
		return true;
	case SYS_sendfile:
		*result = sendfile(fd, (int)a[1], (off_t *)a[2], (size_t)a[3]);
		return true;
	case SYS_splice:
		*result = splice((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3],
				 (size_t)a[4], (unsigned)a[5]);
		return true;
	default:
		return false;
	}
}

/* Calls that change the socket or its fd. */
static bool call_file(long number, const long *a, long *result)
{
	int fd = (int)a[0];

	switch (number) {
	case SYS_shutdown:
		*result = shutdown(fd, (int)a[1]);
		return true;
	case SYS_ioctl:
		*result = ioctl(fd, (unsigned long)a[1], (void *)a[2]);
		return true;
	case SYS_fcntl:
		*result = fcntl(fd, (int)a[1], (void *)a[2]);
		return true;
	case SYS_dup:
		*result = dup(fd);
		return true;
	case SYS_dup3:
		*result = dup3(fd, (int)a[1], (int)a[2]);
		return true;
	default:
		return false;
	}
}

bool aw_raw_call_framed(long number, const long *arguments, long *result)
{
	int fd_index = aw_raw_fd_argument(number);

	if (fd_index < 0 || (!aw_framed_slot((int)arguments[fd_index]) &&
			     !(number == SYS_splice && aw_framed_slot((int)arguments[0]))))
		return false;
	return call_buffer(number, arguments, result) || call_vector(number, arguments, result) ||
	       call_file(number, arguments, result);
}
