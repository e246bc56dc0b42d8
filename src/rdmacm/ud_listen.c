// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_listen in the UDP port space: a SIDR request for the service becomes an id and its event, as
// a connection's Request does. The client repeats a request that finds the backlog full.
#include "rdmacm/address.h"
#include "rdmacm/devices.h"
#include "rdmacm/listen.h"
#include "rdmacm/socket.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

#include <string.h>

static struct aw_cm_id *make_id(struct aw_cm_id *listener, const struct aw_sidr_request *request)
{
	struct aw_cm_id *cm;

	if (aw_cm_id_create(NULL, listener->id.context, &cm) != 0)
		return NULL;
	if (aw_cm_ud_create(cm) != 0 || aw_cm_id_hold_engine(cm) != 0 ||
	    aw_cm_device_set(&cm->id) != 0) {
		aw_cm_id_destroy(cm);
		return NULL;
	}
	aw_address_set_ends(&cm->id.route.addr, &request->local, &request->ends.peer);
	aw_cm_id_advance(cm, AW_CM_IDLE, AW_CM_REQUESTED);
	return cm;
}

static bool offer(struct aw_cm_id *listener, struct aw_sidr_request *request)
{
	struct aw_cm_event *ev = aw_cm_event_create(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct aw_cm_id *cm = ev ? make_id(listener, request) : NULL;

	if (!cm) {
		aw_cm_event_destroy(ev);
		return false;
	}
	cm->ud->request = request;
	ev->event.id = &cm->id;
	ev->event.listen_id = &listener->id;
	if (request->pd_len > 0) {
		memcpy(ev->private_data, request->pd, request->pd_len);
		ev->event.param.ud.private_data = ev->private_data;
		ev->event.param.ud.private_data_len = request->pd_len;
	}
	aw_lock(&listener->lock);
	aw_cm_event_raise(ev);
	aw_unlock(&listener->lock);
	return true;
}

static bool on_request(void *arg, struct aw_sidr_request *request)
{
	struct aw_cm_id *listener = aw_cm_id_get(arg);
	bool taken;

	if (!listener)
		return false;
	taken = aw_cm_listen_reserve(listener);
	if (taken && !offer(listener, request)) {
		aw_cm_listen_unreserve(listener);
		taken = false;
	}
	aw_cm_id_put(listener);
	return taken;
}

/* The last socket bound to a port gets its datagrams: as with Linux's rdma_cm, a listener shares its port with nobody. */
int aw_cm_ud_listen(struct aw_cm_id *cm)
{
	int err = aw_cm_socket_own_port(cm);

	if (err)
		return err;
	err = aw_sidr_listen(cm->fd, on_request, aw_cm_id_arg(cm), &cm->ud->service);
	if (err)
		cm->ud->service = NULL;
	else
		cm->fd = -1;
	return err;
}
