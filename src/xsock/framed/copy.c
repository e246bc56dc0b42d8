// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendfile(2) and splice(2) with a FRAMED fd, by copying. Called by wrap/.
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/process/memory.h"

#define CHUNK_BYTES 65536u
/* a chunk on the stack: to map memory costs as much as to send that many bytes */
#define STACK_BYTES 8192u

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
		if (!aw_framed_transmit(out, &iov, 1, 0, &sent))
			return -1;
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

	if (aw_framed_slot(in)) { /* as for any socket */
		errno = EINVAL;
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

/*
 * Copies from the record to the pipe. The bytes are peeked first, so that those that the pipe does
 * not take stay in the connection.
 */
static ssize_t splice_from_record(int in, int out, void *chunk, size_t len, int flags)
{
	struct iovec iov = { chunk, len };
	ssize_t got, taken;

	if (flags & MSG_DONTWAIT && !is_ready(out, POLLOUT)) {
		errno = EAGAIN;
		return -1;
	}
	if (!aw_framed_receive(in, &iov, 1, flags | MSG_PEEK, &got) || got <= 0)
		return got;
	got = aw_libc()->write(out, chunk, (size_t)got);
	if (got <= 0)
		return got;
	iov.iov_len = (size_t)got;
	if (!aw_framed_receive(in, &iov, 1, MSG_WAITALL, &taken))
		return -1;
	return got;
}

/*
 * Copies from the pipe to the record. Bytes that have left the pipe are sent, however long that
 * takes.
 */
static ssize_t splice_to_record(int in, int out, void *chunk, size_t len, int flags)
{
	struct iovec iov = { chunk, 0 };
	ssize_t got, sent;
	size_t done = 0;

	if (flags & MSG_DONTWAIT && (!is_ready(in, POLLIN) || !is_ready(out, POLLOUT))) {
		errno = EAGAIN;
		return -1;
	}
	got = aw_libc()->read(in, chunk, len);
	while (got > 0 && done < (size_t)got) {
		struct pollfd pollfd = { .fd = out, .events = POLLOUT };

		iov = (struct iovec){ (char *)chunk + done, (size_t)got - done };
		if (!aw_framed_transmit(out, &iov, 1, 0, &sent) || (sent < 0 && errno != EAGAIN))
			return done ? (ssize_t)done : -1;
		if (sent < 0)
			(void)aw_libc()->poll(&pollfd, 1, -1);
		else
			done += (size_t)sent;
	}
	return got;
}

ssize_t aw_framed_splice(int in, int out, size_t count, unsigned flags)
{
	int msg = flags & SPLICE_F_NONBLOCK ? MSG_DONTWAIT : 0;
	size_t len = count < CHUNK_BYTES ? count : CHUNK_BYTES;
	void *chunk = aw_memory_map(CHUNK_BYTES);
	ssize_t n = -1;

	if (!chunk)
		errno = ENOMEM;
	else if (aw_framed_slot(in))
		n = splice_from_record(in, out, chunk, len, msg);
	else
		n = splice_to_record(in, out, chunk, len, msg);
	aw_memory_unmap(chunk, CHUNK_BYTES);
	return n;
}
