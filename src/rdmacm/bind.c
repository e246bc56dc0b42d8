// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_bind_addr and the addresses that follow from it. Port N of RDMA_PS_TCP is TCP port N.
#include "rdmacm/bind.h"

#include "net/base/io_now.h"
#include "rdmacm/address.h"
#include "rdmacm/devices.h"
#include "rdmacm/fail.h"
#include "rdmacm/socket.h"

#include <unistd.h>

int aw_cm_bind(struct aw_cm_id *cm, const struct sockaddr *addr)
{
	struct rdma_addr *route = &cm->id.route.addr;

	if (!aw_address_len(addr->sa_family))
		return EAFNOSUPPORT;
	if (aw_cm_id_state(cm) != AW_CM_IDLE)
		return EINVAL;
	int err = aw_cm_socket_bind(cm, addr);

	if (err)
		return err;
	/*
	 * As Linux's rdma_cm, where loopback is on no device: libfabric takes an id with a device for one that peers on other hosts can
	 * connect to.
	 */
	if (aw_address_names_device(&route->src_addr)) {
		aw_address_gid(&route->src_addr, &route->addr.ibaddr.sgid);
		err = aw_cm_device_set(&cm->id);
	}
	if (err) {
		close(cm->fd);
		cm->fd = -1;
		return err;
	}
	aw_cm_id_advance(cm, AW_CM_IDLE, AW_CM_BOUND);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id || !addr)
		return aw_cm_fail(EINVAL);
	return aw_cm_fail(aw_cm_bind(aw_cm_id_of(id), addr));
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return aw_address_port(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return aw_address_port(&id->route.addr.dst_addr);
}
