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

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct aw_rs *rs = enter_connection(socket);
	struct aw_xs_ep *ep;
	size_t done = 0;
	ssize_t got = 0;
	bool may_block;

	if (!rs)
		return (size_t)-1;
	ep = aw_rs_ep(rs);
	may_block = aw_rs_may_block(rs, flags);
	/* Writes until all is written or no map of the peer's continues. */
	while (done < count) {
		got = aw_xs_ep_iowrite(ep, (const char *)buf + done, count - done,
				       offset + (off_t)done);
		if (got > 0) {
			done += (size_t)got;
			continue;
		}
		if (got != -EAGAIN || !may_block)
			break;

		/* Waits for room, and until the bytes that rsend has taken are sent. */
		aw_rs_wait_begin(rs);
		got = aw_xs_ep_wait_iowrite(ep, rs->options.send_timeout_ns);
		aw_rs_wait_end(rs);
		if (atomic_load(&rs->closed))
			got = -EBADF;
		else if (!got)
			got = -EAGAIN;
		if (got < 0)
			break;
	}
	return (size_t)aw_rs_leave(rs, done ? (ssize_t)done : got);
}
