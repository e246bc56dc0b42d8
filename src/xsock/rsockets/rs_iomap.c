// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// riomap, riounmap, riowrite.
#include <rdma/rsocket.h>

#include "xsock/rsockets/rs_socket.h"

/* As aw_rs_enter, for a call on a connection; NULL with errno EINVAL: there is none. */
static struct aw_rs *enter_connection(int socket)
{
	struct aw_rs *rs = aw_rs_enter(socket);

	if (!rs || aw_rs_ep(rs))
		return rs;
	(void)aw_rs_leave(rs, -EINVAL);
	return NULL;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct aw_rs *rs = enter_connection(socket);

	(void)flags;
	if (!rs)
		return -1;
	if (prot & ~PROT_WRITE)
		return aw_rs_leave(rs, -EINVAL);
	return aw_rs_leave(rs, aw_xs_ep_iomap(aw_rs_ep(rs), buf, len, prot, offset));
}

int riounmap(int socket, void *buf, size_t len)
{
	struct aw_rs *rs = enter_connection(socket);

	return rs ? (int)aw_rs_leave(rs, aw_xs_ep_iounmap(aw_rs_ep(rs), buf, len)) : -1;
}

/* Makes one step; waits for room, and until the bytes that rsend has taken are sent. */
static ssize_t write_once(struct aw_rs *rs, const char *buf, size_t count, off_t offset,
			  bool may_block)
{
	struct aw_xs_ep *ep = aw_rs_ep(rs);
	ssize_t got;
	int ready;

	for (;;) {
		got = aw_xs_ep_iowrite(ep, buf, count, offset);
		if (got != -EAGAIN || !may_block)
			return got;
		aw_rs_wait_begin(rs);
		ready = aw_xs_ep_wait_iowrite(ep, rs->options.send_timeout_ns);
		aw_rs_wait_end(rs);
		if (atomic_load(&rs->closed))
			return -EBADF;
		if (ready <= 0)
			return ready ? ready : -EAGAIN;
	}
}

/* Writes until all is written or no map of the peer's continues. */
static ssize_t write_all(struct aw_rs *rs, const char *buf, size_t count, off_t offset, int flags)
{
	bool may_block = aw_rs_may_block(rs, flags);
	size_t done = 0;
	ssize_t got;

	while (done < count) {
		got = write_once(rs, buf + done, count - done, offset + (off_t)done, may_block);
		if (got <= 0)
			return done ? (ssize_t)done : got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct aw_rs *rs = enter_connection(socket);

	return (size_t)(rs ? aw_rs_leave(rs, write_all(rs, buf, count, offset, flags)) : -1);
}
