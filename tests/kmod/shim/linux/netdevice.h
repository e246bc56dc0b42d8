// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_NETDEVICE_H
#define KSHIM_NETDEVICE_H

#include <linux/types.h>

struct net_device {
	int ifindex;
	unsigned int mtu;
};

#endif
