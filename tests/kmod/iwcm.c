// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "iwcm.h"

#include "kmod/cm/cm.h"
#include "kmod/qp/qp.h"
#include "kmod/verbs/verbs.h"

#include "fibers.h"

#include <linux/random.h>

#define ACTIVE_ROOM 4
#define PASSIVE_ROOM 3

struct cm_id *cm_ids;
bool cm_starves;
int (*cm_handler)(struct cm_id *id, const struct iw_cm_event *event);

static bool thread_busy; /* the manager has one thread for all events */

static struct cm_id *cm_of(struct iw_cm_id *id)
{
	return container_of(id, struct cm_id, id);
}

static void cm_free(struct cm_id *id)
{
	struct cm_id **at = &cm_ids;

	KSHIM_CHECK(id->count == 0 && !id->qp);
	/* A call that succeeded has its event, and what began has its end. */
	KSHIM_CHECK(!id->sent || id->replies == 1);
	KSHIM_CHECK(id->over || id->replies + id->established == 0);
	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	free(id);
}

static void cm_put(struct cm_id *id)
{
	KSHIM_CHECK(id->refs > 0);
	if (--id->refs == 0)
		cm_free(id);
}

static void id_add_ref(struct iw_cm_id *base)
{
	struct cm_id *id = cm_of(base);

	KSHIM_CHECK(id->refs > 0);
	id->refs++;
}

static void id_rem_ref(struct iw_cm_id *base)
{
	cm_put(cm_of(base));
}

static void qp_modify(struct ib_qp *qp, enum ib_qp_state to)
{
	struct ib_qp_attr attr = { .qp_state = to };

	awk_qp_modify(qp, &attr, IB_QP_STATE, NULL);
}

/* The QP is the manager's no longer. */
static void drop_qp(struct cm_id *id)
{
	struct ib_qp *qp = id->qp;

	id->qp = NULL;
	if (qp)
		awk_qp_rem_ref(qp);
}

/* What each event must follow, whether the program hears of it or not. */
static void check_order(struct cm_id *id, const struct iw_cm_event *event)
{
	KSHIM_CHECK(!id->over);
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		KSHIM_CHECK(event->status == 0 && !id->initiator && id->room == 0);
		break;
	case IW_CM_EVENT_CONNECT_REPLY:
		KSHIM_CHECK(id->initiator && ++id->replies == 1);
		id->over = event->status != 0;
		break;
	case IW_CM_EVENT_ESTABLISHED:
		KSHIM_CHECK(!id->initiator && ++id->established == 1 && event->status == 0);
		break;
	case IW_CM_EVENT_DISCONNECT:
		KSHIM_CHECK(id->replies + id->established == 1 && ++id->disconnects == 1);
		break;
	case IW_CM_EVENT_CLOSE:
		KSHIM_CHECK(id->replies + id->established == 1 && ++id->closes == 1);
		id->over = true;
		break;
	}
}

static struct cm_id *child_of(struct cm_id *listener, const struct iw_cm_event *event)
{
	struct cm_id *id = cm_create(listener->id.device);

	id->id.provider_data = event->provider_data;
	id->id.m_local_addr = event->local_addr;
	id->id.m_remote_addr = event->remote_addr;
	id->state = CM_CONN_RECV;
	return id;
}

static void handle_request(struct cm_id *listener, const struct iw_cm_event *event)
{
	struct cm_id *id = child_of(listener, event);

	if (listener->state == CM_LISTEN) {
		id->room = PASSIVE_ROOM;
		if (cm_handler(id, event) == 0)
			return;
	}
	cm_reject(id, NULL, 0);
	cm_destroy(id);
}

static int handle_reply(struct cm_id *id, const struct iw_cm_event *event)
{
	KSHIM_CHECK(id->state == CM_CONN_SENT);
	id->connect_waits = false;
	id->state = event->status ? CM_IDLE : CM_ESTABLISHED;
	if (event->status)
		drop_qp(id);
	return cm_handler(id, event);
}

static int handle_established(struct cm_id *id, const struct iw_cm_event *event)
{
	id->connect_waits = false;
	KSHIM_CHECK(id->state == CM_CONN_RECV);
	id->state = CM_ESTABLISHED;
	return cm_handler(id, event);
}

static int handle_close(struct cm_id *id, const struct iw_cm_event *event)
{
	bool told = id->state == CM_ESTABLISHED || id->state == CM_CLOSING;

	KSHIM_CHECK(told || id->state == CM_DESTROYING);
	if (told)
		id->state = CM_IDLE;
	drop_qp(id);
	return told ? cm_handler(id, event) : 0;
}

static int handle_event(struct cm_id *id, const struct iw_cm_event *event)
{
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		handle_request(id, event);
		return 0;
	case IW_CM_EVENT_CONNECT_REPLY:
		return handle_reply(id, event);
	case IW_CM_EVENT_ESTABLISHED:
		return handle_established(id, event);
	case IW_CM_EVENT_DISCONNECT:
		if (id->state == CM_ESTABLISHED)
			id->state = CM_CLOSING;
		return 0;
	case IW_CM_EVENT_CLOSE:
		return handle_close(id, event);
	}
	return 0;
}

static void id_end(struct cm_id *id);

/* The manager's thread, for all events of one id. Each has a reference. */
static void handle_events(void *arg)
{
	struct cm_id *id = arg;

	while (thread_busy)
		kshim_yield(true);
	thread_busy = true;
	id->handled = false; /* what comes now has a turn of its own */
	for (unsigned int left = id->count; left > 0; left--) {
		struct iw_cm_event event = id->events[0];
		u8 pd[256];

		memcpy(pd, id->private_data[0], sizeof(pd));
		event.private_data = pd;
		id->count--;
		memmove(&id->events[0], &id->events[1], id->count * sizeof(event));
		memmove(&id->private_data[0], &id->private_data[1], id->count * sizeof(pd));
		if (!id->drops && handle_event(id, &event)) {
			id_end(id);
			cm_put(id);
		}
		cm_put(id);
	}
	thread_busy = false;
}

/* The driver's call: any thread, no lock of the driver's that the program's calls would want. */
static int id_event(struct iw_cm_id *base, struct iw_cm_event *event)
{
	struct cm_id *id = cm_of(base);
	bool request = event->event == IW_CM_EVENT_CONNECT_REQUEST, copies;

	kshim_yield(false);
	KSHIM_CHECK(id->refs > 0);
	copies = event->private_data_len > 0 &&
		 (request || event->event == IW_CM_EVENT_CONNECT_REPLY);
	if (copies && cm_starves && get_random_u32() >> 29 == 0)
		return -ENOMEM;
	if (request && id->count == CM_EVENTS_MAX)
		return -ENOMEM;
	check_order(id, event);
	KSHIM_CHECK(request || id->count < id->room);
	if (copies)
		memcpy(id->private_data[id->count], event->private_data, event->private_data_len);
	id->events[id->count++] = *event;
	id->refs++;
	if (!id->handled)
		KSHIM_CHECK(fiber_start(handle_events, id));
	id->handled = true;
	kshim_yield(false);
	return 0;
}

struct cm_id *cm_create(struct ib_device *device)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	id->id.device = device;
	id->id.event_handler = id_event;
	id->id.add_ref = id_add_ref;
	id->id.rem_ref = id_rem_ref;
	id->refs = 1;
	id->next = cm_ids;
	cm_ids = id;
	return id;
}

static void wait_for_call(struct cm_id *id)
{
	while (id->connect_waits)
		kshim_yield(true);
}

static void id_end(struct cm_id *id)
{
	enum cm_state before;
	struct ib_qp *qp;

	wait_for_call(id);
	id->drops = true;
	qp = id->qp;
	id->qp = NULL;
	before = id->state;
	id->state = CM_DESTROYING;
	if (before == CM_LISTEN)
		awk_cm_ops.iw_destroy_listen(&id->id);
	else if (before == CM_ESTABLISHED)
		qp_modify(qp, IB_QPS_ERR);
	else if (before == CM_CONN_RECV)
		awk_cm_ops.iw_reject(&id->id, NULL, 0);
	else
		KSHIM_CHECK(before == CM_IDLE || before == CM_CLOSING);
	if (qp)
		awk_qp_rem_ref(qp);
}

void cm_destroy(struct cm_id *id)
{
	id_end(id);
	cm_put(id);
}

int cm_listen(struct cm_id *id, unsigned int backlog)
{
	int err;

	id->state = CM_LISTEN;
	err = awk_cm_ops.iw_create_listen(&id->id, backlog);
	if (err)
		id->state = CM_IDLE;
	return err;
}

/* The two calls that take a QP; an error of theirs precludes every event. */
static int call_with_qp(struct cm_id *id, struct iw_cm_conn_param *param,
			int (*call)(struct iw_cm_id *id, struct iw_cm_conn_param *param))
{
	enum cm_state before = id->state;
	int err;

	id->qp = awk_qp_get_ib(id->id.device, param->qpn);
	if (!id->qp) {
		id->connect_waits = false;
		return -EINVAL;
	}
	awk_qp_add_ref(id->qp);
	if (id->initiator)
		before = id->state = CM_CONN_SENT;
	err = call(&id->id, param);
	if (err) {
		KSHIM_CHECK(id->state == before && id->replies + id->established == 0);
		id->state = CM_IDLE;
		id->over = true;
		drop_qp(id);
		id->connect_waits = false;
	}
	return err;
}

int cm_connect(struct cm_id *id, struct iw_cm_conn_param *param)
{
	int err;

	if (id->state != CM_IDLE || id->room)
		return -EINVAL;
	id->connect_waits = true;
	id->initiator = true;
	id->room = ACTIVE_ROOM;
	err = call_with_qp(id, param, awk_cm_ops.iw_connect);
	id->sent = err == 0;
	return err;
}

int cm_accept(struct cm_id *id, struct iw_cm_conn_param *param)
{
	if (id->state != CM_CONN_RECV || id->connect_waits)
		return -EINVAL;
	id->connect_waits = true;
	return call_with_qp(id, param, awk_cm_ops.iw_accept);
}

int cm_reject(struct cm_id *id, const void *pd, u8 pd_len)
{
	int err;

	if (id->state != CM_CONN_RECV || id->connect_waits)
		return -EINVAL;
	id->connect_waits = true;
	id->state = CM_IDLE;
	id->over = true;
	err = awk_cm_ops.iw_reject(&id->id, pd, pd_len);
	id->connect_waits = false;
	return err;
}

/*
 * The reference stands for the program, which destroys no QP while its own call is about to use it: Linux's iw_cm takes
 * none.
 */
void cm_disconnect(struct cm_id *id, bool abrupt)
{
	struct ib_qp *qp;

	wait_for_call(id);
	if (id->state != CM_ESTABLISHED)
		return;
	id->state = CM_CLOSING;
	qp = id->qp;
	kref_get(&awk_qp_of(qp)->refs);
	qp_modify(qp, abrupt ? IB_QPS_ERR : IB_QPS_SQD);
	awk_qp_rem_ref(qp);
}

void cm_end(void)
{
	KSHIM_CHECK(!cm_ids);
}
