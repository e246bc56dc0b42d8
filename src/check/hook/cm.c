// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_cm: ids, event channels, and the events. Its calls return -1 and set errno.
#include "check/model/cm.h"
#include "check/base/marks.h"
#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/hook/hook.h"
#include "check/hook/vary.h"
#include "check/model/qp.h"
#include "check/report/report.h"

#include <errno.h>
#include <time.h>

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = NULL;

	aw_inside_enter();
	if (aw_hook_may("rdma_create_event_channel"))
		channel = aw_real()->rdma_create_event_channel();
	if (channel)
		aw_plain_add(AW_KIND_CM_CHANNEL, channel, NULL);
	else
		aw_hook_failed("rdma_create_event_channel", errno);
	aw_inside_leave();
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct aw_object *object;

	aw_inside_enter();
	object = aw_object_get(channel, AW_KIND_CM_CHANNEL);
	if (!object || aw_object_goes(object))
		aw_real()->rdma_destroy_event_channel(channel);
	aw_object_put(object);
	aw_inside_leave();
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_create_id"))
		rc = aw_real()->rdma_create_id(channel, id, context, ps);
	if (rc == 0) {
		aw_mark_given(id, sizeof(*id));
		aw_cm_id_add(*id);
	}
	return aw_hook_end_minus("rdma_create_id", rc);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct aw_object *object;
	int rc = -1;

	aw_inside_enter();
	object = aw_object_get(id, AW_KIND_CM_ID);
	if (aw_destroy_begin("rdma_destroy_id", object)) {
		if (object)
			aw_cm_events_settle(object, aw_real()->rdma_ack_cm_event);
		rc = aw_real()->rdma_destroy_id(id);
		aw_destroy_end("rdma_destroy_id", object, rc ? errno : 0);
	}
	aw_object_put(object);
	aw_inside_leave();
	return rc;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_create_ep"))
		rc = aw_real()->rdma_create_ep(id, res, pd, attr);
	if (rc == 0)
		aw_mark_given(id, sizeof(*id));
	return aw_hook_end_minus("rdma_create_ep", rc);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	aw_inside_enter();
	return aw_hook_end_minus("rdma_bind_addr", aw_hook_may("rdma_bind_addr")
							   ? aw_real()->rdma_bind_addr(id, addr)
							   : -1);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_resolve_addr"))
		rc = aw_real()->rdma_resolve_addr(id, src_addr, dst_addr, timeout_ms);
	return aw_hook_end_minus("rdma_resolve_addr", rc);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_resolve_route"))
		rc = aw_real()->rdma_resolve_route(id, timeout_ms);
	return aw_hook_end_minus("rdma_resolve_route", rc);
}

/* The QP that the call has made is the program's to destroy. */
static void qp_is_outer(const struct rdma_cm_id *id)
{
	struct aw_object *object = aw_object_get(id->qp, AW_KIND_QP);

	if (object)
		object->is_inner = false;
	aw_object_put(object);
}

static void create_qp_failed(const struct rdma_cm_id *id, const struct ibv_pd *pd,
			     const struct ibv_qp_init_attr *attr)
{
	struct aw_context_shadow *device = id->verbs ? aw_context_get(id->verbs) : NULL;
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	aw_explain_rdma_create_qp(id, pd, attr, device ? &device->attr : NULL, err, why);
	aw_hook_explain("rdma_create_qp", why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_create_qp"))
		rc = aw_real()->rdma_create_qp(id, pd, attr);
	if (rc == 0)
		qp_is_outer(id);
	else
		create_qp_failed(id, pd, attr);
	aw_inside_leave();
	return rc;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_create_qp_ex"))
		rc = aw_real()->rdma_create_qp_ex(id, attr);
	if (rc == 0)
		qp_is_outer(id);
	return aw_hook_end_minus("rdma_create_qp_ex", rc);
}

/* Tells an ORD or IRD beyond the device's; 255 asks for the device's own. */
static void depths_judge(const struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct aw_context_shadow *device = param && id->verbs ? aw_context_get(id->verbs) : NULL;
	const struct aw_report report = { .rule = AW_RULE_RD_ATOMIC_EXCEEDED, .object = "" };

	if (!device)
		return;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > device->attr.max_qp_init_rd_atom)
		aw_report(
			&report,
			"initiator_depth (ORD) is %u, beyond max_qp_init_rd_atom %d of the device",
			param->initiator_depth, device->attr.max_qp_init_rd_atom);
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > device->attr.max_qp_rd_atom)
		aw_report(&report,
			  "responder_resources (IRD) is %u, beyond max_qp_rd_atom %d of the device",
			  param->responder_resources, device->attr.max_qp_rd_atom);
	aw_object_put(&device->object);
}

static int connect_done(const char *call, const struct rdma_cm_id *id,
			const struct rdma_conn_param *param, int rc)
{
	struct aw_context_shadow *device = id->verbs ? aw_context_get(id->verbs) : NULL;
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	if (rc) {
		aw_explain_connect(call, param, device ? &device->attr : NULL, err, why);
		aw_hook_explain(call, why);
	}
	aw_object_put(device ? &device->object : NULL);
	aw_inside_leave();
	errno = err;
	return rc;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	aw_inside_enter();
	depths_judge(id, param);
	return connect_done("rdma_connect", id, param,
			    aw_hook_may("rdma_connect") ? aw_real()->rdma_connect(id, param) : -1);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	aw_inside_enter();
	return aw_hook_end_minus("rdma_listen", aw_hook_may("rdma_listen")
							? aw_real()->rdma_listen(id, backlog)
							: -1);
}

/* The id's QP, or the one that the program has connected itself and names; the caller puts it. NULL: neither is known. */
static struct aw_qp_shadow *accepting_qp(const struct rdma_cm_id *id,
					 const struct rdma_conn_param *param)
{
	if (id->qp)
		return aw_qp_get(id->qp);
	if (!param || !id->verbs)
		return NULL;
	return (struct aw_qp_shadow *)aw_object_get_by_number(id->verbs, AW_KIND_QP, param->qp_num);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct aw_qp_shadow *qp = NULL;
	int rc = -1;

	aw_inside_enter();
	depths_judge(id, param);
	if (aw_hook_like() && aw_hook_like()->initiator_first)
		qp = accepting_qp(id, param);
	if (qp)
		aw_qp_accepted(qp);
	if (aw_hook_may("rdma_accept"))
		rc = aw_real()->rdma_accept(id, param);
	if (rc && qp)
		aw_qp_accept_failed(qp);
	aw_object_put(qp ? &qp->object : NULL);
	return connect_done("rdma_accept", id, param, rc);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_reject"))
		rc = aw_real()->rdma_reject(id, private_data, private_data_len);
	return aw_hook_end_minus("rdma_reject", rc);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	aw_inside_enter();
	return aw_hook_end_minus("rdma_disconnect", aw_hook_may("rdma_disconnect")
							    ? aw_real()->rdma_disconnect(id)
							    : -1);
}

static void event_explain(const struct rdma_cm_event *event)
{
	char why[AW_EXPLAIN_MAX];

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		aw_explain_cm_event(event->event, event->status, why);
		aw_hook_explain(rdma_event_str(event->event), why);
		break;
	default:
		break;
	}
}

/* Sleeps for nanoseconds, signals or not. */
static void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000) };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* The plan of faults may put another event in its place. One that is late keeps the thread that got it, as those behind it are late as well. */
static void event_plan(struct rdma_cm_event *event)
{
	const uint64_t late_ns = aw_fault_cm_late(event->event);

	if (aw_fault_cm_event(&event->event, &event->status))
		aw_hook_by_plan();
	if (late_ns)
		sleep_ns(late_ns);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_get_cm_event"))
		rc = aw_real()->rdma_get_cm_event(channel, event);
	else
		aw_hook_failed("rdma_get_cm_event", errno);
	if (rc == 0) {
		aw_mark_given(event, sizeof(*event));
		if (aw_fault_planned())
			event_plan(*event);
		if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			aw_cm_id_add((*event)->id);
		aw_cm_event_got(*event);
		event_explain(*event);
	}
	aw_inside_leave();
	return rc;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int rc = 0;

	aw_inside_enter();
	if (aw_cm_event_acked(event))
		rc = aw_real()->rdma_ack_cm_event(event);
	aw_inside_leave();
	return rc;
}
