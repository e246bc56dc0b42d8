// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number of open sets. The child of a fork has its parent's sets, and closes them with their
// CQs and channels.
#include "net/cq/sets.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

static const uint32_t most[AW_SETS] = {
	[AW_SETS_CQ] = AW_SETS_CQ_MAX,
	[AW_SETS_CHANNEL] = AW_SETS_CHANNEL_MAX,
};

/* Relaxed: only the numbers matter. */
static _Atomic uint32_t open_sets[AW_SETS];

int aw_sets_open(enum aw_sets of, bool needed)
{
	uint32_t before = atomic_fetch_add_explicit(&open_sets[of], 1, memory_order_relaxed);
	int epfd = before < most[of] || needed ? epoll_create1(EPOLL_CLOEXEC) : -1;

	if (epfd < 0)
		atomic_fetch_sub_explicit(&open_sets[of], 1, memory_order_relaxed);
	return epfd;
}

void aw_sets_close(enum aw_sets of, int epfd)
{
	if (epfd < 0)
		return;
	close(epfd);
	atomic_fetch_sub_explicit(&open_sets[of], 1, memory_order_relaxed);
}
