// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rbind, rgetsockname, rgetpeername.
#include "xsock/rsockets/rs_name.h"

#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <string.h>

static socklen_t size_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

int aw_rs_name_check(const struct aw_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || len < sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	return len < size_of(addr) ? -EINVAL : 0;
}

int aw_rs_name_bind(struct aw_rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain }, name;
	struct aw_rs_options *o = &rs->options;
	int err = 0;

	// The argument of librdmacm is not const.
	memcpy(&name, addr ? (const void *)addr : &any,
	       addr ? size_of(addr) : sizeof(struct sockaddr_in6));
	rs->channel = rdma_create_event_channel();
	if (!rs->channel || rdma_create_id(rs->channel, &rs->id, NULL, RDMA_PS_TCP) ||
	    rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &o->reuse_addr,
			    sizeof(int)) ||
	    (o->v6only_set && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
					      &o->v6only, sizeof(int))) ||
	    rdma_bind_addr(rs->id, (struct sockaddr *)&name))
		err = -errno;
	if (err)
		aw_rs_drop_id(rs);
	else
		rs->state = AW_RS_BOUND;
	return err;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct aw_rs *rs = aw_rs_enter(socket);
	int err;

	if (!rs)
		return -1;
	if (rs->datagram)
		return (int)aw_rs_leave(rs, bind(rs->fd, addr, addrlen) ? -errno : 0);
	err = aw_rs_name_check(rs, addr, addrlen);
	if (!err) {
		pthread_mutex_lock(&rs->lock);
		err = rs->state == AW_RS_NEW ? aw_rs_name_bind(rs, addr) : -EINVAL;
		pthread_mutex_unlock(&rs->lock);
	}
	return (int)aw_rs_leave(rs, err);
}

int aw_rs_name_get(struct aw_rs *rs, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage name = { 0 }, local, remote;

	if (!addr || !len)
		return -EFAULT;
	if (rs->datagram)
		return (peer ? getpeername : getsockname)(rs->fd, addr, len) ? -errno : 0;
	if (aw_rs_ep(rs)) {
		aw_xs_ep_names(aw_rs_ep(rs), &local, &remote);
		name = peer ? remote : local;
		/* While an active connection is in progress there is no peer; an accepted one has a peer. */
		if (peer && !rs->accepted && aw_xs_ep_state(aw_rs_ep(rs)) <= AW_XS_CONNECTING)
			return -ENOTCONN;
	} else if (peer) {
		return -ENOTCONN;
	} else {
		pthread_mutex_lock(&rs->lock);
		if (rs->id)
			memcpy(&name, rdma_get_local_addr(rs->id), sizeof(struct sockaddr_in6));
		pthread_mutex_unlock(&rs->lock);
	}
	if (!name.ss_family)
		name.ss_family = (sa_family_t)rs->domain;
	socklen_t size = size_of((struct sockaddr *)&name);

	memcpy(addr, &name, *len < size ? *len : size);
	*len = size;
	return 0;
}

static int get_name(int socket, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct aw_rs *rs = aw_rs_enter(socket);

	return rs ? (int)aw_rs_leave(rs, aw_rs_name_get(rs, peer, addr, len)) : -1;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, true, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, false, addr, addrlen);
}
