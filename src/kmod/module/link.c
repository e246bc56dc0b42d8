// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Devices come by `rdma link add`, and go by `rdma link delete`, or as their netdev goes: when it is
// deleted, or moves to another network namespace. A new name of the netdev changes nothing.
#include "kmod/base/device.h"
#include "kmod/cm/cm.h"
#include "kmod/module/module.h"
#include "kmod/verbs/verbs.h"

#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_netlink.h>

/* rdma_cm looks a device up by its GID, which must not be zero. */
static void device_set_gid(struct awk_device *dev)
{
	const struct net_device *netdev = dev->netdev;
	union ib_gid gid = { 0 };
	__be64 guid;

	if (netdev->addr_len == ETH_ALEN && !is_zero_ether_addr(netdev->dev_addr))
		memcpy(gid.raw, netdev->dev_addr, ETH_ALEN);
	else
		eth_random_addr(gid.raw);
	addrconf_addr_eui48((u8 *)&guid, (const char *)gid.raw);
	WRITE_ONCE(dev->gid_prefix, gid.global.subnet_prefix);
	WRITE_ONCE(dev->base.node_guid, guid);
}

static void device_describe(struct awk_device *dev)
{
	struct ib_device *base = &dev->base;

	base->node_type = RDMA_NODE_RNIC;
	base->phys_port_cnt = 1;
	base->num_comp_vectors = num_possible_cpus();
	base->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND);
	base->iw_driver_flags = IW_F_NO_PORT_MAP;
	strscpy(base->node_desc, "anywarp: iWARP in software", sizeof(base->node_desc));
	strscpy(base->iw_ifname, dev->netdev->name, sizeof(base->iw_ifname));
	ib_set_device_ops(base, &awk_device_ops);
	ib_set_device_ops(base, &awk_cm_ops);
	device_set_gid(dev);
}

static int device_add_for(const char *name, struct net_device *netdev)
{
	struct awk_device *dev = ib_alloc_device(awk_device, base);
	int err;

	if (!dev)
		return -ENOMEM;
	dev->netdev = netdev;
	dev_hold(netdev);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	get_random_bytes(&dev->stag_secret, sizeof(dev->stag_secret));
	device_describe(dev);
	err = ib_device_set_netdev(&dev->base, netdev, 1);
	if (!err)
		err = ib_register_device(&dev->base, name, NULL);
	if (err)
		ib_dealloc_device(&dev->base);
	return err;
}

/*
 * The netdev may have gone before its notifier could find the device: then the device goes as well.
 */
static int device_check_netdev(struct net_device *netdev, const struct net *net)
{
	struct ib_device *base = NULL;

	rtnl_lock();
	if (netdev->reg_state != NETREG_REGISTERED || !net_eq(dev_net(netdev), net))
		base = ib_device_get_by_netdev(netdev, RDMA_DRIVER_SIW);
	rtnl_unlock();
	if (!base)
		return 0;
	ib_unregister_device_queued(base);
	ib_device_put(base);
	return -ENODEV;
}

static int link_new_locked(const char *name, struct net_device *netdev)
{
	struct ib_device *base = ib_device_get_by_netdev(netdev, RDMA_DRIVER_SIW);
	const struct net *net = dev_net(netdev);
	bool carries_ip = netdev->type == ARPHRD_ETHER || netdev->type == ARPHRD_LOOPBACK ||
			  netdev->type == ARPHRD_NONE;
	int err;

	if (base) {
		ib_device_put(base);
		return -EEXIST;
	}
	err = carries_ip ? device_add_for(name, netdev) : -EINVAL;
	return err ? err : device_check_netdev(netdev, net);
}

/* One at a time: a netdev has one device, since its notifier finds one. */
static int link_new(const char *name, struct net_device *netdev)
{
	static DEFINE_MUTEX(lock);
	int err;

	mutex_lock(&lock);
	err = awk_siw_is_loaded() ? -EBUSY : link_new_locked(name, netdev);
	mutex_unlock(&lock);
	return err;
}

static struct rdma_link_ops link_ops = { .type = "anywarp", .newlink = link_new };

static void device_dispatch(struct ib_device *base, enum ib_event_type type)
{
	struct ib_event event = { .device = base, .element.port_num = 1, .event = type };

	ib_dispatch_event(&event);
}

static void device_follow(struct ib_device *base, unsigned long what)
{
	switch (what) {
	case NETDEV_UP:
		device_dispatch(base, IB_EVENT_PORT_ACTIVE);
		break;
	case NETDEV_DOWN:
		device_dispatch(base, IB_EVENT_PORT_ERR);
		break;
	case NETDEV_CHANGE:
		device_dispatch(base, netif_carrier_ok(awk_device_of(base)->netdev)
					      ? IB_EVENT_PORT_ACTIVE
					      : IB_EVENT_PORT_ERR);
		break;
	case NETDEV_CHANGEADDR:
		device_set_gid(awk_device_of(base));
		device_dispatch(base, IB_EVENT_GID_CHANGE);
		break;
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(base);
		break;
	}
}

static int on_netdev(struct notifier_block *nb, unsigned long what, void *arg)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(arg);
	struct ib_device *base = ib_device_get_by_netdev(netdev, RDMA_DRIVER_SIW);

	if (base && base->ops.owner == THIS_MODULE)
		device_follow(base, what);
	if (base)
		ib_device_put(base);
	return NOTIFY_OK;
}

static struct notifier_block netdev_nb = { .notifier_call = on_netdev };

int awk_link_init(void)
{
	int err = register_netdevice_notifier(&netdev_nb);

	if (!err)
		rdma_link_register(&link_ops);
	return err;
}

/* ib_unregister_driver deletes the devices that are left, and waits for those that are going. */
void awk_link_exit(void)
{
	rdma_link_unregister(&link_ops);
	unregister_netdevice_notifier(&netdev_nb);
	ib_unregister_driver(RDMA_DRIVER_SIW);
}
