// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The feeds of a CQ. The target QPs of an XRC domain complete in the CQs of the domain's SRQs, and no program has a CQ of
// theirs. So the domain has one for them, in which nothing completes: a feed of each of those CQs, whose pollers serve the
// feed's QPs as well (net/qp/cq_poll.c). A feed has no feeds. Its qps_lock is taken after that of the CQ that it feeds.
#ifndef NET_FEED_H
#define NET_FEED_H

#include "net/cq/cq.h"

struct aw_cq_feed {
	struct aw_cq *cq;
	uint32_t joined; /* SRQs of the CQ by which it is fed */
};

/* Until the feed has left as often as it has joined, the pollers of cq serve its QPs. join: 0 or ENOMEM. */
int aw_cq_join_feed(struct aw_cq *cq, struct aw_cq *feed) AW_EXCLUDES(cq->qps_lock);
void aw_cq_leave_feed(struct aw_cq *cq, struct aw_cq *feed) AW_EXCLUDES(cq->qps_lock);

#endif
