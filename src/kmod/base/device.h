// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The verbs device: one for a netdev, made by `rdma link add NAME type anywarp netdev X`. Here is what every object
// of the device asks of it; verbs/device.c has its operations, and module/link.c makes it.
#ifndef KMOD_BASE_DEVICE_H
#define KMOD_BASE_DEVICE_H

#include "core/stag.h"
#include "kmod/base/limits.h"

#include <linux/atomic.h>
#include <linux/netdevice.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

struct awk_device {
	struct ib_device base;
	/* fixed after create */
	/* held until the device is freed: sysfs asks later than the verbs core holds it */
	struct net_device *netdev;
	struct aw_stag_secret stag_secret;
	/* follows the netdev's address; read and written as one */
	__be64 gid_prefix; /* the rest of the GID is zero */
	/* each with a lock of its own */
	struct xarray qps; /* QPN to struct awk_qp; xa_lock, process context */
	struct xarray mrs; /* an STag's index to struct awk_mr; RCU for readers */
	u32 qpn_next; /* guarded by the xarrays' locks */
	u32 mr_next;
	atomic_t pds, cqs, srqs; /* how many there are */
};

/* Counts one more PD, CQ or SRQ. False: the device has as many as it offers. */
static inline bool awk_device_count(atomic_t *count)
{
	return atomic_add_unless(count, 1, AWK_OBJECT_MAX);
}

static inline struct awk_device *awk_device_of(struct ib_device *base)
{
	return container_of(base, struct awk_device, base);
}

/*
 * net: the network namespace of the netdev, held; NULL: it is ending. is_callers: true when the
 * caller is in that namespace: programs see the devices of all namespaces, unless the administrator
 * forbids it. The kernel's threads are in each.
 */
struct net *awk_device_net(const struct awk_device *dev);
bool awk_net_is_callers(const struct net *net);

#endif
