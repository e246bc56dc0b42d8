// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsend, rrecv and their variants. As in TCP, a call that may block sends all bytes that it was
// given.
#define _GNU_SOURCE // IOV_MAX
#include <errno.h>
#include <limits.h>
#include <rdma/rsocket.h>
#include <string.h>

#include "xsock/rsockets/rs_datagram.h"
#include "xsock/rsockets/rs_name.h"
#include "xsock/rsockets/rs_socket.h"

/*
 * A call of the program's, and its progress. The program's iovs are copied in parts, since it must
 * not see them changed.
 */
struct transfer {
	struct aw_rs *rs;
	struct aw_xs_ep *ep;
	const struct iovec *iov;
	size_t iov_count, first_done; // whole ones left, and bytes done of the first
	int flags;
	bool may_block;
	int64_t timeout_ns;
};

enum {
	PART = 16
};

typedef ssize_t step_fn(struct aw_xs_ep *ep, const struct iovec *iov, int n, int flags);

static void transfer_advance(struct transfer *t, size_t done)
{
	t->first_done += done;
	while (t->iov_count && t->first_done >= t->iov[0].iov_len) {
		t->first_done -= t->iov[0].iov_len;
		t->iov++;
		t->iov_count--;
	}
}

/* Makes steps until all bytes are moved, a step fails, or the stream has ended; waits until a step is possible. */
static ssize_t step_all(struct transfer *t, step_fn *step, short events)
{
	bool whole = events == POLLOUT ||
		     ((t->flags & MSG_WAITALL) && !(t->flags & (MSG_PEEK | MSG_OOB)));
	struct iovec part[PART];
	ssize_t done = 0, got;
	size_t n;
	int err;

	transfer_advance(t, 0);
	if (!t->iov_count)
		return 0;
	do {
		n = t->iov_count < PART ? t->iov_count : PART;
		memcpy(part, t->iov, n * sizeof(*part));
		part[0].iov_base = (char *)part[0].iov_base + t->first_done;
		part[0].iov_len -= t->first_done;
		while ((got = step(t->ep, part, (int)n, t->flags)) == -EAGAIN && t->may_block) {
			err = aw_rs_wait(t->rs, events, t->timeout_ns);
			if (err < 0)
				return done ? done : err;
		}
		if (got <= 0)
			return done ? done : got;
		done += got;
		transfer_advance(t, (size_t)got);
	} while (whole && t->iov_count);
	return done;
}

static int transfer_begin(struct transfer *t, struct aw_rs *rs, const struct msghdr *msg, int flags)
{
	size_t sum = 0;

	*t = (struct transfer){
		.rs = rs,
		.ep = aw_rs_ep(rs),
		.iov = msg->msg_iov,
		.iov_count = msg->msg_iovlen,
		.flags = flags,
		.may_block = aw_rs_may_block(rs, flags),
	};
	if (t->iov_count > IOV_MAX)
		return -EINVAL;
	if (t->iov_count && !t->iov)
		return -EFAULT;
	for (size_t i = 0; i < t->iov_count; i++) {
		if (t->iov[i].iov_len > (size_t)SSIZE_MAX - sum)
			return -EINVAL;
		sum += t->iov[i].iov_len;
	}
	return t->ep ? 0 : -ENOTCONN;
}

static ssize_t send_stream(struct aw_rs *rs, const struct msghdr *msg, int flags)
{
	struct transfer t;
	int err = transfer_begin(&t, rs, msg, flags);

	if (err == -ENOTCONN)
		return -EPIPE;
	if (err)
		return err;
	t.timeout_ns = rs->options.send_timeout_ns;
	/* Before the connection is established the endpoint would take bytes; TCP does not. */
	while (aw_xs_ep_state(t.ep) == AW_XS_CONNECTING &&
	       !(aw_xs_ep_ready(t.ep) & (POLLOUT | POLLERR | POLLHUP))) {
		if (!t.may_block)
			return -EAGAIN;
		err = aw_rs_wait(rs, POLLOUT, t.timeout_ns);
		if (err < 0)
			return err;
	}
	return step_all(&t, aw_xs_ep_send, POLLOUT);
}

static ssize_t recv_stream(struct aw_rs *rs, struct msghdr *msg, int flags)
{
	struct transfer t;
	int err = transfer_begin(&t, rs, msg, flags);
	ssize_t got;

	if (err)
		return err;
	t.timeout_ns = rs->options.recv_timeout_ns;
	/* As the kernel's: the urgent byte may be announced, and come only once bytes before it are read. */
	t.may_block &= !(flags & MSG_OOB);
	got = step_all(&t, aw_xs_ep_recv, flags & MSG_OOB ? POLLPRI : POLLIN);
	/* rstream looks at errno after the end of the stream, too, and asks again for ever if that is EAGAIN. */
	if (got == 0)
		errno = ENOTCONN;
	return got;
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	struct aw_rs *rs = aw_rs_enter(socket);

	if (!rs)
		return -1;
	if (msg->msg_controllen)
		return aw_rs_leave(rs, -ENOTSUP);
	if (rs->datagram)
		return aw_rs_leave(rs, aw_rs_datagram_send(rs, msg, flags));
	if (msg->msg_name)
		return aw_rs_leave(rs, -EISCONN);
	return aw_rs_leave(rs, send_stream(rs, msg, flags));
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	struct aw_rs *rs = aw_rs_enter(socket);
	ssize_t got;

	if (!rs)
		return -1;
	msg->msg_controllen = 0;
	msg->msg_flags = flags & MSG_OOB;
	if (rs->datagram) {
		got = aw_rs_datagram_recv(rs, msg, flags);
	} else {
		got = recv_stream(rs, msg, flags);
		if (got >= 0 && msg->msg_name)
			aw_rs_name_get(rs, true, msg->msg_name, &msg->msg_namelen);
	}
	return aw_rs_leave(rs, got);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { (void *)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	msg.msg_name = (void *)dest_addr;
	msg.msg_namelen = dest_addr ? addrlen : 0;
	return rsendmsg(socket, &msg, flags);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsendto(socket, buf, count, 0, NULL, 0);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	return rsendmsg(socket, &msg, 0);
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
		  socklen_t *addrlen)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	msg.msg_name = addrlen ? src_addr : NULL;
	msg.msg_namelen = src_addr && addrlen ? *addrlen : 0;
	got = rrecvmsg(socket, &msg, flags);
	if (got >= 0 && msg.msg_name)
		*addrlen = msg.msg_namelen;
	return got;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecvfrom(socket, buf, count, 0, NULL, NULL);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt };

	return rrecvmsg(socket, &msg, 0);
}
