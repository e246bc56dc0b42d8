// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_resolve_addr and rdma_resolve_route. The kernel's routing table answers at once
// (rdmacm/route.h), so the time-outs never expire and no route is ever missing.
#include "rdmacm/address.h"
#include "rdmacm/bind.h"
#include "rdmacm/devices.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/route.h"
#include "rdmacm/socket.h"
#include "ring/lock.h"

#include <netinet/in.h>

static int resolve(struct aw_cm_id *cm, const struct sockaddr *dst)
{
	struct rdma_addr *addr = &cm->id.route.addr;
	struct sockaddr_storage any, from, to;
	const struct sockaddr *src = &addr->src_addr;
	bool bound = aw_cm_id_state(cm) == AW_CM_BOUND;

	aw_address_wildcard(dst->sa_family, &any);
	if (!bound)
		src = (const struct sockaddr *)&any;
	int err = aw_cm_route_ask(src, dst, &from, &to);

	if (!err)
		err = aw_cm_device_set(&cm->id);
	if (err)
		return err;

	uint16_t port = aw_address_port(&addr->src_addr);

	addr->src_storage = from;
	aw_address_set_port(&addr->src_addr, port);
	/* The program's dst stays, except a wildcard, which means this host. */
	if (aw_address_is_wildcard(dst))
		addr->dst_storage = to;
	else
		aw_address_copy(&addr->dst_storage, dst);
	aw_address_gid(&addr->src_addr, &addr->addr.ibaddr.sgid);
	aw_address_gid(&addr->dst_addr, &addr->addr.ibaddr.dgid);
	if (bound)
		return 0;
	/* When all ports are taken TCP chooses at connect, which can share one between destinations. */
	from = addr->src_storage;
	err = aw_cm_socket_bind_any(cm, (struct sockaddr *)&from);
	return err == EADDRINUSE ? 0 : err;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	if (!id || !dst_addr)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	enum aw_cm_state state = aw_cm_id_state(cm);
	int family = dst_addr->sa_family, src_family = src_addr ? src_addr->sa_family : 0, err = 0;

	(void)timeout_ms;
	if (!aw_address_len(family))
		err = EAFNOSUPPORT;
	else if ((state != AW_CM_IDLE && state != AW_CM_BOUND) ||
		 (state == AW_CM_BOUND && id->route.addr.src_addr.sa_family != family) ||
		 (src_family && src_family != family))
		err = EINVAL;
	else if (src_family && state == AW_CM_IDLE)
		err = aw_cm_bind(cm, src_addr);
	if (err)
		return aw_cm_fail(err);
	err = resolve(cm, dst_addr);
	aw_lock(&cm->lock);
	if (!err)
		aw_cm_id_enter(cm, AW_CM_ADDR_RESOLVED);
	aw_cm_event_tell(cm, err ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -err);
	aw_unlock(&cm->lock);
	return aw_cm_id_complete(cm);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (!id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);

	(void)timeout_ms;
	if (!aw_cm_id_advance(cm, AW_CM_ADDR_RESOLVED, AW_CM_ROUTE_RESOLVED))
		return aw_cm_fail(EINVAL);
	aw_lock(&cm->lock);
	aw_cm_event_tell(cm, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	aw_unlock(&cm->lock);
	return aw_cm_id_complete(cm);
}
