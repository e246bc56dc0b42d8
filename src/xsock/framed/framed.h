// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Framed connections: the program's fd is the kernel's TCP socket, and the wrappers turn what is written into FPDUs and
// take what is read out of them (record/record.h). Whatever else a program does with an fd is the kernel's own.
// ANYWARP_SOCKETS_RECORD=off: no connection is framed.
#ifndef XSOCK_FRAMED_FRAMED_H
#define XSOCK_FRAMED_FRAMED_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "xsock/framed/arena.h"
#include "xsock/process/fdtab.h"

/* How much of a peer's MPA Request is here, at the start of got bytes; wanted: how many more are due at least. */
enum aw_offer {
	AW_OFFER_NONE, /* of one that is none of a record's, or of none */
	AW_OFFER_MORE,
	AW_OFFER_WHOLE,
};
enum aw_offer aw_framed_judge(const void *bytes, size_t got, size_t *wanted);

/* What is STARTING becomes framed. The active end knows that its peer has records; the passive one has its Request. 0 or an errno. */
int aw_framed_start(struct aw_sock *sock, int fd);

static inline struct aw_slot *aw_framed_slot(int fd)
{
	return aw_fdtab_state(fd) == AW_FD_FRAMED ? atomic_load(&aw_fdtab_slots[fd]) : NULL;
}

/* The calls. False: fd is not framed, and libc's call is to be made. Else *result and errno. */
bool aw_framed_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_framed_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result);
bool aw_framed_shutdown(int fd, int how, int *result);
/* fd is about to be closed. */
void aw_framed_closing(int fd);
/* FIONREAD, SIOCATMARK. */
bool aw_framed_pending(int fd, int *count);
bool aw_framed_is_at_mark(int fd, int *at_mark);
/* getsockopt and setsockopt. False: libc's call is to be made, which also fails where the first of them has. */
bool aw_framed_get_option(int fd, int level, int name, void *value, socklen_t *len);
bool aw_framed_set_option(int fd, int level, int name, const void *value, socklen_t len,
			  int *result);
/* A copy from in to the framed out; offset: as sendfile(2) has it. */
ssize_t aw_framed_sendfile(int out, int in, off64_t *offset, size_t count);
/* A copy where one of the two, or both, are framed. flags: SPLICE_F_*. */
ssize_t aw_framed_splice(int in, int out, size_t count, unsigned flags);

/* Before a fork or an exec: relatives can pass each other records only in an arena that is there already. */
void aw_framed_prepare_relatives(void);
/* Before a fork: the same, and the proxy process is one for both, where there may be need of one. */
void aw_framed_prepare_fork(void);
/* A hold for a child on each slot, where no handler of pthread_atfork's makes it, or where there is no child after all. */
void aw_framed_share(void);
void aw_framed_unshare(void);
/* A socket whose slot the process, or its parent, has held before an exec, and now this one holds. False: it is not to be had. */
bool aw_framed_inherit(struct aw_sock *sock, unsigned number);
/* The process has framed fds. */
bool aw_framed_any(void);
/* The process is about to end: it lets go of its slots. */
void aw_framed_end(void);

#endif
