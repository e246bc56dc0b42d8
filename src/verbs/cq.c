// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CQs: life, size, arming and the plain poll. A CQ holds as many CQEs as were asked for; one more
// is an overrun, which raises an event on the context and ends the CQ.
#include "verbs/cq.h"

#include "net/base/io_now.h"
#include "net/cq/moderation.h"
#include "net/qp/cq_poll.h"
#include "ring/lock.h"
#include "verbs/ack.h"
#include "verbs/channel.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/pd.h"
#include "verbs/port_watch.h"
#include "verbs/stamp.h"
#include "verbs/wc.h"

#include <errno.h>
#include <stdlib.h>

/* VLANs, flow tags and tags to match are of an Ethernet adapter's packets. */
#define STAMPS                                           \
	((uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_FLAGS_SUPPORTED (IBV_WC_STANDARD_FLAGS | STAMPS)
#define ATTR_SUPPORTED (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define FLAGS_SUPPORTED (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

enum {
	POLL_BATCH = 16
};

static struct vb_limit cqs = { .max = VB_CQ_MAX };

static int cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		     struct vb_cq **created);

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct vb_cq *cq;
	int err = cq_create(context, &attr, &cq);

	if (err) {
		errno = err;
		return NULL;
	}
	return ibv_cq_ex_to_cq(&cq->ibv);
}

static uint32_t flags_of(const struct ibv_cq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
}

/* EINVAL also for a PD that is no parent domain, as from adapters. */
static int extended_check(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)ATTR_SUPPORTED || attr->wc_flags & ~WC_FLAGS_SUPPORTED ||
	    flags_of(attr) & ~(uint32_t)FLAGS_SUPPORTED)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    !(attr->parent_domain && vb_pd_is_parent(attr->parent_domain)))
		return EINVAL;
	return 0;
}

/* Only the wall clock's time is taken where only that is read, since it cannot be told exactly from the other clock's. */
static void extend(struct vb_cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	bool wall = (attr->wc_flags & STAMPS) == IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

	cq->single_threaded = flags_of(attr) & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->aw.overwrites = flags_of(attr) & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq->aw.stamped = attr->wc_flags & STAMPS;
	cq->aw.stamp_clock = wall ? CLOCK_REALTIME : VB_STAMP_CLOCK;
	vb_cq_ex_init(cq, attr->wc_flags);
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	int err = extended_check(attr);
	struct vb_cq *cq;

	if (!err)
		err = cq_create(context, attr, &cq);
	if (err) {
		errno = err;
		return NULL;
	}
	extend(cq, attr);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = attr->parent_domain;
		vb_pd_get(cq->parent);
		err = aw_cq_keep_in(&cq->aw, vb_pd_memory(cq->parent));
	}
	if (err) {
		ibv_destroy_cq(ibv_cq_ex_to_cq(&cq->ibv));
		errno = err;
		return NULL;
	}
	return &cq->ibv;
}

int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	if (!attr->attr_mask)
		return vb_fail(EINVAL);
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return vb_fail(EOPNOTSUPP);
	return vb_fail(aw_moderation_set(&vb_cq_of(cq)->aw, attr->moderate.cq_count,
					 attr->moderate.cq_period));
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err;

	if (cqe < 1 || cqe > (int)AW_CQE_MAX)
		return vb_fail(EINVAL);
	err = aw_cq_resize(&vb_cq_of(cq)->aw, (uint32_t)cqe);
	if (!err)
		cq->cqe = cqe;
	return vb_fail(err);
}

static void channel_use(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	aw_lock(&channel->context->mutex);
	channel->refcnt += change;
	aw_unlock(&channel->context->mutex);
}

/* EBUSY while a QP uses the CQ. */
int ibv_destroy_cq(struct ibv_cq *ibv_cq)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_cq *cq = vb_cq_of(ibv_cq);
	struct ibv_context *context = ibv_cq->context;

	if (atomic_load_explicit(&cq->users, memory_order_acquire))
		return vb_fail(EBUSY);
	struct vb_ack comp = { &ibv_cq->mutex, &ibv_cq->cond, &ibv_cq->comp_events_completed };
	struct vb_ack async = { &ibv_cq->mutex, &ibv_cq->cond, &ibv_cq->async_events_completed };

	aw_moderation_end(&cq->aw);
	if (cq->aw.channel)
		aw_channel_forget(cq->aw.channel, &cq->aw.event);
	aw_channel_forget(cq->aw.async, &cq->aw.async_error);
	/* Events that the program has read name the CQ until it acknowledges them. */
	vb_ack_wait(context, comp, cq->aw.event.taken);
	vb_ack_wait(context, async, cq->aw.async_error.taken);
	aw_cq_fini(&cq->aw);
	channel_use(ibv_cq->channel, -1);
	if (cq->parent)
		vb_pd_put(cq->parent);
	pthread_mutex_destroy(&cq->poll_lock);
	pthread_cond_destroy(&ibv_cq->cond);
	pthread_mutex_destroy(&ibv_cq->mutex);
	free(cq);
	vb_limit_give(&cqs);
	vb_context_put(context);
	return 0;
}

int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	aw_cq_arm(&vb_cq_of(cq)->aw, solicited_only ? AW_ARM_SOLICITED : AW_ARM_NEXT);
	return 0;
}

int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct aw_cq_entry entries[POLL_BATCH];
	int done = 0;

	if (num_entries < 0)
		return -vb_fail(EINVAL);
	while (done < num_entries) {
		int want = num_entries - done < POLL_BATCH ? num_entries - done : POLL_BATCH;
		int got = aw_cq_poll(&vb_cq_of(cq)->aw, entries, want);

		/* After an overrun the CQEs that the CQ holds are still returned first. */
		if (got < 0)
			return done ? done : -vb_fail(-got);
		for (int i = 0; i < got; i++)
			vb_wc_fill(&wc[done + i], &entries[i]);
		done += got;
		if (got < want)
			break;
	}
	return done;
}

static void cq_fill(struct vb_cq *cq, struct ibv_context *context,
		    const struct ibv_cq_init_attr_ex *attr)
{
	static _Atomic uint32_t handles;
	struct ibv_cq *ibv = ibv_cq_ex_to_cq(&cq->ibv);

	ibv->context = context;
	ibv->channel = attr->channel;
	ibv->cq_context = attr->cq_context;
	ibv->handle = atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed);
	ibv->cqe = (int)attr->cqe;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	cq->aw.async = &vb_context_of(context)->async;
	aw_source_init(&cq->aw.async_error, ibv, IBV_EVENT_CQ_ERR);
	channel_use(attr->channel, 1);
	vb_context_get(context);
	vb_port_watch_look(context);
}

static int cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		     struct vb_cq **created)
{
	struct aw_channel *events = attr->channel ? &vb_channel_of(attr->channel)->events : NULL;
	struct vb_cq *cq;
	int err = ENOMEM;

	if (attr->cqe < 1 || attr->cqe > AW_CQE_MAX || attr->comp_vector >= VB_COMP_VECTORS)
		return EINVAL;
	if (attr->channel && attr->channel->context != context)
		return EINVAL;
	if (!vb_limit_take(&cqs))
		return ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto give;
	err = aw_cq_init(&cq->aw, attr->cqe, events, cq);
	if (err)
		goto free_cq;
	cq_fill(cq, context, attr);
	*created = cq;
	return 0;

free_cq:
	free(cq);
give:
	vb_limit_give(&cqs);
	return err;
}
