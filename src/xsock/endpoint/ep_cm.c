// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connection set-up: from an address, a socket or a Request to an established connection, one
// rdma_cm event at a time;
// and the connection's end.
#include "xsock/endpoint/ep_impl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define RESOLVE_MS 30000
#define DEPTH 8 /* RDMA Reads in progress, each way */

typedef int extension_fn(struct rdma_cm_id *id, int fd);

void *aw_xs_cm_extension(const char *name)
{
	void *cm = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = cm ? dlsym(cm, name) : NULL;

	if (cm)
		dlclose(cm);
	return function;
}

bool aw_xs_ep_takes_sockets(void)
{
	return aw_xs_cm_extension("anywarp_cm_initiate") &&
	       aw_xs_cm_extension("anywarp_cm_respond");
}

void aw_xs_ep_end(struct aw_xs_ep *ep, int error)
{
	if (error)
		aw_xs_stream_fail(&ep->stream, -error);
	else
		aw_xs_stream_disconnected(&ep->stream);
	if (ep->phase != AW_XS_PHASE_OVER)
		ep->error = -ep->stream.error;
	ep->phase = AW_XS_PHASE_OVER;
	ep->changes++;
	ep->needs_nudge = true;
}

static struct rdma_event_channel *make_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (channel)
		fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	return channel;
}

/*
 * Makes an id, and the channel if there is none. Returns 0 or a negative errno; aw_xs_ep_free()
 * frees what was made.
 */
static int make_id(struct aw_xs_ep *ep, struct rdma_cm_id **id) AW_REQUIRES(ep->lock)
{
	if (!ep->events)
		ep->events = make_channel();
	if (!ep->events || rdma_create_id(ep->events, id, ep, RDMA_PS_TCP) != 0)
		return -errno;
	return 0;
}

static struct rdma_conn_param *fill_param(struct aw_xs_ep *ep, struct rdma_conn_param *param,
					  uint8_t *hello) AW_REQUIRES(ep->lock)
{
	aw_xs_stream_hello(&ep->stream, hello);
	*param = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = AW_XS_HELLO_LEN,
		.responder_resources = DEPTH,
		.initiator_depth = DEPTH,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	return param;
}

_Static_assert(AW_XS_TICKET_AT == AW_XS_HELLO_LEN, "the ticket is behind the hello");

static int send_request(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	struct rdma_conn_param param;
	uint8_t hello[AW_XS_HELLO_LEN + AW_XS_TICKET_LEN];
	int err = aw_xs_ep_qp_create(ep);

	if (err)
		return err;
	ep->phase = AW_XS_PHASE_REPLY;
	fill_param(ep, &param, hello);
	if (ep->has_ticket) {
		memcpy(hello + AW_XS_TICKET_AT, ep->ticket, AW_XS_TICKET_LEN);
		param.private_data_len = sizeof(hello);
	}
	return rdma_connect(ep->id, &param) ? -errno : 0;
}

void aw_xs_ep_set_ticket(struct aw_xs_ep *ep, const uint8_t ticket[AW_XS_TICKET_LEN])
{
	pthread_mutex_lock(&ep->lock);
	memcpy(ep->ticket, ticket, AW_XS_TICKET_LEN);
	ep->has_ticket = true;
	pthread_mutex_unlock(&ep->lock);
}

size_t aw_xs_ep_refusal(struct aw_xs_ep *ep, void *bytes, size_t max)
{
	size_t len;

	pthread_mutex_lock(&ep->lock);
	len = ep->refusal_len < max ? ep->refusal_len : max;
	memcpy(bytes, ep->refusal, len);
	pthread_mutex_unlock(&ep->lock);
	return len;
}

static int send_reply(struct aw_xs_ep *ep, const struct rdma_conn_param *request)
	AW_REQUIRES(ep->lock)
{
	struct rdma_conn_param param;
	uint8_t hello[AW_XS_HELLO_LEN];
	int err = aw_xs_stream_meet(&ep->stream, request->private_data, request->private_data_len);

	if (!err)
		err = aw_xs_ep_qp_create(ep);
	if (err) {
		rdma_reject(ep->id, NULL, 0);
		return err;
	}
	fill_param(ep, &param, hello);
	if (param.responder_resources > request->initiator_depth)
		param.responder_resources = request->initiator_depth;
	if (param.initiator_depth > request->responder_resources)
		param.initiator_depth = request->responder_resources;
	ep->phase = AW_XS_PHASE_REPLY;
	return rdma_accept(ep->id, &param) ? -errno : 0;
}

static int on_established(struct aw_xs_ep *ep, const struct rdma_conn_param *reply)
	AW_REQUIRES(ep->lock)
{
	int err = 0;

	if (!ep->stream.met)
		err = aw_xs_stream_meet(&ep->stream, reply->private_data, reply->private_data_len);
	if (err) {
		rdma_disconnect(ep->id);
		return err;
	}
	aw_xs_stream_open(&ep->stream);
	ep->phase = AW_XS_PHASE_UP;
	ep->changes++;
	aw_xs_ep_pump(ep, 0);
	return 0;
}

/*
 * Returns the errno of a failed set-up. status is a negative errno, or a code of another transport.
 */
static int errno_of_event(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	if (event->status < 0 && event->status > -4096)
		return -event->status;
	return event->event == RDMA_CM_EVENT_UNREACHABLE ? ETIMEDOUT : ECONNREFUSED;
}

static int on_event(struct aw_xs_ep *ep, const struct rdma_cm_event *event) AW_REQUIRES(ep->lock)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ep->phase = AW_XS_PHASE_ROUTE;
		return rdma_resolve_route(ep->id, RESOLVE_MS) ? -errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return send_request(ep);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (ep->phase != AW_XS_PHASE_REQUEST || ep->id) {
			rdma_destroy_id(event->id);
			return 0;
		}
		ep->id = event->id;
		return send_reply(ep, &event->param.conn);
	case RDMA_CM_EVENT_ESTABLISHED:
		return on_established(ep, &event->param.conn);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return -errno_of_event(event);
	case RDMA_CM_EVENT_REJECTED:
		ep->refusal_len = event->param.conn.private_data_len;
		memcpy(ep->refusal, event->param.conn.private_data, ep->refusal_len);
		return -errno_of_event(event);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_DISCONNECTED:
		/* The CQ has the messages that came before the end. */
		aw_xs_ep_progress(ep);
		aw_xs_ep_end(ep, 0);
		return 0;
	default:
		return 0;
	}
}

int aw_xs_ep_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int cancel_state, rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	rc = rdma_get_cm_event(channel, event);
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}

/* Copies each event, since it is acknowledged before its id may be destroyed. */
void aw_xs_ep_cm_progress(struct aw_xs_ep *ep)
{
	uint8_t private_data[UINT8_MAX];
	struct rdma_cm_event *event, copy;
	int err;

	while (ep->events && aw_xs_ep_cm_event(ep->events, &event) == 0) {
		copy = *event;
		if (event->param.conn.private_data)
			memcpy(private_data, event->param.conn.private_data,
			       event->param.conn.private_data_len);
		copy.param.conn.private_data = private_data;
		rdma_ack_cm_event(event);
		ep->needs_nudge = true;
		err = on_event(ep, &copy);
		if (err)
			aw_xs_ep_end(ep, -err);
	}
}

/*
 * Ends a call that has begun set-up, and unlocks the endpoint. Set-up goes on by events, some of
 * which have come already.
 */
static int finish_begin(struct aw_xs_ep *ep, int err) AW_RELEASE(ep->lock)
{
	if (err) {
		aw_xs_ep_end(ep, -err);
		ep->error = 0;
	} else {
		aw_xs_ep_cm_progress(ep);
	}
	aw_xs_ep_unlock(ep);
	return err;
}

/* Locks the endpoint and begins its only set-up. Returns 0 with the lock held, or -EISCONN. */
static int begin_setup(struct aw_xs_ep *ep, enum aw_xs_phase phase) AW_TRY_ACQUIRE(0, ep->lock)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->phase != AW_XS_PHASE_IDLE) {
		pthread_mutex_unlock(&ep->lock);
		return -EISCONN;
	}
	ep->phase = phase;
	return 0;
}

int aw_xs_ep_connect(struct aw_xs_ep *ep, const struct sockaddr *src, const struct sockaddr *dst)
{
	int err = begin_setup(ep, AW_XS_PHASE_ADDR);

	if (err)
		return err;
	err = make_id(ep, &ep->id);
	if (!err && rdma_resolve_addr(ep->id, (struct sockaddr *)src, (struct sockaddr *)dst,
				      RESOLVE_MS) != 0)
		err = -errno;
	return finish_begin(ep, err);
}

int aw_xs_ep_initiate(struct aw_xs_ep *ep, int fd)
{
	extension_fn *initiate = (extension_fn *)aw_xs_cm_extension("anywarp_cm_initiate");
	int err;

	if (!initiate)
		return -EOPNOTSUPP;
	err = begin_setup(ep, AW_XS_PHASE_ROUTE);
	if (err)
		return err;
	err = make_id(ep, &ep->id);
	if (!err && initiate(ep->id, fd) != 0)
		err = -errno;
	if (err)
		return finish_begin(ep, err);
	err = send_request(ep);
	if (err)
		/* the endpoint has taken fd: a later error is aw_xs_ep_error's */
		aw_xs_ep_end(ep, -err);
	return finish_begin(ep, 0);
}

int aw_xs_ep_respond(struct aw_xs_ep *ep, int fd)
{
	extension_fn *respond = (extension_fn *)aw_xs_cm_extension("anywarp_cm_respond");
	int err;

	if (!respond)
		return -EOPNOTSUPP;
	err = begin_setup(ep, AW_XS_PHASE_REQUEST);
	if (err)
		return err;
	err = make_id(ep, &ep->listen_id);
	if (!err && respond(ep->listen_id, fd) != 0)
		err = -errno;
	return finish_begin(ep, err);
}

int aw_xs_ep_accept(struct aw_xs_ep *ep, struct rdma_cm_event *request)
{
	int err = begin_setup(ep, AW_XS_PHASE_REQUEST);

	if (err)
		return err;
	/* The id moves from the listener's channel to the endpoint's own. */
	ep->events = make_channel();
	if (!ep->events || rdma_migrate_id(request->id, ep->events) != 0) {
		err = -errno;
		rdma_reject(request->id, NULL, 0);
		rdma_destroy_id(request->id);
		return finish_begin(ep, err);
	}
	ep->id = request->id;
	return finish_begin(ep, send_reply(ep, &request->param.conn));
}
