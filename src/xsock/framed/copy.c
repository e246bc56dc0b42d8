// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendfile(2) and splice(2) with a FRAMED fd, by copying. Called by wrap/.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/process/memory.h"
#include "xsock/process/waits.h"

#define CHUNK_BYTES 65536u
#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

/* A chunk that no thread uses, or NULL: to map memory costs as much as to send 8 KiB. */
static _Atomic(void *) spare;

static void *take_chunk(void)
{
	void *chunk = atomic_exchange(&spare, NULL);

	chunk = chunk ? chunk : aw_memory_map(CHUNK_BYTES);
	if (!chunk)
		errno = ENOMEM;
	return chunk;
}

static void give_chunk(void *chunk)
{
	void *none = NULL;

	if (!atomic_compare_exchange_strong(&spare, &none, chunk))
		aw_memory_unmap(chunk, CHUNK_BYTES);
}

/* Another thread may have bridged the fd meanwhile: then libc's call moves the bytes, through the pair. */
static ssize_t transmit_fd(int fd, const struct iovec *iov)
{
	ssize_t sent;

	if (aw_framed_transmit(fd, iov, 1, 0, &sent))
		return sent;
	return aw_libc()->send(fd, iov->iov_base, iov->iov_len, 0);
}

/* Copies until a read or a send is short. */
static ssize_t send_chunks(int out, int in, off64_t *offset, size_t count, void *chunk)
{
	size_t done = 0;

	while (done < count) {
		size_t len = count - done < CHUNK_BYTES ? count - done : CHUNK_BYTES;
		ssize_t sent, got = offset ? pread64(in, chunk, len, *offset)
					   : aw_libc()->read(in, chunk, len);
		struct iovec iov = { chunk, (size_t)(got > 0 ? got : 0) };

		if (got <= 0)
			return done ? (ssize_t)done : got;
		sent = transmit_fd(out, &iov);
		/* The position, or *offset, stands at the first byte that was not sent. */
		if (offset)
			*offset += sent > 0 ? sent : 0;
		else if (sent < got)
			(void)lseek64(in, (sent > 0 ? sent : 0) - got, SEEK_CUR);
		if (sent < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)sent;
		if (sent < got)
			break;
	}
	return (ssize_t)done;
}

ssize_t aw_framed_sendfile(int out, int in, off64_t *offset, size_t count)
{
	ssize_t sent;
	void *chunk;

	/* Bytes that were read from a pipe or a socket could not be put back. */
	if (lseek64(in, 0, SEEK_CUR) < 0) {
		errno = errno == ESPIPE && !offset ? EINVAL : errno;
		return -1;
	}
	chunk = take_chunk();
	if (!chunk)
		return -1;
	sent = send_chunks(out, in, offset, count, chunk);
	give_chunk(chunk);
	return sent;
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

/* A splice: a FRAMED fd at one side, a pipe at the other. */
struct splice {
	int in, out;
	bool from_record; /* in is the record */
	bool pipe_may, record_may; /* the call may wait for that side */
	size_t len;
	char *chunk; /* room for len bytes */
};

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

static ssize_t splice_take(const struct splice *s, size_t len, bool may_wait)
{
	struct pollfd out = { .fd = s->out };
	struct iovec iov = { s->chunk, len };
	int flags = may_wait ? 0 : MSG_DONTWAIT;
	ssize_t got;

	if (!s->from_record)
		return aw_libc()->read(s->in, s->chunk, len);
	/* Nobody reads the pipe: the write that fails raises SIGPIPE, and the bytes stay in the connection. */
	if (aw_libc()->poll(&out, 1, 0) > 0 && out.revents & POLLERR)
		return aw_libc()->write(s->out, s->chunk, 1);
	if (aw_framed_receive(s->in, &iov, 1, flags, &got))
		return got;
	return aw_libc()->recv(s->in, s->chunk, len, flags); /* as in transmit_fd */
}

/*
 * Gives out the bytes that have left in, however long that takes: another thread may have used the room that
 * there was. Returns how many were given; -1: none.
 */
static ssize_t put_whole(const struct splice *s, size_t len)
{
	struct pollfd pollfd = { .fd = s->out, .events = POLLOUT };
	size_t done = 0;

	while (done < len) {
		struct iovec iov = { s->chunk + done, len - done };
		ssize_t n = s->from_record ? aw_libc()->write(s->out, iov.iov_base, iov.iov_len)
					   : transmit_fd(s->out, &iov);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return done ? (ssize_t)done : -1;
		if (n < 0)
			(void)aw_libc()->poll(&pollfd, 1, -1);
		else
			done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Only as many bytes leave in as out takes at once: a signal or a time-out may end the call at any time. */
static ssize_t splice_by_copy(const struct splice *s)
{
	size_t done = 0, left, room;
	ssize_t got = 1;

	while (got > 0 && done < s->len) {
		/* The call waits for the pipe's bytes only until some have been moved. A record's receive waits itself. */
		if (!s->from_record && !is_ready(s->in, POLLIN)) {
			errno = EAGAIN;
			if (done || !s->pipe_may || await_fd(s->in, POLLIN, -1) != 0)
				break;
		}
		left = s->len - done;
		room = s->from_record ? pipe_room(s->out) : record_room(s->out, left);
		room = room < left ? room : left;
		if (room == 0) {
			/* For a pipe's room, too, it waits only until bytes have been moved. */
			bool may_wait = s->from_record ? !done && s->pipe_may : s->record_may;

			errno = EAGAIN;
			if (!may_wait ||
			    await_fd(s->out, POLLOUT,
				     s->from_record ? -1
						    : aw_waits_timeout_ns(s->out, SO_SNDTIMEO)))
				break;
			continue;
		}
		got = splice_take(s, room, !done);
		if (got > 0)
			got = put_whole(s, (size_t)got);
		done += got > 0 ? (size_t)got : 0;
	}
	return done ? (ssize_t)done : got == 0 ? 0 : -1;
}

/* The kernel's rules: flags are about the pipe, and O_NONBLOCK of the connection about the connection. */
ssize_t aw_framed_splice(int in, int out, size_t count, unsigned flags)
{
	bool from_record = aw_framed_slot(in);
	int pipe = from_record ? out : in, saved = errno;
	struct splice s = {
		.in = in,
		.out = out,
		.from_record = from_record,
		.pipe_may = !(flags & SPLICE_F_NONBLOCK) && aw_waits_may(pipe, 0),
		.record_may = aw_waits_may(from_record ? in : out, 0),
		.len = count < CHUNK_BYTES ? count : CHUNK_BYTES,
	};
	ssize_t n;

	if (flags & ~SPLICE_FLAGS || aw_libc()->fcntl(pipe, F_GETPIPE_SZ) < 0) {
		errno = EINVAL;
		return -1;
	}
	s.chunk = take_chunk();
	if (!s.chunk)
		return -1;
	n = splice_by_copy(&s);
	give_chunk(s.chunk);
	if (n >= 0)
		errno = saved;
	return n;
}
