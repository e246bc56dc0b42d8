// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The network namespace of a device.
#include "kmod/base/device.h"

#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>

struct net *awk_device_net(const struct awk_device *dev)
{
	struct net *net;

	/* A namespace that a netdev leaves stays for a grace period. */
	rcu_read_lock();
	net = maybe_get_net(dev_net(dev->netdev));
	rcu_read_unlock();
	return net;
}

bool awk_net_is_callers(const struct net *net)
{
	const struct nsproxy *own = current->nsproxy;

	return (current->flags & PF_KTHREAD) || (own && net_eq(own->net_ns, net));
}
