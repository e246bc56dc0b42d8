// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls that send.
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS 3

/* What one call is to send, whole and in parts. */
struct load {
	uint8_t octets[CHUNK_MAX];
	size_t len;
	struct iovec parts[PARTS];
	int flags;
};

static __thread struct load load;

static int flags_of(struct end *e, size_t len)
{
	int flags = MSG_NOSIGNAL | (e->calls_dontwait ? MSG_DONTWAIT : 0);
	bool last = e->out.offset + len == e->out.total;
	return flags | (!last && rng_chance(&e->rng, 6) ? MSG_MORE : 0);
}

static void prepare(struct end *e, size_t len)
{
	size_t cut = rng_below(&e->rng, len + 1), cut2 = cut + rng_below(&e->rng, len - cut + 1);
	flow_fill(&e->out, e->out.offset, load.octets, len);
	load.len = len;
	load.flags = flags_of(e, len);
	load.parts[0] = (struct iovec){ load.octets, cut };
	load.parts[1] = (struct iovec){ load.octets + cut, cut2 - cut };
	load.parts[2] = (struct iovec){ load.octets + cut2, len - cut2 };
}

static ssize_t by_write(struct end *e)
{
	return write(e->fd, load.octets, load.len);
}

/* Not the first octets of a connection: these the library has to see. */
static ssize_t by_raw_write(struct end *e)
{
	if (!e->in.offset && !e->out.offset)
		return by_write(e);
	return syscall(SYS_write, e->fd, load.octets, load.len);
}

static ssize_t by_writev(struct end *e)
{
	return writev(e->fd, load.parts, PARTS);
}

static ssize_t by_send(struct end *e)
{
	return send(e->fd, load.octets, load.len, load.flags);
}

static ssize_t by_sendto(struct end *e)
{
	return sendto(e->fd, load.octets, load.len, load.flags, NULL, 0);
}

static ssize_t by_sendmsg(struct end *e)
{
	struct msghdr msg = { .msg_iov = load.parts, .msg_iovlen = PARTS };
	return sendmsg(e->fd, &msg, load.flags);
}

static ssize_t by_sendmmsg(struct end *e)
{
	struct mmsghdr msgs[PARTS] = { 0 };
	ssize_t sum = 0;
	unsigned filled = 0;
	for (int i = 0; i < PARTS; i++)
		if (load.parts[i].iov_len)
			msgs[filled++].msg_hdr =
				(struct msghdr){ .msg_iov = &load.parts[i], .msg_iovlen = 1 };
	int n = sendmmsg(e->fd, msgs, filled, load.flags);
	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++)
		sum += msgs[i].msg_len;
	return sum;
}

/* The file's pages may still be on their way when the call returns: they never change. */
static ssize_t by_sendfile(struct end *e)
{
	off_t at = (off_t)(e->out.offset + e->out.seed % 5000);
	CHECK(pwrite(e->file, load.octets, load.len, at) == (ssize_t)load.len);
	off_t before = at;
	ssize_t n = sendfile(e->fd, e->file, &at, load.len);
	CHECK(at == before + (n > 0 ? n : 0));
	return n;
}

/* What is in the pipe has to leave it before any other call sends. */
static ssize_t by_splice(struct end *e)
{
	if (!e->staged) {
		size_t len = load.len < PIPE_MAX ? load.len : PIPE_MAX;
		CHECK(write(e->out_pipe[1], load.octets, len) == (ssize_t)len);
		e->staged = len;
	}
	ssize_t n = splice(e->out_pipe[0], NULL, e->fd, NULL, e->staged,
			   e->blocking ? 0 : SPLICE_F_NONBLOCK);
	e->staged -= n > 0 ? (size_t)n : 0;
	return n;
}

static const struct call with_flags[] = {
	{ "send", by_send },
	{ "sendto", by_sendto },
	{ "sendmsg", by_sendmsg },
	{ "sendmmsg", by_sendmmsg },
};
static const struct call without_flags[] = {
	{ "write", by_write },	     { "raw write", by_raw_write }, { "writev", by_writev },
	{ "sendfile", by_sendfile }, { "splice out", by_splice },
};

static const struct call *choose(struct end *e)
{
	if (e->staged)
		return &without_flags[ARRAY_LEN(without_flags) - 1];
	prepare(e, rng_size(&e->rng, e->out.total - e->out.offset));
	if (e->calls_dontwait || rng_chance(&e->rng, 2))
		return &with_flags[rng_below(&e->rng, ARRAY_LEN(with_flags))];
	return &without_flags[rng_below(&e->rng, ARRAY_LEN(without_flags))];
}

long step_out(struct end *e)
{
	const struct call *call = choose(e);
	e->call = call->name;
	ssize_t n = call->run(e);
	if (n > 0) {
		e->out.offset += (size_t)n;
		return n;
	}
	CHECK(n < 0);
	if (errno == EINTR)
		return STEP_INTERRUPTED;
	CHECK(errno == EAGAIN && !e->blocking);
	return STEP_AGAIN;
}
