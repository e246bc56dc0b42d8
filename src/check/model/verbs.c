// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/verbs.h"

#include "check/base/settings.h"
#include "check/model/registered.h"
#include "check/report/report.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static void shadow_free(struct aw_object *object)
{
	free(object);
}

/* NULL where memory is out. */
static void *shadow_new(size_t size, enum aw_kind kind, const void *handle,
			const struct ibv_context *context)
{
	struct aw_object *object = calloc(1, size);

	if (object) {
		object->kind = kind;
		object->handle = handle;
		object->context = context;
		object->free = shadow_free;
	}
	return object;
}

void aw_plain_add(enum aw_kind kind, const void *handle, const struct ibv_context *context)
{
	struct aw_object *object = shadow_new(sizeof(*object), kind, handle, context);

	if (object)
		aw_object_add(object);
}

struct aw_context_shadow *aw_context_get(const struct ibv_context *context)
{
	return (struct aw_context_shadow *)aw_object_get(context, AW_KIND_CONTEXT);
}

struct aw_context_shadow *aw_context_add(struct ibv_context *context,
					 const struct ibv_device_attr *attr)
{
	struct aw_context_shadow *shadow =
		shadow_new(sizeof(*shadow), AW_KIND_CONTEXT, context, context);
	const struct verbs_context *extended = verbs_get_ctx(context);

	if (!shadow)
		return NULL;
	shadow->ops = context->ops;
	shadow->attr = *attr;
	if (extended)
		shadow->extended = *extended;
	aw_object_add(&shadow->object);
	return shadow;
}

struct aw_pd_shadow *aw_pd_get(const struct ibv_pd *pd)
{
	return (struct aw_pd_shadow *)aw_object_get(pd, AW_KIND_PD);
}

void aw_pd_add(const struct ibv_pd *pd, const struct ibv_pd *parent, const struct ibv_td *td)
{
	struct aw_pd_shadow *shadow = shadow_new(sizeof(*shadow), AW_KIND_PD, pd, pd->context);

	if (!shadow)
		return;
	shadow->parent = parent;
	shadow->td = td;
	aw_object_add(&shadow->object);
}

static void td_free(struct aw_object *object)
{
	struct aw_td_shadow *td = (struct aw_td_shadow *)object;

	pthread_mutex_destroy(&td->lock);
	free(td);
}

static void td_forked(struct aw_object *object)
{
	struct aw_td_shadow *td = (struct aw_td_shadow *)object;

	pthread_mutex_init(&td->lock, NULL);
	td->users = 0;
}

void aw_td_add(const struct ibv_td *td)
{
	struct aw_td_shadow *shadow = shadow_new(sizeof(*shadow), AW_KIND_TD, td, td->context);

	if (!shadow)
		return;
	shadow->object.free = td_free;
	shadow->object.forked = td_forked;
	pthread_mutex_init(&shadow->lock, NULL);
	aw_object_add(&shadow->object);
}

void aw_td_enter(struct aw_object *object)
{
	struct aw_td_shadow *td = (struct aw_td_shadow *)object;
	struct aw_stack other;
	char name[AW_OBJECT_NAME_MAX];
	unsigned others;

	if (!td)
		return;
	pthread_mutex_lock(&td->lock);
	others = td->users++;
	other = td->used;
	aw_stack_take(&td->used);
	pthread_mutex_unlock(&td->lock);
	aw_object_name(object, name);
	if (others)
		aw_report(
			&(struct aw_report){
				.rule = AW_RULE_THREAD_SHARED,
				.object = name,
				.earlier = { { "another thread is in this call", &other } } },
			"two threads use objects of one thread domain at once, which the program promised not to do");
}

void aw_td_leave(struct aw_object *object)
{
	struct aw_td_shadow *td = (struct aw_td_shadow *)object;

	if (!td)
		return;
	pthread_mutex_lock(&td->lock);
	td->users--;
	pthread_mutex_unlock(&td->lock);
}

/* True where this process can read the byte: of a device's memory it cannot. */
static bool byte_is_readable(const void *at)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)at, 1 };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static void mr_free(struct aw_object *object)
{
	aw_registered_remove((struct aw_mr_shadow *)object);
	free(object);
}

static void mr_forked(struct aw_object *object)
{
	((struct aw_mr_shadow *)object)->is_registered = false;
}

void aw_mr_shadow_add(const struct ibv_mr *mr, uint64_t iova, unsigned access, bool is_memory)
{
	struct aw_mr_shadow *shadow = shadow_new(sizeof(*shadow), AW_KIND_MR, mr, mr->context);
	const uint64_t start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;

	if (!shadow)
		return;
	shadow->object.number = mr->lkey;
	shadow->object.has_number = true;
	shadow->start = start;
	shadow->end = mr->length > UINT64_MAX - start ? UINT64_MAX : start + mr->length;
	shadow->memory = (uintptr_t)mr->addr;
	shadow->rkey = mr->rkey;
	shadow->pd = mr->pd;
	shadow->access = access;
	shadow->is_readable = is_memory && mr->length && mr->length != SIZE_MAX &&
			      byte_is_readable(mr->addr) &&
			      byte_is_readable((const char *)mr->addr + mr->length - 1);
	shadow->object.free = mr_free;
	shadow->object.forked = mr_forked;
	aw_object_add(&shadow->object);
	aw_registered_add(shadow);
}

struct aw_cq_shadow *aw_cq_get(const struct ibv_cq *cq)
{
	return (struct aw_cq_shadow *)aw_object_get(cq, AW_KIND_CQ);
}

static void cq_free(struct aw_object *object)
{
	struct aw_cq_shadow *shadow = (struct aw_cq_shadow *)object;

	pthread_mutex_destroy(&shadow->lock);
	free(shadow);
}

static void cq_forked(struct aw_object *object)
{
	struct aw_cq_shadow *cq = (struct aw_cq_shadow *)object;

	pthread_mutex_init(&cq->lock, NULL);
	cq->arm_needs_poll = false;
	atomic_store(&cq->sends_due, 0);
}

static void cq_vary(struct aw_cq_shadow *cq)
{
	static atomic_ulong made;

	if (aw_check_settings()->vary_on)
		aw_vary_cq_init(&cq->vary, aw_check_settings()->vary_seed,
				atomic_fetch_add(&made, 1));
}

void aw_cq_add(struct ibv_cq *cq, const struct ibv_comp_channel *channel)
{
	struct aw_cq_shadow *shadow = shadow_new(sizeof(*shadow), AW_KIND_CQ, cq, cq->context);

	if (!shadow)
		return;
	cq_vary(shadow);
	shadow->object.free = cq_free;
	shadow->object.forked = cq_forked;
	shadow->cq = cq;
	shadow->cqe = cq->cqe;
	shadow->poller = pthread_self();
	shadow->channel = channel;
	pthread_mutex_init(&shadow->lock, NULL);
	aw_object_add(&shadow->object);
}
