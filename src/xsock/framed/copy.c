// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sendfile(2) and splice(2) of a framed fd: by copying.
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/process/memory.h"

#define CHUNK 65536u
#define SMALL 8192u /* on the stack: to map memory costs as much as to send so many bytes */

static ssize_t read_chunk(int in, const off64_t *offset, void *chunk, size_t len)
{
	return offset ? pread64(in, chunk, len, *offset) : aw_libc()->read(in, chunk, len);
}

/* What was read and not taken is to be read once more. */
static void go_back(int in, off64_t *offset, ssize_t got, ssize_t sent)
{
	sent = sent < 0 ? 0 : sent;
	if (offset)
		*offset += sent;
	else if (sent < got)
		(void)lseek64(in, sent - got, SEEK_CUR);
}

/* As much as goes without a look whether there is more to be waited for. */
static ssize_t send_chunks(int out, int in, off64_t *offset, size_t count, void *chunk)
{
	size_t done = 0;

	while (done < count) {
		size_t len = count - done < CHUNK ? count - done : CHUNK;
		ssize_t sent, got = read_chunk(in, offset, chunk, len);
		struct iovec iov = { chunk, (size_t)(got > 0 ? got : 0) };

		if (got <= 0)
			return done ? (ssize_t)done : got;
		if (!aw_framed_transmit(out, &iov, 1, 0, &sent))
			return -1;
		go_back(in, offset, got, sent);
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
	void *chunk = aw_memory_map(CHUNK);
	ssize_t sent;

	if (!chunk) {
		errno = ENOMEM;
		return -1;
	}
	sent = send_chunks(out, in, offset, count, chunk);
	aw_memory_unmap(chunk, CHUNK);
	return sent;
}

ssize_t aw_framed_sendfile(int out, int in, off64_t *offset, size_t count)
{
	uint8_t chunk[SMALL];

	if (aw_framed_slot(in)) { /* as of any socket */
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

/* Looked at first: what the pipe does not take stays in the connection. */
static ssize_t from_socket(int in, int out, void *chunk, size_t len, int flags)
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

/* What has left the pipe is sent, however long that takes. */
static ssize_t to_socket(int in, int out, void *chunk, size_t len, int flags)
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
	size_t len = count < CHUNK ? count : CHUNK;
	void *chunk = aw_memory_map(CHUNK);
	ssize_t n = -1;

	if (!chunk)
		errno = ENOMEM;
	else if (aw_framed_slot(in))
		n = from_socket(in, out, chunk, len, msg);
	else
		n = to_socket(in, out, chunk, len, msg);
	aw_memory_unmap(chunk, CHUNK);
	return n;
}
