// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rsocket, rshutdown, rclose.
#include "xsock/rsockets/rs_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/setting.h"
#include "xsock/rsockets/rs_config.h"
#include "xsock/rsockets/rs_listen.h"
#include "xsock/rsockets/rs_service.h"
#include "xsock/rsockets/rs_table.h"

struct aw_rs *aw_rs_create(int domain, const struct aw_rs_options *options)
{
	struct aw_rs *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->fd = -1;
	rs->domain = domain;
	rs->options = *options;
	STAILQ_INIT(&rs->queue);
	pthread_mutex_init(&rs->lock, NULL);
	return rs;
}

void aw_rs_destroy(struct aw_rs *rs)
{
	struct aw_xs_ep *ep = aw_rs_ep(rs);
	const struct linger *linger = &rs->options.linger;

	aw_rs_listen_end(rs);
	if (ep)
		aw_xs_ep_close(ep, linger->l_onoff && !linger->l_linger);
	pthread_mutex_destroy(&rs->lock);
	free(rs->route);
	free(rs);
}

int aw_rs_make_ep(struct aw_rs *rs, struct aw_xs_ep **ep)
{
	const struct aw_rs_options *o = &rs->options;
	struct aw_xs_options options = {
		.sndbuf = o->sndbuf,
		.rcvbuf = o->rcvbuf,
		.sq_size = (uint16_t)o->sq_size,
		.rq_size = (uint16_t)o->rq_size,
		.inline_data = o->inline_data,
		.iomap_size = (uint16_t)o->iomap_size,
		.nodelay = o->nodelay,
	};
	int err = aw_xs_ep_create(&options, ep);

	if (!err && o->oobinline)
		aw_xs_ep_set_oobinline(*ep, true);
	return err;
}

void aw_rs_set_ep(struct aw_rs *rs, struct aw_xs_ep *ep)
{
	rs->state = AW_RS_STREAM;
	// Pairs with aw_rs_ep.
	atomic_store_explicit(&rs->ep, ep, memory_order_release);
}

void aw_rs_drop_id(struct aw_rs *rs)
{
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	rs->id = NULL;
	rs->channel = NULL;
}

struct aw_rs *aw_rs_enter(int fd)
{
	struct aw_rs *rs = aw_rs_table_hold(fd);

	if (!rs)
		errno = EBADF;
	return rs;
}

void aw_rs_put(struct aw_rs *rs)
{
	int fd = rs->fd;

	if (aw_rs_table_put(fd))
		return;
	aw_rs_service_leave(rs);
	aw_rs_destroy(rs);
	aw_rs_table_free(fd);
}

ssize_t aw_rs_leave(struct aw_rs *rs, ssize_t result)
{
	aw_rs_put(rs);
	return aw_rs_result(result);
}

void aw_rs_wait_begin(struct aw_rs *rs)
{
	atomic_fetch_add(&rs->waiting, 1);
	aw_rs_wake_leader(rs);
}

void aw_rs_wait_end(struct aw_rs *rs)
{
	atomic_fetch_sub(&rs->waiting, 1);
}

int aw_rs_wait(struct aw_rs *rs, short events, int64_t timeout_ns)
{
	int got;

	aw_rs_wait_begin(rs);
	got = aw_xs_ep_wait(aw_rs_ep(rs), events, timeout_ns);
	aw_rs_wait_end(rs);
	if (atomic_load(&rs->closed))
		return -EBADF;
	return got ? got : -EAGAIN;
}

int aw_rs_wait_fd(struct aw_rs *rs, short events, int64_t timeout_ns)
{
	struct pollfd fd = { .fd = rs->fd, .events = events };
	int got = poll(&fd, 1, timeout_ns < 0 ? -1 : (int)(timeout_ns / 1000000));

	if (atomic_load(&rs->closed))
		return -EBADF;
	if (got < 0)
		return -errno;
	return got ? fd.revents : -EAGAIN;
}

void aw_rs_wake_leader(struct aw_rs *rs)
{
	if (atomic_load(&rs->leader))
		eventfd_write(rs->fd, 1);
}

static void forget_parents(void)
{
	aw_rs_table_forked();
	aw_rs_service_forked();
	aw_rs_listen_forked();
}

static void handle_forks(void)
{
	pthread_atfork(NULL, NULL, forget_parents);
}

int rsocket(int domain, int type, int protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd, err, flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	struct aw_rs *rs;
	bool datagram;

	type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	datagram = type == SOCK_DGRAM;
	if ((domain != AF_INET && domain != AF_INET6) || (type != SOCK_STREAM && !datagram) ||
	    (protocol && protocol != (datagram ? IPPROTO_UDP : IPPROTO_TCP)))
		return (int)aw_rs_result(-ENOTSUP);

	if (datagram && aw_setting_wants_tls()) {
		aw_log(AW_LOG_ERROR,
		       "rsocket: SOCK_DGRAM refused: TLS cannot protect it, and ANYWARP_TLS is require: "
		       "use SOCK_STREAM, or run the program without --tls require");
		return (int)aw_rs_result(-EOPNOTSUPP);
	}
	rs = aw_rs_create(domain, aw_rs_config_options());
	if (!rs)
		return (int)aw_rs_result(-ENOMEM);
	pthread_once(&once, handle_forks);
	rs->datagram = datagram;
	rs->flags = flags;
	fd = datagram ? socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP)
		      : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	err = fd < 0 ? -errno : aw_rs_table_insert(rs, fd);
	if (err < 0)
		aw_rs_destroy(rs);
	return (int)aw_rs_result(err);
}

int rshutdown(int socket, int how)
{
	struct aw_rs *rs = aw_rs_enter(socket);
	struct aw_xs_ep *ep;
	int err;

	if (!rs)
		return -1;
	ep = aw_rs_ep(rs);
	if (rs->datagram)
		err = shutdown(rs->fd, how) ? -errno : 0;
	else if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		err = -EINVAL;
	else
		err = ep ? aw_xs_ep_shutdown(ep, how) : -ENOTCONN;
	return (int)aw_rs_leave(rs, err);
}

int rclose(int socket)
{
	struct linger linger;
	struct aw_xs_ep *ep;
	struct aw_rs *rs;

	if (aw_rs_table_forget(socket))
		return 0;
	rs = aw_rs_enter(socket);
	if (!rs)
		return -1;
	if (!aw_rs_table_close(socket))
		return (int)aw_rs_leave(rs, -EBADF);

	/* The threads that are in the rsocket's calls return, and the last one frees it. */
	ep = aw_rs_ep(rs);
	pthread_mutex_lock(&rs->lock);
	linger = rs->options.linger;
	pthread_mutex_unlock(&rs->lock);
	atomic_store(&rs->closed, true);
	if (rs->datagram) {
		shutdown(rs->fd, SHUT_RDWR);
	} else if (!ep) {
		aw_rs_listen_end(rs);
	} else if (!linger.l_onoff || linger.l_linger) {
		aw_xs_ep_shutdown(ep, SHUT_RDWR);
		if (linger.l_onoff)
			aw_xs_ep_drain(ep, (int64_t)linger.l_linger * 1000000000);
	} else {
		/* The last thread to leave resets the connection. */
		aw_xs_ep_interrupt(ep, true);
	}
	return (int)aw_rs_leave(rs, 0);
}
