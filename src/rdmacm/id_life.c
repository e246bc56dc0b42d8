// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_create_id, rdma_destroy_id and what lies between for an id without a channel of the program: its calls wait for their event.
#include "rdmacm/id.h"

#include "base/log.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/progress/engine.h"
#include "net/tls/want.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/stream.h"
#include "rdmacm/timer.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
	aw_cm_id_withdraw(cm);
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

/* Called when no other thread finds the id any more. */
static void release(struct aw_cm_id *cm)
{
	if (cm->sync)
		rdma_destroy_event_channel(cm->id.channel);
	if (cm->engine_held)
		aw_engine_put();
	rdma_freeaddrinfo(cm->resolved);
	free(cm->ep_attr);
	free(cm->ep_data);
	free(cm->spare);
	aw_tls_identity_put(cm->identity);
	aw_cm_ud_free(cm);
	free(cm);
}

void aw_cm_id_destroy(struct aw_cm_id *cm)
{
	/* The parent's id in the child: nothing is sent to its peer, and there are no callbacks to wait for. */
	if (aw_cm_id_inherited(cm)) {
		destroy_listeners(cm);
		aw_cm_ud_drop_inherited(cm);
		if (cm->conn)
			aw_conn_destroy(cm->conn);
		aw_cm_id_withdraw(cm);
		if (cm->fd >= 0)
			close(cm->fd);
		release(cm);
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

/* RDMA_PS_IB has the QPs that have no port space of their own. */
static bool has_port_space(enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	if (ps == RDMA_PS_TCP)
		return qp_type == IBV_QPT_RC;
	if (!aw_persona_is_roce())
		return false;
	if (ps == RDMA_PS_UDP)
		return qp_type == IBV_QPT_UD;
	return ps == RDMA_PS_IB && (qp_type == IBV_QPT_RC || qp_type == IBV_QPT_XRC_SEND ||
				    qp_type == IBV_QPT_XRC_RECV);
}

int aw_cm_id_make(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		  enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	if (!id)
		return aw_cm_fail(EINVAL);
	if (!has_port_space(ps, qp_type)) {
		aw_log(AW_LOG_ERROR,
		       "rdma_create_id: port space 0x%x refused, for qps of type %u: an iwarp device has RDMA_PS_TCP "
		       "(0x106) with rc (2) alone; the roce persona has RDMA_PS_UDP (0x111) with ud (4), and RDMA_PS_IB "
		       "(0x13f) with rc and xrc (9, 10), too (both ends: anywarp run --persona roce)",
		       (unsigned int)ps, (unsigned int)qp_type);
		return aw_cm_fail(EPROTONOSUPPORT);
	}
	int err = ps == RDMA_PS_UDP ? aw_tls_refuse("rdma_create_id: RDMA_PS_UDP") : 0;

	if (err)
		return aw_cm_fail(err);
	struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();

	if (!channel && !own)
		return -1;
	struct aw_cm_id *cm;

	err = aw_cm_id_create(channel ? channel : own, context, &cm);

	if (!err && ps == RDMA_PS_UDP) {
		err = aw_cm_ud_create(cm);
		if (err)
			aw_cm_id_destroy(cm);
	} else if (!err) {
		cm->id.ps = ps;
		cm->id.qp_type = qp_type;
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

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	return aw_cm_id_make(channel, id, context, ps, ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id)
		return aw_cm_fail(EINVAL);
	aw_cm_id_destroy(aw_cm_id_of(id));
	return 0;
}
