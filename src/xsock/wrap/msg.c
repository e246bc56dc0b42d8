// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: send, recv and their kin. A bridged fd is an AF_UNIX socket: where AF_UNIX treats a
// flag or an address differently from TCP, the wrapper does as TCP.
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "xsock/base/iov.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/end.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/io.h"
#include "xsock/preload/wait.h"
#include "xsock/process/memory.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"
#include "xsock/wrap/wrap.h"

#define WINDOW_MAX 64 /* pieces of a call that drops bytes */

AW_WRAPPER ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	ssize_t sent;

	if (aw_io_is_carried(fd) && aw_io_transmit_one(fd, buf, len, flags, &sent))
		return sent;
	if (aw_end_is_bridged(fd))
		return aw_end_of_write(fd, aw_libc()->send(fd, buf, len, flags | MSG_NOSIGNAL), len,
				       flags);
	return aw_libc()->send(fd, buf, len, flags);
}
AW_WRAPPER_ALIAS(__send, send);

/*
 * Connects fd where it is to be iWARP and the call is a fast open (MSG_FASTOPEN), by which the first bytes would be TCP's alone.
 * Returns whether the call goes on as a write; false, with *result 0: it is another call.
 */
static bool open_fast(int fd, int flags, const struct sockaddr *to, socklen_t to_len, int *result)
{
	*result = 0;
	if (!(flags & MSG_FASTOPEN) || !to ||
	    (aw_fdtab_state(fd) != AW_FD_CANDIDATE && !aw_protect_covers(fd)) ||
	    !aw_xs_mode_is_carried(aw_mode_of_connect(fd, to)))
		return false;
	*result = connect(fd, to, to_len);
	return *result == 0;
}

/* TCP ignores the address for a connected socket; AF_UNIX does not. */
AW_WRAPPER ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
			  socklen_t to_len)
{
	int result;

	if (aw_io_is_carried(fd))
		return send(fd, buf, len, flags);
	if (open_fast(fd, flags, to, to_len, &result))
		return send(fd, buf, len, flags & ~MSG_FASTOPEN);
	return result ? result : aw_libc()->sendto(fd, buf, len, flags, to, to_len);
}

/* Calls see with each fd beside msg, until one call fails. */
static int each_fd(struct msghdr *msg, int (*see)(int fd))
{
	struct cmsghdr *head = msg->msg_controllen ? CMSG_FIRSTHDR(msg) : NULL;

	for (; head; head = CMSG_NXTHDR(msg, head)) {
		size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		const unsigned char *fds = CMSG_DATA(head);

		/* A control message beyond the buffer: the kernel refuses it. */
		if (head->cmsg_len < CMSG_LEN(0) ||
		    head->cmsg_len >
			    msg->msg_controllen - (size_t)((char *)head - (char *)msg->msg_control))
			return 0;
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, fds + i * sizeof(fd), sizeof(fd));
			if (see(fd))
				return -1;
		}
	}
	return 0;
}

/*
 * Decides fd and bridges it before another process receives it: that process may not have this
 * library. Returns 0, or -1 with errno.
 */
static int prepare_to_pass(int fd)
{
	if (aw_first_io(fd, AW_FIRST_HAND_OVER, false))
		return -1;
	return aw_framed_bridge(fd);
}

/* Prepares the fds beside msg. Returns 0, or -1 with errno. */
static int prepare_fds(const struct msghdr *msg)
{
	if (!msg->msg_controllen || (!aw_fdtab_any_undecided() && aw_arena_fd() < 0))
		return 0;
	return each_fd((struct msghdr *)msg, prepare_to_pass);
}

/* Adds a received fd to the table. Keeps errno. */
static int note_received(int fd)
{
	int saved = errno;

	aw_socket_received(fd);
	errno = saved;
	return 0;
}

static size_t total_length(const struct msghdr *msg)
{
	return aw_iov_length(msg->msg_iov, msg->msg_iovlen);
}

AW_WRAPPER ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct msghdr bare;
	ssize_t sent;
	int result;

	if (!msg || msg->msg_iovlen > IOV_MAX) /* the kernel returns the right errno */
		return aw_libc()->sendmsg(fd, msg, flags);
	if (open_fast(fd, flags, msg->msg_name, msg->msg_namelen, &result))
		flags &= ~MSG_FASTOPEN;
	else if (result)
		return result;
	if (aw_io_is_carried(fd) &&
	    aw_io_transmit(fd, msg->msg_iov, (int)msg->msg_iovlen, flags, &sent))
		return sent;
	if (!aw_end_is_bridged(fd))
		return prepare_fds(msg) ? -1 : aw_libc()->sendmsg(fd, msg, flags);
	bare = *msg;
	bare.msg_name = NULL;
	bare.msg_namelen = 0;
	bare.msg_control = NULL;
	bare.msg_controllen = 0;
	return aw_end_of_write(fd, aw_libc()->sendmsg(fd, &bare, flags | MSG_NOSIGNAL),
			       total_length(msg), flags);
}
AW_WRAPPER_TIME64(__sendmsg64, sendmsg);

/* As in the kernel, a message that was sent in part is the last one. */
AW_WRAPPER int sendmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags)
{
	unsigned done = 0;

	if (aw_first_io(fd, AW_FIRST_WRITE, flags & MSG_DONTWAIT))
		return -1;
	/* A fast open is each message's: sendmsg connects a socket that is to be iWARP. */
	if (!msgs || (!(flags & MSG_FASTOPEN) && !aw_end_is_bridged(fd) && !aw_framed_slot(fd))) {
		for (unsigned i = 0; msgs && i < count && i < IOV_MAX; i++)
			if (prepare_fds(&msgs[i].msg_hdr))
				return -1;
		return aw_libc()->sendmmsg(fd, msgs, count, flags);
	}
	while (done < count) {
		ssize_t sent = sendmsg(fd, &msgs[done].msg_hdr, flags);

		if (sent < 0)
			break;
		msgs[done].msg_len = (unsigned)sent;
		if ((size_t)sent < total_length(&msgs[done++].msg_hdr))
			break;
	}
	return done || !count ? (int)done : -1;
}
AW_WRAPPER_TIME64(__sendmmsg64, sendmmsg);

/* Returns whether fd is bridged and flags has one that AF_UNIX treats differently. */
static bool is_tcp_only(int fd, int flags)
{
	return flags & (MSG_TRUNC | MSG_ERRQUEUE) && aw_end_is_bridged(fd);
}

/* MSG_TRUNC of TCP discards bytes and leaves the program's buffer, if any, as it is. */
static ssize_t recv_tcp_only(int fd, size_t len, int flags)
{
	bool whole = flags & MSG_WAITALL && !(flags & MSG_PEEK);
	struct iovec window[WINDOW_MAX];
	struct msghdr msg = { .msg_iov = window };
	size_t done = 0, room;
	ssize_t got;

	if (flags & MSG_ERRQUEUE)
		return aw_fail_with(EAGAIN); /* the error queue is empty */
	do {
		msg.msg_iovlen = (size_t)aw_memory_waste(len - done, window, WINDOW_MAX, &room);
		got = aw_libc()->recvmsg(fd, &msg, flags & ~MSG_TRUNC);
		done += got > 0 ? (size_t)got : 0;
	} while (whole && got > 0 && (size_t)got == room && done < len);
	return done ? (ssize_t)done : got;
}

AW_WRAPPER ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t got;

	if (aw_io_is_carried(fd) && aw_io_receive_one(fd, buf, len, flags, &got))
		return got;
	if (is_tcp_only(fd, flags))
		return recv_tcp_only(fd, len, flags);
	return aw_end_of_read(fd, aw_libc()->recv(fd, buf, len, flags), len);
}

AW_WRAPPER ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	aw_check_room(len, room);
	return recv(fd, buf, len, flags);
}

AW_WRAPPER ssize_t recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
			    socklen_t *from_len)
{
	ssize_t got;

	if (aw_io_is_carried(fd) && aw_io_receive_one(fd, buf, len, flags, &got)) {
		if (got >= 0 && from && from_len)
			*from_len = 0; /* as TCP does */
		return got;
	}
	if (is_tcp_only(fd, flags))
		return recv_tcp_only(fd, len, flags);
	if (aw_end_is_bridged(fd) && from && from_len) { /* a unix socket has a name */
		got = aw_end_of_read(fd, aw_libc()->recv(fd, buf, len, flags), len);
		*from_len = got >= 0 ? 0 : *from_len;
		return got;
	}
	return aw_end_of_read(fd, aw_libc()->recvfrom(fd, buf, len, flags, from, from_len), len);
}

/*
 * The last two arguments, an address and its length, are pointers and so read by va_arg alike on
 * every architecture.
 */
AW_WRAPPER ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, ...)
{
	struct sockaddr *from;
	socklen_t *from_len;
	va_list args;

	va_start(args, flags);
	from = va_arg(args, struct sockaddr *);
	from_len = va_arg(args, socklen_t *);
	va_end(args);
	aw_check_room(len, room);
	return recvfrom(fd, buf, len, flags, from, from_len);
}

AW_WRAPPER ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t got;

	if (!msg || msg->msg_iovlen > IOV_MAX) /* the kernel returns the right errno */
		return aw_libc()->recvmsg(fd, msg, flags);
	if (aw_io_is_carried(fd) &&
	    aw_io_receive(fd, msg->msg_iov, (int)msg->msg_iovlen, flags, &got)) {
		if (got >= 0) {
			msg->msg_namelen = 0;
			msg->msg_controllen = 0;
			msg->msg_flags = flags & MSG_OOB;
		}
		return got;
	}
	if (is_tcp_only(fd, flags))
		return recv_tcp_only(fd, total_length(msg), flags);
	got = aw_libc()->recvmsg(fd, msg, flags);
	if (got >= 0 && aw_end_is_bridged(fd))
		msg->msg_namelen = 0;
	if (__builtin_expect(got >= 0 && msg->msg_controllen, 0))
		(void)each_fd(msg, note_received);
	return aw_end_of_read(fd, got, total_length(msg));
}
AW_WRAPPER_TIME64(__recvmsg64, recvmsg);

/*
 * Receives messages one by one. With MSG_WAITFORONE only the first one is waited for. As in the
 * kernel, an error that there is already is returned at once, and the time-out is checked after each message.
 */
static int receive_each(int fd, struct mmsghdr *msgs, unsigned count, int flags,
			struct timespec *timeout)
{
	struct aw_deadline deadline = aw_deadline_after(timeout);
	int err = 0;
	socklen_t len = sizeof(err);
	unsigned done = 0;

	if (aw_framed_get_option(fd, SOL_SOCKET, SO_ERROR, &err, &len) && err)
		return aw_fail_with(err);
	while (done < count) {
		ssize_t got = recvmsg(fd, &msgs[done].msg_hdr, flags & ~MSG_WAITFORONE);

		if (got < 0)
			break;
		msgs[done++].msg_len = (unsigned)got;
		if (timeout)
			(void)aw_deadline_left(&deadline, timeout);
		if (aw_deadline_is_over(&deadline))
			return (int)done;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	if (done && done < count)
		aw_framed_keep_failure(fd, errno);
	return done || !count ? (int)done : -1;
}

AW_WRAPPER int recvmmsg(int fd, struct mmsghdr *msgs, unsigned count, int flags,
			struct timespec *timeout)
{
	int got;

	if (aw_first_io(fd, AW_FIRST_READ, flags & MSG_DONTWAIT))
		return -1;
	if (msgs && !(flags & MSG_ERRQUEUE) && (aw_framed_slot(fd) || is_tcp_only(fd, flags)))
		return receive_each(fd, msgs, count, flags, timeout);
	if (is_tcp_only(fd, flags))
		return (int)recv_tcp_only(fd, 0, flags | MSG_ERRQUEUE);
	aw_extended_watch_bridged(fd);
	got = aw_libc()->recvmmsg(fd, msgs, count, flags, timeout);
	for (int i = 0; i < got; i++)
		(void)each_fd(&msgs[i].msg_hdr, note_received);
	return got;
}
