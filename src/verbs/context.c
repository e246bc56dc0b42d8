// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Opening and closing the device. A context holds the progress engine; the program's open and each
// object hold the context. One lock, held for a few instructions and around no call but the raising of an event, guards
// all counts; it is taken around fork so that the child finds it free.
#define _GNU_SOURCE // memfd_create
#include "verbs/context.h"

#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/progress/engine.h"
#include "ring/lock.h"
#include "verbs/gid.h"
#include "verbs/limits.h"
#include "verbs/port_watch.h"
#include "verbs/private.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static aw_mutex context_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_context *context_shared AW_GUARDED_BY(context_lock);
static TAILQ_HEAD(vb_context_list, vb_context) contexts
	AW_GUARDED_BY(context_lock) = TAILQ_HEAD_INITIALIZER(contexts);

static int context_open(struct ibv_device *device, int cmd_fd, struct vb_context **context);
static int context_open_anew(struct ibv_device *device, struct vb_context **context);
static struct vb_context *shared_take(struct vb_context *fresh);

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_context *context;
	int err = device ? aw_fork_check() : EINVAL;

	if (!err)
		err = context_open_anew(device, &context);

	if (err) {
		errno = err;
		return NULL;
	}
	return &context->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	vb_context_put(context);
	return 0;
}

int avb_context_shared_get(struct ibv_context **context)
{
	struct ibv_device **list;
	int err = aw_fork_check();

	if (err)
		return err;
	struct vb_context *held = shared_take(NULL);

	if (!held) {
		struct vb_context *fresh;

		list = ibv_get_device_list(NULL);
		if (!list)
			return errno;
		err = context_open_anew(list[0], &fresh);
		ibv_free_device_list(list);
		if (err)
			return err;
		held = shared_take(fresh);
		if (held != fresh)
			vb_context_put(&fresh->verbs.context);
	}
	*context = &held->verbs.context;
	return 0;
}

void avb_context_shared_put(struct ibv_context *context)
{
	vb_context_put(context);
}

int vb_context_import(int cmd_fd, struct vb_context **context)
{
	uint32_t generation = aw_fork_generation();
	struct ibv_device *device = NULL;
	struct vb_context *vb;
	struct stat st;

	if (fstat(cmd_fd, &st) != 0)
		return EBADF;
	aw_lock(&context_lock);
	TAILQ_FOREACH(vb, &contexts, entry)
	{
		if (vb->cmd_ino == st.st_ino && vb->cmd_dev == st.st_dev &&
		    vb->generation == generation)
			device = vb->verbs.context.device;
	}
	aw_unlock(&context_lock);
	return device ? context_open(device, cmd_fd, context) : EOPNOTSUPP;
}

bool vb_context_is_same(struct ibv_context *a, struct ibv_context *b)
{
	const struct vb_context *left = vb_context_of(a), *right = vb_context_of(b);

	return left->cmd_ino == right->cmd_ino && left->cmd_dev == right->cmd_dev;
}

void vb_context_get(struct ibv_context *context)
{
	aw_lock(&context_lock);
	vb_context_of(context)->refs++;
	aw_unlock(&context_lock);
}

void vb_context_put(struct ibv_context *context)
{
	struct vb_context *vb = vb_context_of(context);
	bool last, none;

	aw_lock(&context_lock);
	last = !--vb->refs;
	if (last)
		TAILQ_REMOVE(&contexts, vb, entry);
	none = TAILQ_EMPTY(&contexts);
	if (last && context_shared == vb)
		context_shared = NULL;
	aw_unlock(&context_lock);
	if (last) {
		vb_port_watch_closed(vb->generation);
		aw_engine_put();
		aw_channel_fini(&vb->async);
		aw_stat_give(vb->stat);
		close(vb->verbs.context.cmd_fd);
		pthread_mutex_destroy(&vb->verbs.context.mutex);
		free(vb);
	}
	if (none)
		vb_gids_forget();
}

/*
 * A program that reads no events gets each change of the state, in their order, and a change of the table once: it reads the whole
 * table when it has read the event.
 */
void vb_context_raise_port(enum ibv_event_type event)
{
	uint32_t generation = aw_fork_generation();
	struct vb_context *vb;

	aw_lock(&context_lock);
	TAILQ_FOREACH(vb, &contexts, entry)
	{
		if (vb->generation != generation)
			continue;
		if (event == IBV_EVENT_GID_CHANGE)
			aw_channel_raise_once(&vb->async, &vb->gid_change);
		else
			aw_channel_raise(&vb->async, event == IBV_EVENT_PORT_ERR
							     ? &vb->port_err
							     : &vb->port_active);
	}
	aw_unlock(&context_lock);
}

void vb_context_count(struct ibv_context *context, int pds, int mrs, int64_t mr_bytes)
{
	union aw_stat_row *stat = vb_context_of(context)->stat;

	if (!stat)
		return;
	aw_stat_add(&stat->device.pds, (uint32_t)pds);
	aw_stat_add(&stat->device.mrs, (uint32_t)mrs);
	aw_stat_add64(&stat->device.mr_bytes, (uint64_t)mr_bytes);
}

/* Threads that only the parent has may hold these locks for ever; the child may still destroy the channels and CQs that take them. */
static void contexts_renew_locks(void) AW_REQUIRES(context_lock)
{
	struct vb_context *vb;

	TAILQ_FOREACH(vb, &contexts, entry)
	{
		pthread_mutex_init(&vb->verbs.context.mutex, NULL);
	}
}

static const struct aw_fork_handlers context_fork_handlers = { .lock = &context_lock,
							       .child = contexts_renew_locks };

static __attribute__((constructor)) void context_prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_CONTEXTS, &context_fork_handlers);
}

/* The shared context, held. Where there is none, or it was opened before a fork, fresh (or NULL) takes its place. */
static struct vb_context *shared_take(struct vb_context *fresh)
{
	uint32_t generation = aw_fork_generation();
	struct vb_context *shared;

	aw_lock(&context_lock);
	shared = context_shared;
	if (shared && shared->generation == generation)
		shared->refs++;
	else
		shared = fresh;
	if (shared)
		context_shared = shared;
	aw_unlock(&context_lock);
	return shared;
}

/* A slot that stays NULL makes its inline function return EOPNOTSUPP. */
static void context_fill(struct vb_context *vb, struct ibv_device *device, int cmd_fd)
{
	struct ibv_context *context = &vb->verbs.context;

	context->device = device;
	context->cmd_fd = cmd_fd;
	context->async_fd = vb->async.fd;
	context->num_comp_vectors = VB_COMP_VECTORS;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->ops.poll_cq = vb_poll_cq;
	context->ops.req_notify_cq = vb_req_notify_cq;
	context->ops.post_send = vb_post_send;
	context->ops.post_recv = vb_post_recv;
	context->ops.post_srq_recv = vb_post_srq_recv;
	context->ops.alloc_mw = vb_alloc_mw;
	context->ops.bind_mw = vb_bind_mw;
	context->ops.dealloc_mw = vb_dealloc_mw;

	vb->verbs.sz = sizeof(vb->verbs);
	vb->verbs.query_port = vb_query_port;
	vb->verbs.query_device_ex = vb_query_device_ex;
	vb->verbs.query_rt_values = vb_query_rt_values;
	vb->verbs.create_cq_ex = vb_create_cq_ex;
	vb->verbs.modify_cq = vb_modify_cq;
	vb->verbs.create_qp_ex = vb_create_qp_ex;
	vb->verbs.create_srq_ex = vb_create_srq_ex;
	vb->verbs.alloc_td = vb_alloc_td;
	vb->verbs.dealloc_td = vb_dealloc_td;
	vb->verbs.alloc_parent_domain = vb_alloc_parent_domain;
	vb->verbs.advise_mr = vb_advise_mr;
	vb->verbs.alloc_null_mr = vb_alloc_null_mr;
	vb->verbs.alloc_dm = vb_alloc_dm;
	vb->verbs.free_dm = vb_free_dm;
	vb->verbs.reg_dm_mr = vb_reg_dm_mr;
	if (!aw_persona_is_roce())
		return;
	vb->verbs.open_xrcd = vb_open_xrcd;
	vb->verbs.close_xrcd = vb_close_xrcd;
	vb->verbs.get_srq_num = vb_get_srq_num;
	vb->verbs.open_qp = vb_open_qp;
}

static void sources_init(struct vb_context *vb)
{
	aw_source_init(&vb->port_err, NULL, IBV_EVENT_PORT_ERR);
	aw_source_init(&vb->port_active, NULL, IBV_EVENT_PORT_ACTIVE);
	aw_source_init(&vb->gid_change, NULL, IBV_EVENT_GID_CHANGE);
}

/* The context owns cmd_fd on success. */
static int context_open(struct ibv_device *device, int cmd_fd, struct vb_context **context)
{
	struct vb_context *vb;
	struct stat st;
	int err;

	vb = calloc(1, sizeof(*vb));
	if (!vb)
		return ENOMEM;
	err = fstat(cmd_fd, &st) ? errno : aw_engine_get();
	if (err)
		goto free_vb;
	err = aw_channel_init(&vb->async);
	if (err)
		goto put_engine;
	vb->cmd_dev = st.st_dev;
	vb->cmd_ino = st.st_ino;
	vb->generation = aw_fork_generation();
	vb->refs = 1;
	pthread_mutex_init(&vb->verbs.context.mutex, NULL);
	context_fill(vb, device, cmd_fd);
	vb->stat = aw_stat_take(AW_STAT_DEVICE, 0);
	if (vb->stat)
		aw_stat_set(&vb->stat->device.roce, aw_persona_is_roce());
	sources_init(vb);
	vb_port_watch_opened();
	aw_lock(&context_lock);
	TAILQ_INSERT_TAIL(&contexts, vb, entry);
	aw_unlock(&context_lock);
	*context = vb;
	return 0;

put_engine:
	aw_engine_put();
free_vb:
	free(vb);
	return err;
}

/* The fd is never read: it tells this context from others, as a device file's would. */
static int context_open_anew(struct ibv_device *device, struct vb_context **context)
{
	int cmd_fd = memfd_create("anywarp", MFD_CLOEXEC), err;

	/* A program that enters a network namespace opens the device there. */
	vb_gids_forget();
	if (cmd_fd < 0)
		return errno;
	err = context_open(device, cmd_fd, context);
	if (err)
		close(cmd_fd);
	return err;
}
