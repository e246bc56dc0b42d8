// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends what waits at QPs (net/qp/deferral.h), as the program makes the call that was waited for, or another that ends
// the wait. Posts leave at a poll of any CQ of their QP; posts and acknowledgements before a CQ is armed and at exit(3).
// Where the program makes no such call, the progress thread sends the posts (net/qp/times.h).
#ifndef NET_FLUSH_H
#define NET_FLUSH_H

#include "net/cq/cq.h"

/* Behind the next call, where the poll follows a burst of posts, or posts wait. */
void aw_flush_polled_late(struct aw_cq *cq);

/* cq is polled, or armed. */
static inline void aw_flush_polled(struct aw_cq *cq)
{
	aw_activity_count(&cq->polls, 1);
	if (atomic_load_explicit(&cq->burst, memory_order_relaxed) ||
	    atomic_load(&cq->posts_waiting) > 0)
		aw_flush_polled_late(cq);
}

void aw_flush_armed(struct aw_cq *cq) AW_EXCLUDES(cq->qps_lock);

/* All posts of the process: this thread is about to sleep, or memory is about to go. */
void aw_flush_posts(void);

/* A stream begins, whose posts may wait: the progress thread looks for late ones from now on. */
void aw_flush_begin(void);

#endif
