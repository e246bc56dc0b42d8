// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_listen. The backlog bounds the Requests that the program has not taken yet, as in Linux's
// rdma_cm; the next one is rejected.
#include "rdmacm/listen.h"

#include "base/log.h"
#include "net/base/bounds.h"
#include "net/base/io_now.h"
#include "net/base/policy_env.h"
#include "rdmacm/address.h"
#include "rdmacm/bind.h"
#include "rdmacm/devices.h"
#include "rdmacm/fail.h"
#include "rdmacm/socket.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

#define BACKLOG_MAX 1024

/* A Request to a datagram service holds no file. */
static uint32_t most_requests(const struct aw_cm_id *listener)
{
	uint32_t files = listener->ud ? UINT32_MAX : aw_listener_files(AW_FILES_REQUESTS);

	return files < listener->backlog ? files : listener->backlog;
}

bool aw_cm_listen_reserve(struct aw_cm_id *listener)
{
	aw_lock(&listener->lock);
	/* The limit of the files is asked for only where it may matter. */
	bool few = listener->requests < AW_FILES_LEAST && listener->requests < listener->backlog;
	bool room = listener->state == AW_CM_LISTENING &&
		    (few || listener->requests < most_requests(listener));

	if (room)
		listener->requests++;
	aw_unlock(&listener->lock);
	return room;
}

void aw_cm_listen_unreserve(struct aw_cm_id *listener)
{
	aw_lock(&listener->lock);
	listener->requests--;
	aw_unlock(&listener->lock);
}

/* The id has no channel until the program takes it. On failure conn is left alone. */
static struct aw_cm_id *make_id(struct aw_cm_id *listener, struct aw_conn *conn)
{
	struct aw_cm_id *cm;

	if (aw_cm_id_create(NULL, listener->id.context, &cm) != 0)
		return NULL;
	cm->id.ps = listener->id.ps;
	cm->id.qp_type = listener->id.qp_type;
	if (aw_cm_id_hold_engine(cm) != 0 || aw_cm_device_set(&cm->id) != 0) {
		aw_cm_id_destroy(cm);
		return NULL;
	}
	const struct aw_conn_info *info = aw_conn_info(conn);

	aw_address_set_ends(&cm->id.route.addr, &info->local, &info->peer);
	aw_lock(&cm->lock);
	cm->identity = aw_tls_identity_get(info->identity);
	aw_unlock(&cm->lock);
	aw_cm_id_advance(cm, AW_CM_IDLE, AW_CM_REQUESTED);
	return cm;
}

/* A peer that goes away before accept is noticed by accept. */
static void on_lost(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	(void)arg;
	(void)conn;
	(void)event;
}

bool aw_cm_listen_offer(struct aw_cm_id *listener, struct aw_conn *conn)
{
	struct aw_cm_event *ev = aw_cm_event_create(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct aw_cm_id *cm = ev ? make_id(listener, conn) : NULL;

	if (!cm) {
		aw_cm_event_destroy(ev);
		return false;
	}
	aw_conn_listen_to(conn, on_lost, NULL);
	cm->conn = conn;
	ev->event.id = &cm->id;
	ev->event.listen_id = &listener->id;
	aw_cm_event_describe(ev, &aw_conn_info(conn)->result);
	aw_lock(&listener->lock);
	aw_cm_event_raise(ev);
	aw_unlock(&listener->lock);
	return true;
}

static void on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct aw_cm_id *listener = aw_cm_id_get(arg);
	bool reserved = listener && aw_cm_listen_reserve(listener);
	bool offered = reserved && aw_cm_listen_offer(listener, conn);

	(void)event;
	if (listener && !reserved)
		aw_log(AW_LOG_WARN,
		       "connection request rejected: %u wait for the program already: raise the "
		       "backlog of rdma_listen, or accept faster",
		       most_requests(listener));
	if (reserved && !offered)
		aw_cm_listen_unreserve(listener);
	if (!offered) {
		aw_conn_reject(conn, NULL, 0);
		aw_conn_destroy(conn);
	}
	if (listener)
		aw_cm_id_put(listener);
}

int aw_cm_listen_hand_over(struct aw_cm_event *ev, struct rdma_event_channel *channel)
{
	struct aw_cm_id *cm = aw_cm_id_of(ev->event.id);
	struct aw_cm_id *listener = ev->owner;

	aw_lock(&listener->lock);
	bool sync = listener->sync;

	listener->requests--;
	aw_unlock(&listener->lock);
	cm->id.channel = sync ? rdma_create_event_channel() : channel;
	cm->sync = sync && cm->id.channel;
	if (cm->id.channel)
		return 0;
	int err = errno;

	aw_cm_id_destroy(cm);
	rdma_ack_cm_event(&ev->event);
	return err;
}

static int start(struct aw_cm_id *cm)
{
	struct aw_mpa_local local = {
		.ird = AW_RD_MAX,
		.ord = AW_RD_MAX,
	};
	struct aw_listener *listener;
	int err = aw_cm_socket_match_families(cm);

	if (err)
		return err;
	if (cm->ud)
		return aw_cm_ud_listen(cm);
	aw_cm_socket_set_reuse(cm->fd, true);
	err = aw_policy_local(&local);
	/* The program's backlog counts Requests; silent peers in TCP's backlog must not use it up. */
	if (!err)
		err = aw_listener_create(cm->fd, SOMAXCONN, &local, on_request, aw_cm_id_arg(cm),
					 &listener);
	if (err) {
		aw_cm_socket_set_reuse(cm->fd, cm->reuse_addr);
		return err;
	}
	cm->fd = -1;
	cm->listener = listener;
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	struct sockaddr_storage any;
	int err = 0;

	aw_address_wildcard(AF_INET, &any);
	if (aw_cm_id_state(cm) == AW_CM_IDLE)
		err = aw_cm_bind(cm, (struct sockaddr *)&any);
	if (!err)
		err = aw_cm_id_hold_engine(cm);
	if (err)
		return aw_cm_fail(err);
	if (!aw_cm_id_advance(cm, AW_CM_BOUND, AW_CM_LISTENING))
		return aw_cm_fail(EINVAL);
	cm->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (uint32_t)backlog : BACKLOG_MAX;
	err = start(cm);
	if (err)
		aw_cm_id_advance(cm, AW_CM_LISTENING, AW_CM_BOUND);
	return aw_cm_fail(err);
}
