// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of an id: created, found by callbacks, moved from state to state, destroyed.
#include "rdmacm/id.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/progress/engine.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/stream.h"
#include "rdmacm/timer.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"
#include "ring/once.h"
#include "ring/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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

static void destroy_listeners(struct aw_cm_id *cm)
{
	if (cm->listener)
		aw_listener_destroy(cm->listener);
	if (cm->given)
		aw_listener_destroy(cm->given);
}

static void stop_net(struct aw_cm_id *cm)
{
	/* From ENDED on callbacks find nothing to do. */
	aw_lock(&cm->lock);
	enum aw_cm_state state = cm->state;
	struct aw_conn *conn = cm->conn;

	cm->conn = NULL;
	aw_cm_timer_stop(cm);
	aw_cm_id_enter(cm, AW_CM_ENDED);
	aw_unlock(&cm->lock);
	destroy_listeners(cm);
	aw_cm_ud_stop(cm);
	if (conn && state == AW_CM_REQUESTED)
		aw_conn_reject(conn, NULL, 0);
	if (conn)
		aw_conn_destroy(conn);
	aw_cm_stream_release(cm);
	aw_table_remove_wait(&ids, cm->handle);
	aw_cm_stream_close(cm);
	if (cm->fd >= 0)
		close(cm->fd);
}

/*
 * Drops the events that the program has not taken, and with a Request's event the id that it
 * brings.
 */
static void drop_events(struct aw_cm_id *cm)
{
	struct aw_cm_event_list list = TAILQ_HEAD_INITIALIZER(list);
	struct aw_cm_event *ev;

	aw_cm_channel_remove(cm->id.channel, cm, &list);
	while ((ev = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, ev, entry);
		if (ev->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			aw_cm_id_destroy(aw_cm_id_of(ev->event.id));
		free(ev);
	}
}

bool aw_cm_id_inherited(const struct aw_cm_id *cm)
{
	return cm->process != aw_fork_generation();
}

/* Called when no other thread finds the id any more. */
static void release(struct aw_cm_id *cm)
{
	if (cm->sync)
		rdma_destroy_event_channel(cm->id.channel);
	if (cm->engine_held)
		aw_engine_put();
	free(cm->ep_attr);
	free(cm->ep_data);
	free(cm->spare);
	aw_cm_ud_free(cm);
	free(cm);
}

/*
 * Ends the parent's id in the child: nothing is sent to its peer, and there are no callbacks to
 * wait for.
 */
static void drop_inherited(struct aw_cm_id *cm)
{
	destroy_listeners(cm);
	aw_cm_ud_drop_inherited(cm);
	if (cm->conn)
		aw_conn_destroy(cm->conn);
	aw_table_remove(&ids, cm->handle);
	if (cm->fd >= 0)
		close(cm->fd);
	release(cm);
}

void aw_cm_id_destroy(struct aw_cm_id *cm)
{
	if (aw_cm_id_inherited(cm)) {
		drop_inherited(cm);
		return;
	}
	stop_net(cm);
	drop_events(cm);
	aw_cm_id_release_event(cm);
	aw_cm_event_wait_acked(cm);
	pthread_cond_destroy(&cm->changed);
	pthread_mutex_destroy(&cm->lock);
	release(cm);
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

void aw_cm_id_release_event(struct aw_cm_id *cm)
{
	struct rdma_cm_event *event = cm->id.event;

	cm->id.event = NULL;
	if (cm->sync && event)
		rdma_ack_cm_event(event);
}

int aw_cm_id_complete(struct aw_cm_id *cm)
{
	if (!cm->sync)
		return 0;
	aw_cm_id_release_event(cm);
	int ret = rdma_get_cm_event(cm->id.channel, &cm->id.event);

	if (ret)
		return ret;
	if (cm->id.event->event == RDMA_CM_EVENT_REJECTED)
		return aw_cm_fail(ECONNREFUSED);
	/* In the UDP port space the status of a refusal is InfiniBand's, above zero. */
	return aw_cm_fail(cm->id.event->status > 0 ? ECONNREFUSED : -cm->id.event->status);
}

static bool has_port_space(enum rdma_port_space ps)
{
	if (ps == RDMA_PS_TCP || (ps == RDMA_PS_UDP && aw_persona_is_roce()))
		return true;
	aw_log(AW_LOG_ERROR,
	       "rdma_create_id: port space 0x%x refused: an iwarp device has RDMA_PS_TCP (0x106) alone; the "
	       "roce persona has RDMA_PS_UDP (0x111), too (both ends: anywarp run --persona roce)",
	       (unsigned int)ps);
	return false;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id)
		return aw_cm_fail(EINVAL);
	if (!has_port_space(ps))
		return aw_cm_fail(EPROTONOSUPPORT);
	struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();

	if (!channel && !own)
		return -1;
	struct aw_cm_id *cm;
	int err = aw_cm_id_create(channel ? channel : own, context, &cm);

	if (!err && ps == RDMA_PS_UDP) {
		err = aw_cm_ud_create(cm);
		if (err)
			aw_cm_id_destroy(cm);
	}
	if (err) {
		if (own)
			rdma_destroy_event_channel(own);
		return aw_cm_fail(err);
	}
	cm->sync = own != NULL;
	*id = &cm->id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id)
		return aw_cm_fail(EINVAL);
	aw_cm_id_destroy(aw_cm_id_of(id));
	return 0;
}
