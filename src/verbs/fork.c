// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fork and memory: nothing is pinned, so the parent keeps its pages and nothing has to be prepared.
#include "verbs/unlisted.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
