// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gets and sets the options that are kept, and SO_LINGER. A program gets and sets all other options
// itself, on the TCP socket that the proxy process sends it (AW_REQUEST_SOCKET): the kernel then
// checks the program's rights.
#include "xsock/proxy/options.h"

#include <errno.h>
#include <string.h>

int aw_options_get(const struct aw_kept *kept, const struct aw_request *request,
		   struct aw_reply *reply)
{
	const int *value = aw_kept_find(kept, request->level, request->name);

	if (!value || request->len < 0)
		return EINVAL;
	reply->len = request->len < (int)sizeof(int) ? request->len : (int)sizeof(int);
	memcpy(reply->value, value, (size_t)reply->len);
	return 0;
}

static int set_linger(struct aw_bridge *bridge, const struct aw_request *request)
{
	struct linger linger;

	if (request->len < (int)sizeof(linger))
		return EINVAL;
	memcpy(&linger, request->value, sizeof(linger));
	aw_bridge_set_linger(bridge, &linger);
	return 0;
}

int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge, const struct aw_request *request)
{
	struct aw_line *line = aw_bridge_line(bridge);
	int value, err;

	if (request->len < 0 || request->len > AW_REQUEST_VALUE_MAX)
		return EINVAL;
	if (request->level == SOL_SOCKET && request->name == SO_LINGER)
		return set_linger(bridge, request);
	err = aw_kept_set(kept, request->level, request->name, request->value, (size_t)request->len,
			  &value);
	if (!err)
		line->ops->set_option(line, request->level, request->name, value);
	return err;
}
