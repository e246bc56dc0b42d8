// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SRQs: life, size, limit and posting. Those of XRC (verbs/srq_xrc.c) begin and end as the others do.
#include "verbs/srq.h"

#include "net/base/io_now.h"
#include "ring/lock.h"
#include "verbs/ack.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/pd.h"
#include "verbs/recv.h"
#include "verbs/srq_xrc.h"

#include <errno.h>
#include <stdlib.h>

static struct vb_limit srqs = { .max = VB_SRQ_MAX };

static int srq_create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr,
		      struct vb_srq **created);
static int modify_check(struct aw_srq *srq, const struct ibv_srq_attr *attr, int mask);

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_srq *srq;
	int err = srq_create(pd, attr->srq_context, &attr->attr, &srq);

	if (err) {
		errno = err;
		return NULL;
	}
	return &srq->ibv;
}

static int create_check(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t supported = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	bool has_type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;

	if (has_type && attr->srq_type == IBV_SRQT_XRC)
		return vb_srq_xrc_check(context, attr);
	if (attr->comp_mask & ~supported || (has_type && attr->srq_type != IBV_SRQT_BASIC))
		return EOPNOTSUPP;
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? 0 : EINVAL;
}

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_srq *srq;
	int err = create_check(context, attr);

	if (!err)
		err = srq_create(attr->pd, attr->srq_context, &attr->attr, &srq);
	if (!err && attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) {
		err = vb_srq_xrc_join(srq, attr->xrcd, attr->cq);
		if (err)
			ibv_destroy_srq(&srq->ibv);
	}
	if (err) {
		errno = err;
		return NULL;
	}
	return &srq->ibv;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct aw_srq *aw = &vb_srq_of(srq)->aw;
	uint32_t before;
	int err = modify_check(aw, attr, mask);

	if (err || !mask)
		return vb_fail(err);
	if (mask == IBV_SRQ_MAX_WR)
		return vb_fail(aw_srq_resize(aw, attr->max_wr));
	if (mask == IBV_SRQ_LIMIT)
		return vb_fail(aw_srq_set_limit(aw, attr->srq_limit));

	/*
	 * Both: the limit must not exceed the capacity in between, so the direction decides which of the two is set
	 * first.
	 */
	aw_lock(&aw->lock);
	before = aw->limit;
	aw_unlock(&aw->lock);
	if (attr->srq_limit > before) {
		err = aw_srq_resize(aw, attr->max_wr);
		return vb_fail(err ? err : aw_srq_set_limit(aw, attr->srq_limit));
	}
	err = aw_srq_set_limit(aw, attr->srq_limit);
	if (err)
		return vb_fail(err);
	err = aw_srq_resize(aw, attr->max_wr);
	if (err)
		aw_srq_set_limit(aw, before);
	return vb_fail(err);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct aw_srq *aw = &vb_srq_of(srq)->aw;

	aw_lock(&aw->lock);
	attr->max_wr = aw->rq.capacity;
	attr->max_sge = aw->sge_max;
	attr->srq_limit = aw->limit;
	aw_unlock(&aw->lock);
	return 0;
}

/* EBUSY while a QP uses the SRQ. Waits until events that were read are acknowledged. */
int ibv_destroy_srq(struct ibv_srq *ibv_srq)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_srq *srq = vb_srq_of(ibv_srq);
	struct vb_ack ack = { &ibv_srq->mutex, &ibv_srq->cond, &ibv_srq->events_completed };

	if (atomic_load_explicit(&srq->users, memory_order_acquire))
		return vb_fail(EBUSY);
	if (srq->xrc)
		vb_srq_xrc_leave(srq);
	aw_channel_forget(srq->aw.async, &srq->aw.limit_event);
	vb_ack_wait(ibv_srq->context, ack, srq->aw.limit_event.taken);
	aw_srq_fini(&srq->aw);
	vb_pd_put(ibv_srq->pd);
	pthread_cond_destroy(&ibv_srq->cond);
	pthread_mutex_destroy(&ibv_srq->mutex);
	free(srq);
	vb_limit_give(&srqs);
	return 0;
}

int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct aw_srq *aw = &vb_srq_of(srq)->aw;

	for (; wr; wr = wr->next) {
		int err = EINVAL;

		if (vb_recv_wr_valid(wr, aw->sge_max))
			err = aw_srq_post(aw, wr->wr_id, (const struct aw_sge *)wr->sg_list,
					  (uint32_t)wr->num_sge);
		if (err) {
			*bad_wr = wr;
			return vb_fail(err);
		}
	}
	return 0;
}

/*
 * Nothing is changed unless all of it can be; the limit never exceeds the number of receives that
 * can be posted.
 */
static int modify_check(struct aw_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	uint32_t capacity, limit;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	aw_lock(&srq->lock);
	capacity = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.capacity;
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	aw_unlock(&srq->lock);
	return capacity < 1 || capacity > AW_WR_MAX || limit > capacity ? EINVAL : 0;
}

static void srq_fill(struct vb_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	static _Atomic uint32_t handles;

	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed);
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->aw.async = &vb_context_of(pd->context)->async;
	aw_source_init(&srq->aw.limit_event, &srq->ibv, IBV_EVENT_SRQ_LIMIT_REACHED);
	vb_pd_get(pd);
}

static int srq_create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr,
		      struct vb_srq **created)
{
	uint32_t sge_max = attr->max_sge ? attr->max_sge : 1;
	struct vb_srq *srq;
	int err = ENOMEM;

	if (attr->max_wr < 1 || attr->max_wr > AW_WR_MAX || sge_max > AW_SGE_MAX)
		return EINVAL;
	if (!vb_limit_take(&srqs))
		return ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto give;
	err = aw_srq_init(&srq->aw, vb_pd_key(pd), attr->max_wr, sge_max);
	if (err)
		goto free_srq;
	err = aw_srq_keep_in(&srq->aw, vb_pd_memory(pd));
	if (err)
		goto fini;
	srq_fill(srq, pd, srq_context);
	attr->max_sge = sge_max;
	*created = srq;
	return 0;

fini:
	aw_srq_fini(&srq->aw);
free_srq:
	free(srq);
give:
	vb_limit_give(&srqs);
	return err;
}
