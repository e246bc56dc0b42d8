// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding an SRQ by its number, and its life beside those who receive into it.
#include "net/cq/xrc.h"

#include "net/base/fork.h"
#include "net/cq/feed.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;

static const struct aw_fork_handlers fork_handlers = { .lock = &lock };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_XRC, &fork_handlers);
}

int aw_xrcd_init(struct aw_xrcd *xrcd)
{
	int err;

	*xrcd = (struct aw_xrcd){ 0 };
	err = aw_cq_init(&xrcd->targets, 1, NULL, NULL);
	if (err)
		return err;
	/* It is no CQ of the program's. */
	aw_stat_give(xrcd->targets.stat);
	xrcd->targets.stat = NULL;
	return 0;
}

void aw_xrcd_fini(struct aw_xrcd *xrcd)
{
	assert(xrcd->pds_count == 0);
	aw_cq_fini(&xrcd->targets);
	free(xrcd->pds);
	*xrcd = (struct aw_xrcd){ 0 };
}

static struct aw_xrc_srq **bucket_of(struct aw_xrcd *xrcd, uint32_t number) AW_REQUIRES(lock)
{
	return &xrcd->bucket[number % AW_XRC_BUCKETS];
}

static struct aw_xrc_pd *pd_find(const struct aw_xrcd *xrcd, const void *pd) AW_REQUIRES(lock)
{
	for (uint32_t i = 0; i < xrcd->pds_count; i++)
		if (xrcd->pds[i].pd == pd)
			return &xrcd->pds[i];
	return NULL;
}

static int pd_use(struct aw_xrcd *xrcd, const void *pd) AW_REQUIRES(lock)
{
	struct aw_xrc_pd *found = pd_find(xrcd, pd);

	if (found) {
		found->srqs++;
		return 0;
	}
	if (xrcd->pds_count == xrcd->pds_room) {
		uint32_t room = xrcd->pds_room ? xrcd->pds_room * 2 : 4;
		struct aw_xrc_pd *pds = realloc(xrcd->pds, room * sizeof(*pds));

		if (!pds)
			return ENOMEM;
		xrcd->pds = pds;
		xrcd->pds_room = room;
	}
	xrcd->pds[xrcd->pds_count++] = (struct aw_xrc_pd){ pd, 1 };
	return 0;
}

static void pd_leave(struct aw_xrcd *xrcd, const void *pd) AW_REQUIRES(lock)
{
	struct aw_xrc_pd *found = pd_find(xrcd, pd);

	assert(found);
	if (--found->srqs == 0)
		*found = xrcd->pds[--xrcd->pds_count];
}

int aw_xrc_join(struct aw_xrcd *xrcd, uint32_t number, struct aw_srq *srq, struct aw_cq *cq,
		struct aw_xrc_srq **joined)
{
	struct aw_xrc_srq *x = calloc(1, sizeof(*x));
	int err;

	if (!x)
		return ENOMEM;
	*x = (struct aw_xrc_srq){
		.number = number, .pd = srq->pd, .cq = cq, .srq = srq, .refs = 1
	};
	err = aw_cq_join_feed(cq, &xrcd->targets);
	if (err)
		goto free_srq;
	aw_lock(&lock);
	err = pd_use(xrcd, x->pd);
	if (!err) {
		x->next = *bucket_of(xrcd, number);
		*bucket_of(xrcd, number) = x;
	}
	aw_unlock(&lock);
	if (err)
		goto leave_feed;
	*joined = x;
	return 0;

leave_feed:
	aw_cq_leave_feed(cq, &xrcd->targets);
free_srq:
	free(x);
	return err;
}

/* Frees it with its last reference. */
static void put(struct aw_xrc_srq *x) AW_REQUIRES(lock)
{
	if (--x->refs == 0)
		free(x);
}

void aw_xrc_leave(struct aw_xrcd *xrcd, struct aw_xrc_srq *srq)
{
	struct aw_xrc_srq **at;

	aw_cq_leave_feed(srq->cq, &xrcd->targets);
	aw_lock(&lock);
	for (at = bucket_of(xrcd, srq->number); *at != srq; at = &(*at)->next)
		;
	*at = srq->next;
	pd_leave(xrcd, srq->pd);
	srq->srq = NULL;
	aw_cq_forget(srq->cq, &srq->of_cq);
	put(srq);
	aw_unlock(&lock);
}

static struct aw_xrc_srq *srq_find(struct aw_xrcd *xrcd, uint32_t number) AW_REQUIRES(lock)
{
	struct aw_xrc_srq *x = *bucket_of(xrcd, number);

	while (x && x->number != number)
		x = x->next;
	return x;
}

enum aw_error aw_xrc_take(struct aw_xrcd *xrcd, uint32_t number, struct aw_rwqe *recv,
			  struct aw_xrc_srq **held)
{
	enum aw_error err = AW_OK;
	struct aw_xrc_srq *x;

	aw_lock(&lock);
	x = srq_find(xrcd, number);
	if (!x)
		err = AW_E_DDP_QN;
	else if (x->cq->overflowed)
		err = AW_E_LOCAL_CATASTROPHIC;
	else if (!aw_srq_take(x->srq, recv))
		err = AW_E_DDP_NO_BUFFER;
	if (!err) {
		x->refs++;
		*held = x;
	}
	aw_unlock(&lock);
	return err;
}

void aw_xrc_complete(struct aw_xrc_srq *held, const struct aw_cq_entry *entry)
{
	const struct aw_cq_from from = { &held->of_cq, entry->qpn, entry->queue };

	aw_lock(&lock);
	if (held->srq)
		aw_cq_push(held->cq, &entry->cqe, &from);
	aw_unlock(&lock);
}

void aw_xrc_put(struct aw_xrc_srq *held)
{
	aw_lock(&lock);
	put(held);
	aw_unlock(&lock);
}

bool aw_xrc_has_pd(const struct aw_xrcd *xrcd, const void *pd)
{
	bool has;

	aw_lock(&lock);
	has = pd_find(xrcd, pd);
	aw_unlock(&lock);
	return has;
}

void aw_xrc_flush(struct aw_xrc_done *done, uint32_t count)
{
	if (count > done->count)
		count = done->count;
	for (uint32_t i = 0; i < count; i++) {
		aw_xrc_complete(done->at[i].srq, &done->at[i].entry);
		aw_xrc_put(done->at[i].srq);
	}
	done->count -= count;
	memmove(done->at, done->at + count, done->count * sizeof(done->at[0]));
}
