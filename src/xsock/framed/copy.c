// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendfile(2) and splice(2) with a FRAMED fd, by copying. Called by wrap/.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/process/memory.h"
#include "xsock/process/waits.h"

#define CHUNK_BYTES 65536u
#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)
/* a chunk on the stack: to map memory costs as much as to send that many bytes */
#define STACK_BYTES 8192u

/* Another thread may have bridged the fd meanwhile: then libc's calls move the bytes, through the pair. */
static ssize_t receive(int fd, const struct iovec *iov, int flags)
{
	ssize_t got;

	if (aw_framed_receive(fd, iov, 1, flags, &got))
		return got;
	return aw_libc()->recv(fd, iov->iov_base, iov->iov_len, flags);
}

static ssize_t transmit(int fd, const struct iovec *iov)
{
	ssize_t sent;

	if (aw_framed_transmit(fd, iov, 1, 0, &sent))
		return sent;
	return aw_libc()->send(fd, iov->iov_base, iov->iov_len, 0);
}

static ssize_t read_chunk(int in, const off64_t *offset, void *chunk, size_t len)
{
	return offset ? pread64(in, chunk, len, *offset) : aw_libc()->read(in, chunk, len);
}

/* Moves the file's position, or *offset, back to the first byte that was not sent. */
static void unread_rest(int in, off64_t *offset, ssize_t got, ssize_t sent)
{
	sent = sent < 0 ? 0 : sent;
	if (offset)
		*offset += sent;
	else if (sent < got)
		(void)lseek64(in, sent - got, SEEK_CUR);
}

/* Copies until a read or a send is short. */
static ssize_t send_chunks(int out, int in, off64_t *offset, size_t count, void *chunk)
{
	size_t done = 0;

	while (done < count) {
		size_t len = count - done < CHUNK_BYTES ? count - done : CHUNK_BYTES;
		ssize_t sent, got = read_chunk(in, offset, chunk, len);
		struct iovec iov = { chunk, (size_t)(got > 0 ? got : 0) };

		if (got <= 0)
			return done ? (ssize_t)done : got;
		sent = transmit(out, &iov);
		unread_rest(in, offset, got, sent);
		if (sent < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)sent;
		if (sent < got)
			break;
	}
	return (ssize_t)done;
}

static ssize_t send_mapped(int out, int in, off64_t *offset, size_t count)
{
	void *chunk = aw_memory_map(CHUNK_BYTES);
	ssize_t sent;

	if (!chunk) {
		errno = ENOMEM;
		return -1;
	}
	sent = send_chunks(out, in, offset, count, chunk);
	aw_memory_unmap(chunk, CHUNK_BYTES);
	return sent;
}

ssize_t aw_framed_sendfile(int out, int in, off64_t *offset, size_t count)
{
	uint8_t chunk[STACK_BYTES];

	/* Bytes that were read from a pipe or a socket could not be put back. */
	if (lseek64(in, 0, SEEK_CUR) < 0) {
		errno = errno == ESPIPE && !offset ? EINVAL : errno;
		return -1;
	}
	return count > sizeof(chunk) ? send_mapped(out, in, offset, count)
				     : send_chunks(out, in, offset, count, chunk);
}

static bool is_ready(int fd, short events)
{
	struct pollfd pollfd = { .fd = fd, .events = events };

	return aw_libc()->poll(&pollfd, 1, 0) > 0;
}

/* Waits for events, at most limit_ns (negative: no limit). Returns 0, or -1 with errno; EAGAIN: the time is over. */
static int await_fd(int fd, short events, int64_t limit_ns)
{
	struct pollfd pollfd = { .fd = fd, .events = events };
	struct timespec limit = { limit_ns / 1000000000, limit_ns % 1000000000 };
	int ready;

	do {
		aw_shield_begin_wait();
		ready = aw_libc()->ppoll(&pollfd, 1, limit_ns < 0 ? NULL : &limit, NULL);
	} while (ready < 0 && errno == EINTR && aw_shield_restarts(limit_ns));
	if (ready == 0)
		errno = EAGAIN;
	return ready > 0 ? 0 : -1;
}

/*
 * Returns how many bytes the pipe takes without waiting: an empty one as many as it holds; any other that polls
 * writable a page (pipe(7), PIPE_BUF).
 */
static size_t pipe_room(int pipe)
{
	int queued, size;

	if (!is_ready(pipe, POLLOUT))
		return 0;
	size = aw_libc()->fcntl(pipe, F_GETPIPE_SZ);
	if (size > 0 && aw_libc()->ioctl(pipe, FIONREAD, &queued) == 0 && queued == 0)
		return (size_t)size;
	return PIPE_BUF;
}

/* Takes bytes that were peeked, and are in the pipe. Returns how many, or -1. */
static ssize_t take_whole(int in, char *chunk, size_t len)
{
	struct pollfd pollfd = { .fd = in, .events = POLLIN };
	size_t done = 0;

	while (done < len) {
		struct iovec iov = { chunk + done, len - done };
		ssize_t n = receive(in, &iov, MSG_WAITALL);

		/* A pair that another thread has just made gets the bytes in a moment. */
		if (n < 0 && errno == EAGAIN && aw_fdtab_is_paired(in))
			(void)aw_libc()->poll(&pollfd, 1, -1);
		else if (n <= 0)
			return done ? (ssize_t)done : n;
		else
			done += (size_t)n;
	}
	return (ssize_t)done;
}

/* The bytes are peeked first, so that those that the pipe does not take stay in the connection. */
static ssize_t move_to_pipe(int in, int out, void *chunk, size_t len, int flags)
{
	struct iovec iov = { chunk, len };
	ssize_t got = receive(in, &iov, flags | MSG_PEEK);

	if (got <= 0)
		return got;
	got = aw_libc()->write(out, chunk, (size_t)got);
	if (got <= 0)
		return got;
	return take_whole(in, chunk, (size_t)got);
}

static ssize_t moved(size_t done)
{
	if (done)
		return (ssize_t)done;
	errno = EAGAIN;
	return -1;
}

static ssize_t splice_from_record(int in, int out, void *chunk, size_t len, unsigned flags)
{
	size_t done = 0;

	while (done < len) {
		size_t room = pipe_room(out), left = len - done;
		ssize_t n;

		if (room == 0) {
			if (done || flags & SPLICE_F_NONBLOCK)
				break;
			if (await_fd(out, POLLOUT, -1))
				return -1;
			continue;
		}
		n = move_to_pipe(in, out, chunk, room < left ? room : left,
				 done ? MSG_DONTWAIT : 0);
		if (n <= 0)
			return done ? (ssize_t)done : n;
		done += (size_t)n;
	}
	return moved(done);
}

/* Returns how many of len bytes the connection takes without waiting. After an error it is len: the send reports it. */
static size_t record_room(int out, size_t len)
{
	struct aw_slot *slot = aw_framed_slot(out);
	struct aw_half half;
	size_t room;

	if (!slot || aw_half_enter_for(&half, slot, &slot->tx_lock, out) != 0)
		return len;
	room = aw_record_room(&slot->record, out, len);
	aw_half_leave(&half);
	return room;
}

/*
 * Sends bytes that have left the pipe, however long that takes: another thread may have used the room that
 * there was. Returns how many were sent; -1: none.
 */
static ssize_t send_whole(int out, const char *chunk, size_t len)
{
	struct pollfd pollfd = { .fd = out, .events = POLLOUT };
	size_t done = 0;

	while (done < len) {
		struct iovec iov = { (char *)chunk + done, len - done };
		ssize_t sent = transmit(out, &iov);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return done ? (ssize_t)done : -1;
		if (sent < 0)
			(void)aw_libc()->poll(&pollfd, 1, -1);
		else
			done += (size_t)sent;
	}
	return (ssize_t)done;
}

/* Waits until the pipe has bytes, unless some have been moved already. Returns 0, or -1 with errno. */
static int await_pipe(int in, bool may_wait, size_t done)
{
	if (is_ready(in, POLLIN))
		return 0;
	errno = EAGAIN;
	return done || !may_wait ? -1 : await_fd(in, POLLIN, -1);
}

/* Only as many bytes leave the pipe as the connection takes at once: a signal or a time-out may end the call at any time. */
static ssize_t splice_to_record(int in, int out, void *chunk, size_t len, unsigned flags)
{
	bool may_wait = aw_waits_may(out, 0),
	     pipe_may = !(flags & SPLICE_F_NONBLOCK) && aw_waits_may(in, 0);
	size_t done = 0, room;
	ssize_t got = 1;

	while (got > 0 && done < len && await_pipe(in, pipe_may, done) == 0) {
		room = record_room(out, len - done);
		errno = EAGAIN;
		if (room == 0 &&
		    (!may_wait || await_fd(out, POLLOUT, aw_waits_timeout_ns(out, SO_SNDTIMEO))))
			break;
		if (room == 0)
			continue;
		got = aw_libc()->read(in, chunk, room);
		if (got > 0)
			got = send_whole(out, chunk, (size_t)got);
		done += got > 0 ? (size_t)got : 0;
	}
	return done ? (ssize_t)done : got == 0 ? 0 : -1;
}

/* The kernel's rules: flags are about the pipe, and O_NONBLOCK of the connection about the connection. */
ssize_t aw_framed_splice(int in, int out, size_t count, unsigned flags)
{
	size_t len = count < CHUNK_BYTES ? count : CHUNK_BYTES;
	bool from_record = aw_framed_slot(in);
	int saved = errno;
	void *chunk;
	ssize_t n;

	if (flags & ~SPLICE_FLAGS || aw_libc()->fcntl(from_record ? out : in, F_GETPIPE_SZ) < 0) {
		errno = EINVAL;
		return -1;
	}
	chunk = aw_memory_map(CHUNK_BYTES);
	if (!chunk) {
		errno = ENOMEM;
		return -1;
	}
	n = from_record ? splice_from_record(in, out, chunk, len, flags)
			: splice_to_record(in, out, chunk, len, flags);
	aw_memory_unmap(chunk, CHUNK_BYTES);
	if (n >= 0)
		errno = saved;
	return n;
}
