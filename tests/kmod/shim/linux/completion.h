// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#ifndef KSHIM_COMPLETION_H
#define KSHIM_COMPLETION_H

#include <linux/wait.h>

struct completion {
	bool done;
};

static inline void init_completion(struct completion *completion)
{
	completion->done = false;
}

static inline void complete(struct completion *completion)
{
	completion->done = true;
}

static inline void wait_for_completion(struct completion *completion)
{
	while (!completion->done)
		kshim_yield(true);
}

#endif
