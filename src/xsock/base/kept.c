// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of the kept options.
#include "xsock/base/kept.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "xsock/base/sockopt.h"

static const struct {
	int level, name;
	bool is_switch; /* the value read back is 0 or 1 */
} table[AW_KEPT_MAX] = {
	{ SOL_SOCKET, SO_KEEPALIVE, true },	  { IPPROTO_TCP, TCP_KEEPIDLE, false },
	{ IPPROTO_TCP, TCP_KEEPINTVL, false },	  { IPPROTO_TCP, TCP_KEEPCNT, false },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, false }, { IPPROTO_TCP, TCP_NODELAY, true },
	{ IPPROTO_TCP, TCP_CORK, true },
};

/* Returns the option's place in the table; AW_KEPT_MAX: it is not kept. */
static size_t index_of(int level, int name)
{
	size_t i = 0;

	while (i < AW_KEPT_MAX && (table[i].level != level || table[i].name != name))
		i++;
	return i;
}

void aw_kept_read(struct aw_kept *kept, int tcp)
{
	for (size_t i = 0; i < AW_KEPT_MAX; i++)
		kept->values[i] = aw_sockopt_int(tcp, table[i].level, table[i].name, 0);
}

bool aw_kept_is(int level, int name)
{
	return index_of(level, name) < AW_KEPT_MAX;
}

const int *aw_kept_find(const struct aw_kept *kept, int level, int name)
{
	size_t i = index_of(level, name);

	return i < AW_KEPT_MAX ? &kept->values[i] : NULL;
}

int aw_kept_set(struct aw_kept *kept, int level, int name, const void *value, size_t len, int *set)
{
	size_t i = index_of(level, name);
	int number;

	if (i == AW_KEPT_MAX || len < sizeof(number))
		return EINVAL;
	memcpy(&number, value, sizeof(number));
	if (table[i].is_switch)
		number = number != 0;
	kept->values[i] = *set = number;
	return 0;
}
