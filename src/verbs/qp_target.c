// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of target QPs and of their handles. The QP is created and destroyed by the threads of the program that have
// the first and the last handle; its events come from the driver's threads.
#include "verbs/qp_target.h"

#include "net/base/io_now.h"
#include "net/roce/rc.h"
#include "ring/lock.h"
#include "verbs/context.h"
#include "verbs/limits.h"
#include "verbs/xrcd.h"

#include <errno.h>
#include <stdlib.h>

#define ATTR_KNOWN                                                                     \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define OPEN_REQUIRED (IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)

static struct vb_limit handles = { .max = VB_QP_MAX };

static int target_make(struct vb_domain *domain, struct ibv_context *context,
		       struct vb_target **made);
static void target_destroy(struct vb_target *target);
static void target_event(void *arg, uint32_t events);
static struct vb_qp *handle_make(struct ibv_context *context, struct ibv_xrcd *xrcd,
				 void *qp_context);
static void handle_free(struct vb_qp *handle);

static int create_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t mask = attr->comp_mask;

	if (mask & ~(uint32_t)ATTR_KNOWN)
		return EOPNOTSUPP;
	if (!(mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd || attr->xrcd->context != context)
		return EINVAL;
	/* It has no send queue. */
	if ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags) ||
	    (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && attr->send_ops_flags))
		return EOPNOTSUPP;
	return 0;
}

/* A handle looks like a QP in RTR to those that post, which is refused: it never changes that state of its own. */
static void handle_begin(struct vb_qp *handle, struct vb_target *target)
{
	struct ibv_qp *ibv = &handle->ibv.qp_base;

	handle->target = target;
	handle->uqp = target->qp.uqp;
	handle->send_end = target->qp.send_end;
	atomic_init(&handle->walked, IBV_QPS_RTR);
	ibv->handle = handle->uqp->handle;
	ibv->qp_num = handle->uqp->qpn;
}

struct ibv_qp *vb_target_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	int err = create_check(context, attr);
	struct vb_domain *domain;
	struct vb_target *target;
	struct vb_qp *handle;

	if (err)
		goto failed;
	handle = handle_make(context, attr->xrcd, attr->qp_context);
	err = ENOMEM;
	if (!handle)
		goto failed;
	domain = vb_xrcd_of(attr->xrcd)->domain;
	err = target_make(domain, context, &target);
	if (err)
		goto free_handle;
	handle_begin(handle, target);
	aw_lock(&vb_xrc_lock);
	TAILQ_INSERT_TAIL(&target->handles, handle, target_entry);
	TAILQ_INSERT_TAIL(&domain->targets, target, entry);
	aw_unlock(&vb_xrc_lock);
	aw_uqp_listen(target->qp.uqp, AW_UQP_VERBS, target_event, target);
	attr->cap = (struct ibv_qp_cap){ 0 };
	return &handle->ibv.qp_base;

free_handle:
	handle_free(handle);
failed:
	errno = err;
	return NULL;
}

static struct vb_target *target_find(struct vb_domain *domain, uint32_t qp_num)
	AW_REQUIRES(vb_xrc_lock)
{
	struct vb_target *target;

	TAILQ_FOREACH(target, &domain->targets, entry)
	if (target->qp.uqp->qpn == qp_num)
		return target;
	return NULL;
}

/* EINVAL where the domain has no such QP in this process, as the kernel's. */
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_target *target;
	struct vb_qp *handle;
	int err = EINVAL;

	if (attr->comp_mask & ~(uint32_t)(OPEN_REQUIRED | IBV_QP_OPEN_ATTR_CONTEXT))
		err = EOPNOTSUPP;
	else if ((attr->comp_mask & OPEN_REQUIRED) == OPEN_REQUIRED && attr->xrcd &&
		 attr->xrcd->context == context && attr->qp_type == IBV_QPT_XRC_RECV)
		err = 0;
	if (err)
		goto failed;
	handle = handle_make(context, attr->xrcd,
			     attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	err = ENOMEM;
	if (!handle)
		goto failed;
	aw_lock(&vb_xrc_lock);
	target = target_find(vb_xrcd_of(attr->xrcd)->domain, attr->qp_num);
	if (target) {
		handle_begin(handle, target);
		TAILQ_INSERT_TAIL(&target->handles, handle, target_entry);
	}
	aw_unlock(&vb_xrc_lock);
	if (target)
		return &handle->ibv.qp_base;
	handle_free(handle);
	err = EINVAL;

failed:
	errno = err;
	return NULL;
}

/* Events may come until the handle has left its QP. */
void vb_target_close(struct vb_qp *handle)
{
	struct vb_target *target = handle->target;
	bool last;

	aw_lock(&vb_xrc_lock);
	TAILQ_REMOVE(&target->handles, handle, target_entry);
	last = TAILQ_EMPTY(&target->handles);
	if (last)
		TAILQ_REMOVE(&target->domain->targets, target, entry);
	aw_unlock(&vb_xrc_lock);
	if (last)
		target_destroy(target);
	vb_qp_sources_end(handle);
	handle_free(handle);
}

static int uqp_create(struct vb_target *target)
{
	struct aw_xrcd *xrcd = &target->domain->aw;
	const struct aw_uqp_attr attr = {
		.send_cq = &xrcd->targets,
		.recv_cq = &xrcd->targets,
		.pd = xrcd,
		.kind = &aw_rc_kind,
		.xrc = AW_XRC_TARGET,
		.xrcd = xrcd,
		.xrc_done = &target->done,
	};

	return aw_uqp_create(&attr, &target->qp.uqp);
}

static int target_make(struct vb_domain *domain, struct ibv_context *context,
		       struct vb_target **made)
{
	struct vb_target *target = calloc(1, sizeof(*target));
	struct ibv_qp *ibv;
	int err;

	if (!target)
		return ENOMEM;
	target->domain = domain;
	err = uqp_create(target);
	if (err) {
		free(target);
		return err;
	}
	TAILQ_INIT(&target->handles);
	ibv = &target->qp.ibv.qp_base;
	ibv->context = context;
	ibv->qp_num = target->qp.uqp->qpn;
	ibv->qp_type = target->qp.init.qp_type = IBV_QPT_XRC_RECV;
	target->qp.send_end = aw_uqp_send_end;
	atomic_init(&target->qp.walked, IBV_QPS_RESET);
	pthread_mutex_init(&ibv->mutex, NULL);
	*made = target;
	return 0;
}

static void target_destroy(struct vb_target *target)
{
	aw_uqp_listen(target->qp.uqp, AW_UQP_VERBS, NULL, NULL);
	aw_uqp_destroy(target->qp.uqp);
	pthread_mutex_destroy(&target->qp.ibv.qp_base.mutex);
	free(target);
}

static void target_event(void *arg, uint32_t events)
{
	struct vb_target *target = arg;
	struct vb_qp *handle;

	aw_lock(&vb_xrc_lock);
	TAILQ_FOREACH(handle, &target->handles, target_entry)
	vb_qp_event(handle, events);
	aw_unlock(&vb_xrc_lock);
}

static struct vb_qp *handle_make(struct ibv_context *context, struct ibv_xrcd *xrcd,
				 void *qp_context)
{
	struct vb_qp *handle;
	struct ibv_qp *ibv;

	if (!vb_limit_take(&handles))
		return NULL;
	handle = calloc(1, sizeof(*handle));
	if (!handle) {
		vb_limit_give(&handles);
		return NULL;
	}
	ibv = &handle->ibv.qp_base;
	ibv->context = context;
	ibv->qp_context = qp_context;
	ibv->state = IBV_QPS_RESET;
	ibv->qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	pthread_mutex_init(&handle->post_lock, NULL);
	vb_qp_sources_begin(handle);
	handle->xrcd = xrcd;
	atomic_fetch_add_explicit(&vb_xrcd_of(xrcd)->users, 1, memory_order_relaxed);
	vb_context_get(context);
	return handle;
}

static void handle_free(struct vb_qp *handle)
{
	struct ibv_qp *ibv = &handle->ibv.qp_base;
	struct ibv_context *context = ibv->context;

	/* Release pairs with the acquire of the thread that closes the XRCD. */
	atomic_fetch_sub_explicit(&vb_xrcd_of(handle->xrcd)->users, 1, memory_order_release);
	pthread_mutex_destroy(&handle->post_lock);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	free(handle);
	vb_limit_give(&handles);
	vb_context_put(context);
}
