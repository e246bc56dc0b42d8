// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options that are kept. All others the program gets and sets itself, on the TCP socket that it is lent: the
// kernel judges by who that is.
#include "xsock/keeper/options.h"

#include <errno.h>
#include <string.h>

int aw_options_get(const struct aw_kept *kept, const struct aw_order *order,
		   struct aw_answer *answer)
{
	const int *value = aw_kept_find(kept, order->level, order->name);

	if (!value || order->len < 0)
		return EINVAL;
	answer->len = order->len < (int)sizeof(int) ? order->len : (int)sizeof(int);
	memcpy(answer->value, value, (size_t)answer->len);
	return 0;
}

static int set_linger(struct aw_bridge *bridge, const struct aw_order *order)
{
	struct linger linger;

	if (order->len < (int)sizeof(linger))
		return EINVAL;
	memcpy(&linger, order->value, sizeof(linger));
	aw_bridge_set_linger(bridge, &linger);
	return 0;
}

int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge, const struct aw_order *order)
{
	struct aw_line *line = aw_bridge_line(bridge);
	int value, err;

	if (order->len < 0 || order->len > AW_ORDER_VALUE_MAX)
		return EINVAL;
	if (order->level == SOL_SOCKET && order->name == SO_LINGER)
		return set_linger(bridge, order);
	err = aw_kept_set(kept, order->level, order->name, order->value, (size_t)order->len,
			  &value);
	if (!err)
		line->ops->set_option(line, order->level, order->name, value);
	return err;
}
