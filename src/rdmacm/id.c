// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An id: made, found by callbacks, moved from state to state.
#include "rdmacm/id.h"

#include "net/base/fork.h"
#include "net/progress/engine.h"
#include "rdmacm/event.h"
#include "ring/lock.h"
#include "ring/once.h"
#include "ring/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define IDS_MAX (1u << 20)
#define TO(state) (1u << (state))

static const uint32_t arrows[] = {
	[AW_CM_IDLE] = TO(AW_CM_BOUND) | TO(AW_CM_ADDR_RESOLVED) | TO(AW_CM_ROUTE_RESOLVED) |
		       TO(AW_CM_REQUESTED),
	[AW_CM_BOUND] = TO(AW_CM_ADDR_RESOLVED) | TO(AW_CM_LISTENING),
	[AW_CM_ADDR_RESOLVED] = TO(AW_CM_ROUTE_RESOLVED),
	[AW_CM_ROUTE_RESOLVED] = TO(AW_CM_CONNECTING),
	[AW_CM_LISTENING] = TO(AW_CM_BOUND),
	[AW_CM_CONNECTING] = TO(AW_CM_CONNECTED) | TO(AW_CM_FAILED) | TO(AW_CM_ROUTE_RESOLVED),
	[AW_CM_REQUESTED] = TO(AW_CM_ACCEPTING) | TO(AW_CM_CONNECTED) | TO(AW_CM_FAILED),
	[AW_CM_ACCEPTING] = TO(AW_CM_REPLIED) | TO(AW_CM_CONNECTED) | TO(AW_CM_FAILED),
	[AW_CM_REPLIED] = TO(AW_CM_CONNECTED) | TO(AW_CM_DISCONNECTED) | TO(AW_CM_FAILED),
	[AW_CM_CONNECTED] = TO(AW_CM_DISCONNECTED),
	[AW_CM_DISCONNECTED] = 0,
	[AW_CM_FAILED] = 0,
	[AW_CM_ENDED] = 0,
};

static struct aw_table ids;
static struct aw_once ids_once = AW_ONCE_INIT;

static void fork_prepare(void) AW_ACQUIRE(ids.lock)
{
	aw_table_fork_prepare(&ids);
}

static void fork_parent(void) AW_RELEASE(ids.lock)
{
	aw_table_fork_parent(&ids);
}

static void fork_child(void) AW_RELEASE(ids.lock)
{
	aw_table_fork_child(&ids);
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

static int make_table(void)
{
	int err = aw_table_init(&ids, IDS_MAX);

	if (err)
		return err;
	aw_fork_register(AW_FORK_CM_IDS, &fork_handlers);
	return 0;
}

int aw_cm_id_create(struct rdma_event_channel *channel, void *context, struct aw_cm_id **out)
{
	int err = aw_fork_check();

	if (!err)
		err = aw_once_run(&ids_once, make_table);
	if (err)
		return err;
	struct aw_cm_id *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return ENOMEM;
	if (aw_cm_event_spare(cm) != 0) {
		free(cm);
		return ENOMEM;
	}
	cm->id.channel = channel;
	cm->id.context = context;
	cm->id.ps = RDMA_PS_TCP;
	cm->id.qp_type = IBV_QPT_RC;
	cm->fd = -1;
	cm->process = aw_fork_generation();
	pthread_mutex_init(&cm->lock, NULL);
	pthread_cond_init(&cm->changed, NULL);
	cm->handle = aw_table_insert(&ids, cm, NULL);
	if (cm->handle == AW_TABLE_NONE) {
		free(cm->spare);
		free(cm);
		return ENOMEM;
	}
	*out = cm;
	return 0;
}

bool aw_cm_id_inherited(const struct aw_cm_id *cm)
{
	return cm->process != aw_fork_generation();
}

void *aw_cm_id_arg(const struct aw_cm_id *cm)
{
	return (void *)(uintptr_t)cm->handle;
}

struct aw_cm_id *aw_cm_id_get(void *arg)
{
	return aw_table_get(&ids, (uint32_t)(uintptr_t)arg);
}

void aw_cm_id_put(struct aw_cm_id *cm)
{
	aw_table_put(&ids, cm->handle);
}

void aw_cm_id_withdraw(struct aw_cm_id *cm)
{
	if (aw_cm_id_inherited(cm))
		aw_table_remove(&ids, cm->handle);
	else
		aw_table_remove_wait(&ids, cm->handle);
}

void aw_cm_id_enter(struct aw_cm_id *cm, enum aw_cm_state state)
{
	assert(state == AW_CM_ENDED || (arrows[cm->state] & TO(state)));
	cm->state = state;
}

enum aw_cm_state aw_cm_id_state(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	enum aw_cm_state state = cm->state;

	aw_unlock(&cm->lock);
	return state;
}

bool aw_cm_id_advance(struct aw_cm_id *cm, enum aw_cm_state from, enum aw_cm_state to)
{
	aw_lock(&cm->lock);
	bool is = cm->state == from;

	if (is)
		aw_cm_id_enter(cm, to);
	aw_unlock(&cm->lock);
	return is;
}

int aw_cm_id_hold_engine(struct aw_cm_id *cm)
{
	int err = cm->engine_held ? 0 : aw_engine_get();

	if (!err)
		cm->engine_held = true;
	return err;
}
