// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The array of a CQ's feeds. Most CQs have none, and few have more than one: that of the XRC domain that their SRQs are of.
#include "net/cq/feed.h"

#include "net/base/fork.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct aw_cq_feed *feed_find(const struct aw_cq *cq, const struct aw_cq *feed)
	AW_REQUIRES(cq->qps_lock)
{
	for (uint32_t i = 0; i < cq->feeds_count; i++)
		if (cq->feeds[i].cq == feed)
			return &cq->feeds[i];
	return NULL;
}

/* Room for one more. 0 or ENOMEM. */
static int feeds_grow(struct aw_cq *cq) AW_REQUIRES(cq->qps_lock)
{
	uint32_t room = cq->feeds_room ? cq->feeds_room * 2 : 1;
	struct aw_cq_feed *feeds;

	if (cq->feeds_count < cq->feeds_room)
		return 0;
	feeds = realloc(cq->feeds, room * sizeof(*feeds));
	if (!feeds)
		return ENOMEM;
	cq->feeds = feeds;
	cq->feeds_room = room;
	return 0;
}

int aw_cq_join_feed(struct aw_cq *cq, struct aw_cq *feed)
{
	struct aw_cq_feed *known;
	int err = 0;

	aw_lock(&cq->qps_lock);
	known = feed_find(cq, feed);
	if (known)
		known->joined++;
	else
		err = feeds_grow(cq);
	if (!known && !err)
		cq->feeds[cq->feeds_count++] = (struct aw_cq_feed){ feed, 1 };
	aw_unlock(&cq->qps_lock);
	return err;
}

/* A thread of the parent may have held qps_lock over the fork: nobody releases it in the child, where no CQ is fed. */
void aw_cq_leave_feed(struct aw_cq *cq, struct aw_cq *feed)
{
	struct aw_cq_feed *known;

	if (cq->generation != aw_fork_generation())
		return;
	aw_lock(&cq->qps_lock);
	known = feed_find(cq, feed);
	assert(known);
	if (--known->joined == 0)
		*known = cq->feeds[--cq->feeds_count];
	aw_unlock(&cq->qps_lock);
}
