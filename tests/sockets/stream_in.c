// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls that receive.
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS 3

struct room {
	uint8_t octets[CHUNK_MAX];
	size_t len;
	struct iovec parts[PARTS];
	int flags;
};

static __thread struct room room;

/* More than the rest is asked for, too, where somebody waits for the end: nothing may come before it. */
static void prepare(struct end *e)
{
	uint64_t rest = e->in.total - e->in.offset;
	size_t len = rng_size(&e->rng, e->stops_at_total ? rest : CHUNK_MAX);
	size_t cut = rng_below(&e->rng, len + 1), cut2 = cut + rng_below(&e->rng, len - cut + 1);
	room.len = len;
	room.flags = e->calls_dontwait ? MSG_DONTWAIT : 0;
	room.parts[0] = (struct iovec){ room.octets, cut };
	room.parts[1] = (struct iovec){ room.octets + cut, cut2 - cut };
	room.parts[2] = (struct iovec){ room.octets + cut2, len - cut2 };
}

static ssize_t by_read(struct end *e)
{
	return read(e->fd, room.octets, room.len);
}

static ssize_t by_raw_read(struct end *e)
{
	if (!e->in.offset && !e->out.offset)
		return by_read(e);
	return syscall(SYS_read, e->fd, room.octets, room.len);
}

static ssize_t by_readv(struct end *e)
{
	return readv(e->fd, room.parts, PARTS);
}

static ssize_t by_recv(struct end *e)
{
	return recv(e->fd, room.octets, room.len, room.flags);
}

static ssize_t by_recvfrom(struct end *e)
{
	return recvfrom(e->fd, room.octets, room.len, room.flags, NULL, NULL);
}

static ssize_t by_recvmsg(struct end *e)
{
	struct msghdr msg = { .msg_iov = room.parts, .msg_iovlen = PARTS };
	ssize_t n = recvmsg(e->fd, &msg, room.flags);
	CHECK(n < 0 || !(msg.msg_flags & (MSG_TRUNC | MSG_OOB)));
	return n;
}

static ssize_t by_recvmmsg(struct end *e)
{
	struct mmsghdr msgs[PARTS] = { 0 };
	ssize_t sum = 0;
	unsigned filled = 0;
	for (int i = 0; i < PARTS; i++)
		if (room.parts[i].iov_len)
			msgs[filled++].msg_hdr =
				(struct msghdr){ .msg_iov = &room.parts[i], .msg_iovlen = 1 };
	int n = recvmmsg(e->fd, msgs, filled, room.flags | MSG_WAITFORONE, NULL);
	for (int i = 0; i < n; i++) {
		/* One that is not filled may be followed by more that just came. */
		memmove(room.octets + sum, msgs[i].msg_hdr.msg_iov->iov_base, msgs[i].msg_len);
		sum += msgs[i].msg_len;
	}
	return n < 0 ? -1 : sum;
}

/* A peek, which must be the begin of what is received next. */
static ssize_t by_peek(struct end *e)
{
	ssize_t seen = recv(e->fd, room.octets, room.len, room.flags | MSG_PEEK);
	if (seen <= 0)
		return seen;
	flow_check(&e->in, room.octets, (size_t)seen);
	ssize_t n = recv(e->fd, room.octets, (size_t)seen, room.flags);
	CHECK(n == seen);
	return n;
}

/* As many as are announced can be had without waiting, even where fd is blocking. */
static ssize_t by_count(struct end *e)
{
	int count = -1;
	CHECK(!ioctl(e->fd, FIONREAD, &count) && count >= 0);
	CHECK((uint64_t)count <= e->in.total - e->in.offset);
	if (count == 0)
		return by_recv(e);
	size_t len = (size_t)count < CHUNK_MAX ? (size_t)count : CHUNK_MAX;
	ssize_t n = recv(e->fd, room.octets, len, MSG_WAITALL | room.flags);
	CHECK(n == (ssize_t)len || (n < 0 && errno == EINTR));
	return n;
}

static ssize_t by_waitall(struct end *e)
{
	return recv(e->fd, room.octets, room.len, room.flags | MSG_WAITALL);
}

static ssize_t by_splice(struct end *e)
{
	size_t len = room.len < PIPE_MAX ? room.len : PIPE_MAX;
	ssize_t n =
		splice(e->fd, NULL, e->in_pipe[1], NULL, len, e->blocking ? 0 : SPLICE_F_NONBLOCK);
	for (ssize_t at = 0; at < n;) {
		ssize_t got = read(e->in_pipe[0], room.octets + at, (size_t)(n - at));
		CHECK(got > 0 || errno == EINTR);
		at += got > 0 ? got : 0;
	}
	return n;
}

static const struct call with_flags[] = {
	{ "recv", by_recv },	     { "recvfrom", by_recvfrom }, { "recvmsg", by_recvmsg },
	{ "recv peek", by_peek },    { "recv count", by_count },  { "recv waitall", by_waitall },
	{ "recvmmsg", by_recvmmsg },
};
static const struct call without_flags[] = {
	{ "read", by_read },
	{ "raw read", by_raw_read },
	{ "readv", by_readv },
	{ "splice in", by_splice },
};

static const struct call *choose(struct end *e)
{
	prepare(e);
	if (e->calls_dontwait || rng_chance(&e->rng, 2))
		return &with_flags[rng_below(&e->rng, ARRAY_LEN(with_flags))];
	return &without_flags[rng_below(&e->rng, ARRAY_LEN(without_flags))];
}

long step_in(struct end *e)
{
	const struct call *call = choose(e);
	e->call = call->name;
	ssize_t n = call->run(e);
	if (n > 0) {
		flow_check(&e->in, room.octets, (size_t)n);
		e->in.offset += (size_t)n;
		return n;
	}
	if (n == 0) {
		CHECK(e->in.offset == e->in.total);
		return STEP_END;
	}
	if (errno == EINTR)
		return STEP_INTERRUPTED;
	CHECK(errno == EAGAIN && !e->blocking);
	return STEP_AGAIN;
}
