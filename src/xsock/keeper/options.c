// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of a connection.
#include "xsock/keeper/options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

static const struct kept {
	int level, name;
} kept[AW_OPTIONS_KEPT] = {
	{ SOL_SOCKET, SO_KEEPALIVE },	   { IPPROTO_TCP, TCP_KEEPIDLE },
	{ IPPROTO_TCP, TCP_KEEPINTVL },	   { IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT }, { IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_CORK },
};

static int index_of(const struct aw_order *order)
{
	for (int i = 0; i < AW_OPTIONS_KEPT; i++) {
		if (kept[i].level == order->level && kept[i].name == order->name)
			return i;
	}
	return -1;
}

void aw_options_read(struct aw_options *options, int tcp)
{
	for (int i = 0; i < AW_OPTIONS_KEPT; i++) {
		socklen_t len = sizeof(options->values[i]);

		options->values[i] = 0;
		(void)getsockopt(tcp, kept[i].level, kept[i].name, &options->values[i], &len);
	}
}

int aw_options_get(const struct aw_options *options, const struct aw_bridge *bridge,
		   const struct aw_order *order, struct aw_answer *answer)
{
	socklen_t len = (socklen_t)order->len;
	int i = index_of(order);

	if (order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return EINVAL;
	if (i >= 0) {
		answer->len = order->len < (int)sizeof(int) ? order->len : (int)sizeof(int);
		memcpy(answer->value, &options->values[i], (size_t)answer->len);
		return 0;
	}
	if (getsockopt(aw_bridge_tcp(bridge), order->level, order->name, answer->value, &len) != 0)
		return errno == EBADF ? ENOTCONN : errno;
	answer->len = (int32_t)len;
	return 0;
}

static int set_kept(struct aw_options *options, struct aw_bridge *bridge, int i,
		    const struct aw_order *order)
{
	int value;

	if (order->len < (int)sizeof(value))
		return EINVAL;
	memcpy(&value, order->value, sizeof(value));
	if (order->level == SOL_SOCKET || order->name == TCP_NODELAY || order->name == TCP_CORK)
		value = value != 0;
	options->values[i] = value;
	if (order->level == IPPROTO_TCP && order->name == TCP_NODELAY)
		aw_xs_ep_set_nodelay(aw_bridge_ep(bridge), value != 0);
	return 0;
}

int aw_options_set(struct aw_options *options, struct aw_bridge *bridge,
		   const struct aw_order *order)
{
	int i = index_of(order);

	if (order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return EINVAL;
	if (i >= 0)
		return set_kept(options, bridge, i, order);
	if (order->level == SOL_SOCKET && order->name == SO_LINGER) {
		struct linger linger;

		memcpy(&linger, order->value, sizeof(linger));
		aw_bridge_set_linger(bridge, &linger);
		return 0;
	}
	return setsockopt(aw_bridge_tcp(bridge), order->level, order->name, order->value,
			  (socklen_t)order->len) == 0
		       ? 0
		       : errno;
}
