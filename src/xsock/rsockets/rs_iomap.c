// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// riomap, riounmap, riowrite.
#include <rdma/rsocket.h>

#include "xsock/rsockets/rs_socket.h"

static int find_ep(int socket, struct aw_rs **rs)
{
	int err = aw_rs_find(socket, rs);

	if (err || aw_rs_ep(*rs))
		return err;
	aw_rs_leave(*rs);
	return -EINVAL;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct aw_rs *rs;
	off_t got = find_ep(socket, &rs);

	(void)flags;
	if (!got) {
		got = prot & ~PROT_WRITE ? -EINVAL
					 : aw_xs_ep_iomap(aw_rs_ep(rs), buf, len, prot, offset);
		aw_rs_leave(rs);
	}
	return aw_rs_result(got);
}

int riounmap(int socket, void *buf, size_t len)
{
	struct aw_rs *rs;
	int err = find_ep(socket, &rs);

	if (!err) {
		err = aw_xs_ep_iounmap(aw_rs_ep(rs), buf, len);
		aw_rs_leave(rs);
	}
	return (int)aw_rs_result(err);
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
	bool may_block = !(flags & MSG_DONTWAIT) && !(atomic_load(&rs->flags) & O_NONBLOCK);
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
	struct aw_rs *rs;
	ssize_t got = find_ep(socket, &rs);

	if (!got) {
		got = write_all(rs, buf, count, offset, flags);
		aw_rs_leave(rs);
	}
	return (size_t)aw_rs_result(got);
}
