// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The rsockets interface, not offered: every call fails with ENOSYS and looks at no argument. No
// socket of this kind can come to exist, so nothing is lost.
//
// All that return int are one function, and all that return a length or an offset are another.
// Neither reads an argument, which every calling convention of Linux allows. rdma/rsocket.h is
// left out because it declares the arguments.
#include <errno.h>
#include <sys/types.h>

static __attribute__((used)) int none(void)
{
	errno = ENOSYS;
	return -1;
}

static __attribute__((used)) ssize_t none_long(void)
{
	errno = ENOSYS;
	return -1;
}

_Static_assert(sizeof(off_t) == sizeof(ssize_t), "riomap answers an off_t");

#define NONE __attribute__((alias("none")))
#define NONE_LONG __attribute__((alias("none_long")))

int rsocket(void) NONE;
int rbind(void) NONE;
int rlisten(void) NONE;
int raccept(void) NONE;
int rconnect(void) NONE;
int rshutdown(void) NONE;
int rclose(void) NONE;
int rgetpeername(void) NONE;
int rgetsockname(void) NONE;
int rsetsockopt(void) NONE;
int rgetsockopt(void) NONE;
int rfcntl(void) NONE;
int rpoll(void) NONE;
int rselect(void) NONE;
int riounmap(void) NONE;

ssize_t rrecv(void) NONE_LONG;
ssize_t rrecvfrom(void) NONE_LONG;
ssize_t rrecvmsg(void) NONE_LONG;
ssize_t rsend(void) NONE_LONG;
ssize_t rsendto(void) NONE_LONG;
ssize_t rsendmsg(void) NONE_LONG;
ssize_t rread(void) NONE_LONG;
ssize_t rreadv(void) NONE_LONG;
ssize_t rwrite(void) NONE_LONG;
ssize_t rwritev(void) NONE_LONG;
ssize_t riomap(void) NONE_LONG;
ssize_t riowrite(void) NONE_LONG;
