// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In place of fork.c, for a library that has handlers of a fork itself: a fork takes no lock here. A thread that holds one may wait for
// the library's own, by a call of OpenSSL's that a wrapper sees.
#include "net/base/fork.h"

#include <stddef.h>

static const struct aw_fork_handlers *registered[AW_FORK_RANKS];

void aw_fork_register(enum aw_fork_rank rank, const struct aw_fork_handlers *handlers)
{
	registered[rank] = handlers;
}

void aw_fork_renew(void)
{
	for (int rank = 0; rank < AW_FORK_RANKS; rank++)
		if (registered[rank] && registered[rank]->torn)
			registered[rank]->torn();
}
