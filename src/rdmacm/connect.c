// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_connect: the initiator's start-up. Each start-up ends in exactly one event: ESTABLISHED,
// REJECTED, UNREACHABLE or CONNECT_ERROR, as Linux's rdma_cm gives them for iWARP.
#include "base/log.h"
#include "net/base/persona.h"
#include "net/base/policy_env.h"
#include "rdmacm/address.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"
#include "rdmacm/socket.h"
#include "rdmacm/stream.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

#include <string.h>
#include <unistd.h>

/* The InfiniBand Architecture Specification 12.6.7.2. */
#define REASON_SERVICE 8
#define REASON_CONSUMER 28

/* Ports that are tried where none is free, 3 us each. Where half of them have a connection to the destination, all fail once in 65536. */
#define SHARES_MAX 16

static void on_failed(struct aw_cm_id *cm, int err)
{
	enum rdma_cm_event_type event = RDMA_CM_EVENT_CONNECT_ERROR;
	int status = -err;

	if (err == ECONNREFUSED || err == ECONNRESET)
		event = RDMA_CM_EVENT_REJECTED;
	else if (err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH)
		event = RDMA_CM_EVENT_UNREACHABLE;
	/*
	 * In the roce persona REJECTED has the reason of InfiniBand's REJ, which is above zero: the peer's program,
	 * or nobody has the service ID.
	 */
	if (event == RDMA_CM_EVENT_REJECTED && aw_persona_is_roce())
		status = err == ECONNREFUSED ? REASON_SERVICE : REASON_CONSUMER;

	aw_lock(&cm->lock);
	if (cm->state == AW_CM_CONNECTING) {
		aw_cm_id_enter(cm, AW_CM_FAILED);
		aw_cm_event_tell(cm, event, status);
	}
	aw_unlock(&cm->lock);
}

static void on_rejected(struct aw_cm_id *cm, const struct aw_mpa_result *result)
{
	aw_lock(&cm->lock);
	if (cm->state == AW_CM_CONNECTING) {
		struct aw_cm_event *ev =
			aw_cm_event_create(cm, RDMA_CM_EVENT_REJECTED,
					   aw_persona_is_roce() ? REASON_CONSUMER : -ECONNREFUSED);

		aw_cm_id_enter(cm, AW_CM_FAILED);
		if (ev)
			aw_cm_event_describe(ev, result);
		aw_cm_event_raise(ev);
	}
	aw_unlock(&cm->lock);
}

/* Called when the QP has the socket. The caller holds the QP. */
static void on_attached(struct aw_cm_id *cm, const struct aw_conn_info *info)
{
	aw_lock(&cm->lock);
	cm->attached = true;
	if (cm->state == AW_CM_CONNECTING) {
		/*
		 * In the roce persona a program may create the QP without the id. It then moves the QP to RTS itself and
		 * gets CONNECT_RESPONSE, as on InfiniBand.
		 */
		bool responds = aw_persona_is_roce() && !aw_cm_qp_locked(cm);
		struct aw_cm_event *ev = aw_cm_event_create(
			cm, responds ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED,
			0);

		aw_address_copy(&cm->id.route.addr.src_storage,
				(const struct sockaddr *)&info->local);
		cm->identity = aw_tls_identity_get(info->identity);
		aw_cm_id_enter(cm, AW_CM_CONNECTED);
		if (ev)
			aw_cm_event_describe(ev, &info->result);
		aw_cm_stream_sync(cm);
		aw_cm_event_raise(ev);
		aw_cm_stream_settle(cm);
	}
	aw_unlock(&cm->lock);
}

static void on_accepted(struct aw_cm_id *cm, struct aw_conn *conn)
{
	struct aw_uqp *uqp = aw_cm_stream_hold(cm);
	int err = uqp ? aw_conn_attach(conn, uqp) : ECONNABORTED;

	if (err)
		on_failed(cm, err);
	else
		on_attached(cm, aw_conn_info(conn));
	if (uqp)
		aw_uqp_put(uqp);
}

static void on_conn(void *arg, struct aw_conn *conn, enum aw_conn_event event);

static int connect_from(struct aw_cm_id *cm, bool any_port, const struct aw_conn_ask *ask,
			struct aw_conn **conn)
{
	int fd;
	int err = aw_cm_socket_again(cm, &cm->id.route.addr.src_addr, any_port, &fd);

	if (err)
		return err;
	err = aw_conn_connect(fd, ask, on_conn, aw_cm_id_arg(cm), conn);
	if (err)
		close(fd);
	return err;
}

/*
 * RFC 6581 10: a responder that knows only revision 1 closes the connection on an enhanced Request. This end
 * then connects once more as it did, in case a listener was just closed, and then with revision 1. There is
 * no RTR then: this end has to send first, and the programs agree on IRD and ORD. A Reply with R is an
 * answer, and a time-out is no sign of revision 1, whose responder closes at once: after either this end does
 * not try again. False when the next connection could not be begun, and the failure before stands. Called on
 * the progress thread, so no event of the new conn comes before this has returned.
 */
static bool ask_again(struct aw_cm_id *cm, const struct aw_conn *failed)
{
	struct aw_conn_ask ask;
	struct aw_conn *conn;

	aw_conn_asked(failed, &ask);
	struct aw_mpa_local local = *ask.local;

	local.revision = aw_conn_info(failed)->next_revision;
	ask.local = &local;

	/* From the source port of the first try, unless that port is still taken. */
	int err = connect_from(cm, false, &ask, &conn);

	if (err == EADDRINUSE || err == EADDRNOTAVAIL)
		err = connect_from(cm, true, &ask, &conn);
	if (err) {
		aw_log(AW_LOG_WARN, "no other connection for mpa revision %u: %s", local.revision,
		       strerror(err));
		return false;
	}
	aw_log(AW_LOG_INFO, "qp 0x%x: no reply, trying again with mpa revision %u", cm->qpn,
	       local.revision);
	aw_lock(&cm->lock);
	bool wanted = cm->state == AW_CM_CONNECTING; /* false: the id is being destroyed */

	if (wanted)
		cm->conn = conn;
	aw_unlock(&cm->lock);
	if (!wanted)
		aw_conn_destroy(conn);
	return true;
}

static void on_conn(void *arg, struct aw_conn *conn, enum aw_conn_event event)
{
	struct aw_cm_id *cm = aw_cm_id_get(arg);

	if (!cm)
		return;
	aw_lock(&cm->lock);
	bool taken = cm->state == AW_CM_CONNECTING;

	/* If not, the id is being destroyed, which ends conn. */
	if (taken) {
		cm->conn = NULL;
		cm->conn_done = true;
	}
	aw_unlock(&cm->lock);
	if (taken) {
		switch (event) {
		case AW_CONN_ACCEPTED:
			on_accepted(cm, conn);
			break;
		case AW_CONN_REJECTED:
			on_rejected(cm, &aw_conn_info(conn)->result);
			break;
		case AW_CONN_FAILED:
			if (!aw_conn_info(conn)->next_revision || !ask_again(cm, conn))
				on_failed(cm, aw_conn_info(conn)->err);
			break;
		case AW_CONN_REQUEST:
			break;
		}
		aw_conn_destroy(conn);
	}
	aw_cm_id_put(cm);
}

static int start(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	struct aw_mpa_local local = {
		.ird = aw_cm_param_ird(param),
		.ord = aw_cm_param_ord(param),
	};
	uint8_t pd[2 * AW_CM_PD_MAX];
	const struct aw_conn_ask ask = {
		.peer = &cm->id.route.addr.dst_addr,
		.from = cm->fd_has_src ? &cm->id.route.addr.src_addr : NULL,
		.connected = cm->fd_connected,
		.local = &local,
		.pd = pd,
		.pd_len = aw_cm_connect_data(cm, param, pd),
	};
	struct aw_conn *conn;
	int fd = cm->fd;
	int err = aw_policy_local(&local);

	if (err)
		return err;
	cm->fd = -1;
	err = aw_conn_connect(fd, &ask, on_conn, aw_cm_id_arg(cm), &conn);
	if (err) {
		close(fd);
	} else {
		/* The progress thread may already have delivered the conn's event and destroyed the conn. */
		aw_lock(&cm->lock);
		if (!cm->conn_done)
			cm->conn = conn;
		aw_unlock(&cm->lock);
	}
	return err;
}

/*
 * No port was free as the address was resolved. Most ports are another destination's alone, or that of a connection long ended, and can
 * be shared.
 */
static int start_late(struct aw_cm_id *cm, const struct rdma_conn_param *param,
		      const struct sockaddr *src)
{
	int err = EADDRNOTAVAIL;

	for (int i = 0; i < SHARES_MAX && err == EADDRNOTAVAIL; i++) {
		err = aw_cm_socket_bind_shared(cm, src);
		if (!err)
			err = start(cm, param);
	}
	if (err != EADDRNOTAVAIL && err != EADDRINUSE)
		return err;
	err = aw_cm_socket_bind_late(cm, src);
	if (err)
		return err;
	aw_cm_socket_set_reuse(cm->fd, true);
	return start(cm, param);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct aw_cm_id *cm = id ? aw_cm_id_of(id) : NULL;

	if (cm && cm->ud) {
		int ud_err = aw_cm_ud_connect(cm, conn_param);

		return ud_err ? aw_cm_fail(ud_err) : aw_cm_id_complete(cm);
	}
	if (!cm || !aw_cm_param_valid(cm, conn_param))
		return aw_cm_fail(EINVAL);

	if (!aw_cm_id_advance(cm, AW_CM_ROUTE_RESOLVED, AW_CM_CONNECTING))
		return aw_cm_fail(EINVAL);
	struct sockaddr_storage src = cm->id.route.addr.src_storage;
	int err = aw_policy_check();

	if (!err)
		err = aw_cm_id_hold_engine(cm);
	bool late = cm->fd < 0;

	if (!err && !late)
		aw_cm_socket_set_reuse(cm->fd, true);
	if (!err)
		err = aw_cm_stream_claim(cm, conn_param);
	if (err) {
		aw_cm_id_advance(cm, AW_CM_CONNECTING, AW_CM_ROUTE_RESOLVED);
		return aw_cm_fail(err);
	}
	err = late ? start_late(cm, conn_param, (struct sockaddr *)&src) : start(cm, conn_param);
	if (err)
		on_failed(cm, err);
	return aw_cm_id_complete(cm);
}
