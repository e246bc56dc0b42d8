// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: the calls that read, write, copy and shut down an fd, other than send and recv. They
// make the first I/O and serve framed fds. A bridged fd is the kernel's own socket, and libc's call
// serves it.
#include "xsock/preload/io.h"

#include <limits.h>

#include "xsock/base/iov.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/pair/end.h"
#include "xsock/pair/offer.h"
#include "xsock/preload/end.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/sandbox.h"

/* Returns whether a read has no room: the kernel returns 0 then, whatever the socket's state, where recv(2) waits. */
static bool has_no_room(const struct iovec *iov, int count)
{
	for (int i = 0; i < count && i < IOV_MAX; i++)
		if (iov[i].iov_len)
			return false;
	return count >= 0 && count <= IOV_MAX;
}

AW_WRAPPER ssize_t read(int fd, void *buf, size_t count)
{
	ssize_t got;

	if (count && aw_io_is_carried(fd) && aw_io_receive_one(fd, buf, count, 0, &got))
		return got;
	return aw_end_of_read(fd, aw_libc()->read(fd, buf, count), count);
}
AW_WRAPPER_ALIAS(__read, read);

AW_WRAPPER ssize_t __read_chk(int fd, void *buf, size_t count, size_t room)
{
	aw_check_room(count, room);
	return read(fd, buf, count);
}

AW_WRAPPER ssize_t readv(int fd, const struct iovec *iov, int count)
{
	ssize_t got;

	if (aw_io_is_carried(fd)) {
		if (has_no_room(iov, count))
			return aw_libc()->readv(fd, iov, count);
		if (aw_io_receive(fd, iov, count, 0, &got))
			return got;
	}
	return aw_end_of_read(fd, aw_libc()->readv(fd, iov, count), count > 0);
}

/* A sandbox may allow no call but the program's own. */
static inline bool may_send(int fd)
{
	return aw_end_is_bridged(fd) && !aw_sandbox_is_on();
}

AW_WRAPPER ssize_t write(int fd, const void *buf, size_t count)
{
	ssize_t sent;

	if (aw_io_is_carried(fd) && aw_io_transmit_one(fd, buf, count, 0, &sent))
		return sent;
	if (may_send(fd)) {
		sent = aw_libc()->send(fd, buf, count, MSG_NOSIGNAL);
		if (sent >= 0 || errno != ENOTSOCK)
			return aw_end_of_write(fd, sent, count, 0);
	}
	return aw_end_of_plain_write(fd, aw_libc()->write(fd, buf, count));
}
AW_WRAPPER_ALIAS(__write, write);

AW_WRAPPER ssize_t writev(int fd, const struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov };
	ssize_t sent;

	if (aw_io_is_carried(fd) && aw_io_transmit(fd, iov, count, 0, &sent))
		return sent;
	if (may_send(fd) && count >= 0 && count <= IOV_MAX) {
		msg.msg_iovlen = (size_t)count;
		sent = aw_libc()->sendmsg(fd, &msg, MSG_NOSIGNAL);
		if (sent >= 0)
			return sent;
		if (errno != ENOTSOCK)
			return aw_end_of_write(fd, sent, aw_iov_length(iov, (size_t)count), 0);
	}
	return aw_end_of_plain_write(fd, aw_libc()->writev(fd, iov, count));
}

#ifndef RWF_NOAPPEND /* of Linux 6.9, which some libcs do not know */
#define RWF_NOAPPEND 0x20
#endif
/* The flags of preadv2 and pwritev2 that the kernel takes for a socket. */
#define RWF_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | RWF_NOAPPEND)

static inline int msg_flags(int flags)
{
	return flags & RWF_NOWAIT ? MSG_DONTWAIT : 0;
}

/* A socket takes no offset but -1. Flags that limit the wait are libc's to obey. */
AW_WRAPPER ssize_t preadv64v2(int fd, const struct iovec *iov, int count, off64_t offset, int flags)
{
	ssize_t got;

	if (flags & ~RWF_KNOWN && aw_fdtab_is_special(fd))
		return aw_fail_with(EOPNOTSUPP);
	if (offset == -1 && aw_io_is_carried(fd)) {
		if (has_no_room(iov, count))
			return aw_libc()->preadv64v2(fd, iov, count, offset, flags);
		if (aw_io_receive(fd, iov, count, msg_flags(flags), &got))
			return got;
	}
	return aw_end_of_read(fd, aw_libc()->preadv64v2(fd, iov, count, offset, flags), count > 0);
}

AW_WRAPPER ssize_t preadv2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	return preadv64v2(fd, iov, count, offset, flags);
}

AW_WRAPPER ssize_t pwritev64v2(int fd, const struct iovec *iov, int count, off64_t offset,
			       int flags)
{
	struct aw_end_call call;
	ssize_t sent;

	if (flags & ~RWF_KNOWN && aw_fdtab_is_special(fd))
		return aw_fail_with(EOPNOTSUPP);
	if (offset == -1 && aw_io_is_carried(fd) &&
	    aw_io_transmit(fd, iov, count, msg_flags(flags), &sent))
		return sent;
	aw_end_begin(fd, &call);
	return aw_end_finish(fd, &call, aw_libc()->pwritev64v2(fd, iov, count, offset, flags));
}

AW_WRAPPER ssize_t pwritev2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	return pwritev64v2(fd, iov, count, offset, flags);
}

AW_WRAPPER ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	off64_t at; /* off_t is shorter on a machine of 32 bits */
	struct aw_end_call call;
	ssize_t sent;

	if (aw_first_io(out, AW_FIRST_WRITE, false))
		return -1;
	if (!aw_framed_slot(out)) {
		aw_end_begin(out, &call);
		return aw_end_finish(out, &call, aw_libc()->sendfile(out, in, offset, count));
	}
	at = offset ? *offset : 0;
	sent = aw_framed_sendfile(out, in, offset ? &at : NULL, count);
	if (offset)
		*offset = (off_t)at;
	return sent;
}

AW_WRAPPER ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	struct aw_end_call call;

	if (aw_first_io(out, AW_FIRST_WRITE, false))
		return -1;
	if (aw_framed_slot(out))
		return aw_framed_sendfile(out, in, offset, count);
	aw_end_begin(out, &call);
	return aw_end_finish(out, &call, aw_libc()->sendfile64(out, in, offset, count));
}

AW_WRAPPER ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t count,
			  unsigned flags)
{
	const off64_t *pipes_offset;
	struct aw_end_call call;
	bool from_record;
	ssize_t moved;

	if (!count) /* the kernel looks at no fd */
		return aw_libc()->splice(in, in_offset, out, out_offset, count, flags);
	if (aw_first_io(in, AW_FIRST_READ, flags & SPLICE_F_NONBLOCK) ||
	    aw_first_io(out, AW_FIRST_WRITE, flags & SPLICE_F_NONBLOCK))
		return -1;
	from_record = aw_framed_slot(in);
	if (from_record || aw_framed_slot(out)) {
		if (!in_offset && !out_offset)
			return aw_framed_splice(in, out, count, flags);
		pipes_offset = from_record ? out_offset : in_offset;
		return aw_fail_with(
			pipes_offset && aw_libc()->fcntl(from_record ? out : in, F_GETPIPE_SZ) >= 0
				? ESPIPE
				: EINVAL);
	}
	aw_extended_watch_bridged(in);
	aw_end_begin(out, &call);
	moved = aw_libc()->splice(in, in_offset, out, out_offset, count, flags);
	return aw_end_of_read(in, aw_end_finish(out, &call, moved), count);
}

/* stdio reads and writes inside libc, without a wrapper: bridges fd. */
AW_WRAPPER FILE *fdopen(int fd, const char *mode)
{
	if (aw_first_io(fd, AW_FIRST_HAND_OVER, false) || aw_framed_bridge(fd))
		return NULL;
	aw_extended_watch_bridged(fd);
	return aw_libc()->fdopen(fd, mode);
}
AW_WRAPPER_ALIAS(_IO_fdopen, fdopen);

static int shut_down(int fd, int how)
{
	int result = aw_libc()->shutdown(fd, how);

	if (result == 0)
		aw_offer_shut_down(fd, how);
	return result;
}

/* shutdown does not wait for a connect: it aborts it. */
static int shut_down_undecided(int fd, int how)
{
	struct aw_sock *pin = NULL, sock;
	bool connects;
	int result;

	if (aw_fdtab_state(fd) == AW_FD_CONNECTING && !aw_first_io_make(fd, AW_FIRST_POLL, true))
		pin = aw_first_io_pin(fd);
	connects = pin && aw_fdtab_state(fd) == AW_FD_CONNECTING;
	if (connects)
		result = aw_libc()->shutdown(fd, how);
	aw_first_io_unpin(pin);
	if (connects)
		return result;

	/*
	 * The connection begins without waiting for a client's Request, unless another process may begin it, too, or its TLS handshake is
	 * this process's.
	 */
	result = aw_first_io_make(fd, AW_FIRST_SHUTDOWN, true);
	if (result && errno == EAGAIN)
		result = aw_fdtab_look(fd, &sock) && (sock.shared || sock.tls_begun)
				 ? aw_first_io_make(fd, AW_FIRST_SHUTDOWN, false)
				 : aw_first_io_make(fd, AW_FIRST_HAND_OVER, true);
	if (result)
		return -1;
	return aw_framed_shutdown(fd, how, &result) ? result : shut_down(fd, how);
}

AW_WRAPPER int shutdown(int fd, int how)
{
	int result;

	if (aw_framed_shutdown(fd, how, &result))
		return result;
	if (aw_fdtab_is_undecided(fd))
		return shut_down_undecided(fd, how);
	result = shut_down(fd, how);
	if (result == 0 && how != SHUT_RD && may_send(fd))
		aw_pair_note_shut(fd);
	/* A thread that waits for bytes of an extended socket sees the pair's end. */
	if (how != SHUT_WR)
		aw_extended_watch_bridged(fd);
	return result;
}
