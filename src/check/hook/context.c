// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Devices: a context's ops become the hooks' when it is first seen, which may be in another call than ibv_open_device, since
// librdmacm opens devices by itself.
#include "check/base/marks.h"
#include "check/hook/async.h"
#include "check/hook/light.h"
#include "check/hook/ops.h"
#include "check/hook/vary.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two threads that see a context first */

struct aw_context_shadow *aw_ops_get(const struct ibv_context *context)
{
	struct aw_context_shadow *device = aw_context_get(context);

	assert(device); /* its ops are not called but by a context that was seen */
	return device;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct aw_context_shadow *device;
	int err;

	aw_inside_enter();
	device = aw_ops_get(context);
	err = aw_hook_may("ibv_query_device_ex")
		      ? device->extended.query_device_ex(context, input, attr, attr_size)
		      : errno;
	if (err == 0)
		aw_mark_given(attr, attr_size);
	if (err == 0 && aw_hook_like())
		aw_like_limit_device(aw_hook_like(), &attr->orig_attr);
	aw_object_put(&device->object);
	return aw_hook_end("ibv_query_device_ex", err);
}

static void extended_replace(struct verbs_context *context)
{
	if (context->create_cq_ex)
		context->create_cq_ex = aw_op_create_cq_ex;
	if (context->create_qp_ex)
		context->create_qp_ex = aw_op_create_qp_ex;
	if (context->create_srq_ex)
		context->create_srq_ex = aw_op_create_srq_ex;
	if (context->open_qp)
		context->open_qp = aw_op_open_qp;
	if (context->alloc_td)
		context->alloc_td = aw_op_alloc_td;
	if (context->dealloc_td)
		context->dealloc_td = aw_op_dealloc_td;
	if (context->alloc_parent_domain)
		context->alloc_parent_domain = aw_op_alloc_parent_domain;
	if (context->query_device_ex)
		context->query_device_ex = query_device_ex;
	if (context->reg_dm_mr)
		context->reg_dm_mr = aw_op_reg_dm_mr;
	if (context->query_port)
		context->query_port = aw_op_query_port;
	if (context->advise_mr)
		context->advise_mr = aw_op_advise_mr;
	if (context->alloc_null_mr)
		context->alloc_null_mr = aw_op_alloc_null_mr;
	if (context->modify_cq)
		context->modify_cq = aw_op_modify_cq;
}

static void ops_replace(struct ibv_context *context, struct verbs_context *extended)
{
	context->ops.alloc_mw = aw_op_alloc_mw;
	context->ops.dealloc_mw = aw_op_dealloc_mw;
	context->ops.bind_mw = aw_op_bind_mw;
	if (extended)
		extended_replace(extended);
	if (aw_light_is_on()) {
		aw_light_context(context);
		return;
	}
	context->ops.poll_cq = aw_op_poll_cq;
	context->ops.req_notify_cq = aw_op_req_notify_cq;
	context->ops.post_send = aw_op_post_send;
	context->ops.post_recv = aw_op_post_recv;
	context->ops.post_srq_recv = aw_op_post_srq_recv;
}

void aw_hook_context(struct ibv_context *context)
{
	struct aw_context_shadow *shadow = aw_context_get(context);
	struct ibv_device_attr attr = { 0 };
	struct verbs_context *extended = verbs_get_ctx(context);

	if (shadow && !atomic_load(&shadow->object.is_gone)) {
		aw_object_put(&shadow->object);
		return;
	}
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_like_show(context->device);
	if (aw_real()->ibv_query_device(context, &attr) == 0 && aw_hook_like())
		aw_like_limit_device(aw_hook_like(), &attr);
	pthread_mutex_lock(&lock);
	if (context->ops.alloc_mw != aw_op_alloc_mw && aw_context_add(context, &attr)) {
		ops_replace(context, extended);
		aw_async_begin(context);
	}
	pthread_mutex_unlock(&lock);
}

/* The program is to close it, where it called itself. */
static void context_opened(struct ibv_context *context)
{
	struct aw_object *object;

	aw_hook_context(context);
	object = aw_object_get(context, AW_KIND_CONTEXT);
	if (object && aw_inside_depth() == 1)
		object->is_inner = aw_stack_is_library(&object->made);
	aw_object_put(object);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_open_device"))
		context = aw_real()->ibv_open_device(device);
	if (context)
		context_opened(context);
	else
		aw_hook_failed("ibv_open_device", errno);
	aw_inside_leave();
	return context;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_import_device"))
		context = aw_real()->ibv_import_device(cmd_fd);
	if (context)
		context_opened(context);
	else
		aw_hook_failed("ibv_import_device", errno);
	aw_inside_leave();
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	struct aw_object *object;
	int rc = -1;

	aw_inside_enter();
	object = aw_object_get(context, AW_KIND_CONTEXT);
	if (aw_destroy_begin("ibv_close_device", object)) {
		aw_async_end(context);
		rc = aw_real()->ibv_close_device(context);
		aw_destroy_end("ibv_close_device", object, rc ? errno : 0);
	}
	aw_object_put(object);
	aw_inside_leave();
	return rc;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err;

	aw_inside_enter();
	aw_hook_context(context);
	err = aw_hook_may("ibv_query_device") ? aw_real()->ibv_query_device(context, attr) : errno;
	if (err)
		aw_hook_failed("ibv_query_device", err);
	else
		aw_mark_given(attr, sizeof(*attr));
	if (err == 0 && aw_hook_like())
		aw_like_limit_device(aw_hook_like(), attr);
	aw_inside_leave();
	return err;
}
