// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rconnect. As in TCP, a second call returns EALREADY or EISCONN, and a signal leaves the
// connection in progress. Unlike TCP's, an rsocket that could not connect stays so: ENOTCONN.
#include <rdma/rsocket.h>
#include <string.h>

#include "xsock/rsockets/rs_name.h"
#include "xsock/rsockets/rs_service.h"
#include "xsock/rsockets/rs_socket.h"

/* Returns the negative errno of a second rconnect. */
static int error_of_second(struct aw_xs_ep *ep)
{
	int err;

	switch (aw_xs_ep_state(ep)) {
	case AW_XS_IDLE:
	case AW_XS_CONNECTING:
		return -EALREADY;
	case AW_XS_ESTABLISHED:
	case AW_XS_CLOSED:
		return -EISCONN;
	case AW_XS_FAILED:
		break;
	}
	err = aw_xs_ep_error(ep);
	return err ? -err : -ENOTCONN;
}

/* Starts the connection. */
static int connect_begin(struct aw_rs *rs, const struct sockaddr *addr) AW_REQUIRES(rs->lock)
{
	bool bound = rs->state == AW_RS_BOUND;
	struct sockaddr_storage name;
	struct aw_xs_ep *ep;
	int err;

	if (rs->state == AW_RS_STREAM)
		return error_of_second(aw_rs_ep(rs));
	if (rs->state == AW_RS_LISTENING)
		return -EISCONN;
	err = aw_rs_make_ep(rs, &ep);
	if (err)
		return err;
	/* The endpoint binds the address itself: the id gives it up. */
	if (bound) {
		memcpy(&name, rdma_get_local_addr(rs->id), sizeof(struct sockaddr_in6));
		aw_rs_drop_id(rs);
		rs->state = AW_RS_NEW;
	}
	err = aw_xs_ep_connect(ep, bound ? (const struct sockaddr *)&name : NULL, addr);
	if (err)
		aw_xs_ep_close(ep, true);
	else
		aw_rs_set_ep(rs, ep);
	return err;
}

/* Has the service go on with the connection. */
static int leave_to_service(struct aw_rs *rs, int result)
{
	int err = aw_rs_service_watch(rs);

	return err ? err : result;
}

static int connect_stream(struct aw_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	int err = aw_rs_name_check(rs, addr, len);

	if (err)
		return err;
	pthread_mutex_lock(&rs->lock);
	err = connect_begin(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	if (err)
		return err;
	if (atomic_load(&rs->flags) & O_NONBLOCK)
		return leave_to_service(rs, -EINPROGRESS);
	err = aw_rs_wait(rs, POLLOUT, rs->options.send_timeout_ns);
	if (err > 0)
		return -aw_xs_ep_error(aw_rs_ep(rs));
	if (err == -EAGAIN)
		return leave_to_service(rs, -EINPROGRESS);
	return err == -EINTR ? leave_to_service(rs, err) : err;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct aw_rs *rs = aw_rs_enter(socket);

	if (!rs)
		return -1;
	if (rs->datagram)
		return (int)aw_rs_leave(rs, connect(rs->fd, addr, addrlen) ? -errno : 0);
	return (int)aw_rs_leave(rs, connect_stream(rs, addr, addrlen));
}
