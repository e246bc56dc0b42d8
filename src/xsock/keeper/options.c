// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of a connection.
#include "xsock/keeper/options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

int aw_options_get(const struct aw_kept *kept, const struct aw_bridge *bridge,
		   const struct aw_order *order, struct aw_answer *answer)
{
	const int *value = aw_kept_find(kept, order->level, order->name);
	socklen_t len = (socklen_t)order->len;

	if (order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return EINVAL;
	if (value) {
		answer->len = order->len < (int)sizeof(int) ? order->len : (int)sizeof(int);
		memcpy(answer->value, value, (size_t)answer->len);
		return 0;
	}
	if (getsockopt(aw_bridge_tcp(bridge), order->level, order->name, answer->value, &len) != 0)
		return errno == EBADF ? ENOTCONN : errno;
	answer->len = (int32_t)len;
	return 0;
}

static int set_kept(struct aw_kept *kept, struct aw_bridge *bridge, const struct aw_order *order)
{
	int value, err;

	err = aw_kept_set(kept, order->level, order->name, order->value, (size_t)order->len,
			  &value);
	if (!err && order->level == IPPROTO_TCP && order->name == TCP_NODELAY)
		aw_xs_ep_set_nodelay(aw_bridge_ep(bridge), value != 0);
	return err;
}

int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge, const struct aw_order *order)
{
	if (order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return EINVAL;
	if (aw_kept_find(kept, order->level, order->name))
		return set_kept(kept, bridge, order);
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
