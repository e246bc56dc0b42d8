// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the QP's events to the id's: ESTABLISHED when a responder's peer is ready, DISCONNECTED
// once, whichever end closes the stream, and TIMEWAIT_EXIT after it.
#include "rdmacm/stream.h"

#include "base/log.h"
#include "net/base/addr.h"
#include "net/base/persona.h"
#include "net/roce/qpn.h"
#include "rdmacm/event.h"
#include "rdmacm/qp_ref.h"
#include "rdmacm/timer.h"
#include "rdmacm/timewait.h"
#include "ring/lock.h"
#include "verbs/private.h"

#include <string.h>

static bool depth_valid(const char *name, uint8_t depth)
{
	if (depth == RDMA_MAX_RESP_RES || depth <= AW_RD_MAX)
		return true;
	aw_log(AW_LOG_ERROR,
	       "%s %u refused: the device has %u reads at once (max_qp_rd_atom): ask for no more "
	       "(perftest: -o)",
	       name, depth, AW_RD_MAX);
	return false;
}

bool aw_cm_param_valid(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	if (!param)
		return aw_cm_qp_exists(cm);
	return depth_valid("responder_resources", param->responder_resources) &&
	       depth_valid("initiator_depth", param->initiator_depth);
}

static uint8_t depth_of(uint8_t depth)
{
	return depth == RDMA_MAX_RESP_RES ? AW_RD_MAX : depth;
}

uint8_t aw_cm_param_ird(const struct rdma_conn_param *param)
{
	return param ? depth_of(param->responder_resources) : AW_RD_MAX;
}

uint8_t aw_cm_param_ord(const struct rdma_conn_param *param)
{
	return param ? depth_of(param->initiator_depth) : AW_RD_MAX;
}

size_t aw_cm_connect_data(const struct aw_cm_id *cm, const struct rdma_conn_param *param,
			  uint8_t *octets)
{
	uint8_t len = aw_cm_param_pd_len(param);

	if (cm->ep_data_len)
		memcpy(octets, cm->ep_data, cm->ep_data_len);
	if (len)
		memcpy(octets + cm->ep_data_len, param->private_data, len);
	return (size_t)cm->ep_data_len + len;
}

/* Called by any thread, with no lock held. */
static void on_uqp(void *arg, uint32_t events)
{
	struct aw_cm_id *cm = aw_cm_id_get(arg);

	if (!cm)
		return;
	aw_lock(&cm->lock);
	if (cm->state != AW_CM_ENDED) {
		cm->uqp_events |= events;
		aw_cm_stream_sync(cm);
		aw_cm_stream_settle(cm);
	}
	aw_unlock(&cm->lock);
	aw_cm_id_put(cm);
}

int aw_cm_stream_claim(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	struct ibv_qp *qp = aw_cm_qp_get(cm);
	uint32_t qpn = qp ? qp->qp_num : param ? param->qp_num : 0;
	struct aw_uqp *uqp = aw_qpn_get(qpn);
	bool idle = uqp && aw_uqp_state(uqp) == AW_QP_IDLE;

	if (idle) {
		aw_lock(&cm->lock);
		cm->qpn = qpn;
		cm->uqp = uqp;
		cm->uqp_events = 0;
		aw_unlock(&cm->lock);
		aw_uqp_listen(uqp, AW_UQP_CM, on_uqp, aw_cm_id_arg(cm));
		if (qp && cm->ack_timeout_set)
			avb_qp_timeout_show(qp, cm->ack_timeout);
	}
	if (uqp)
		aw_uqp_put(uqp);
	if (qp)
		aw_cm_qp_put(cm);
	return idle ? 0 : EINVAL;
}

static struct aw_uqp *hold(const struct aw_cm_id *cm) AW_REQUIRES(cm->lock)
{
	struct aw_uqp *uqp = cm->uqp ? aw_qpn_get(cm->qpn) : NULL;

	if (!uqp || uqp == cm->uqp)
		return uqp;
	aw_uqp_put(uqp);
	return NULL;
}

struct aw_uqp *aw_cm_stream_hold(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	struct aw_uqp *uqp = hold(cm);

	aw_unlock(&cm->lock);
	return uqp;
}

static bool is_ours(const struct aw_cm_id *cm, struct aw_uqp *uqp)
{
	aw_lock(&uqp->lock);
	bool ours = uqp->listener[AW_UQP_CM] == on_uqp &&
		    uqp->listener_arg[AW_UQP_CM] == aw_cm_id_arg(cm);

	aw_unlock(&uqp->lock);
	return ours;
}

/* A QP that was reset may be in another connection by now, or wait for one. */
bool aw_cm_stream_is_over(struct aw_cm_id *cm)
{
	struct aw_uqp *uqp = aw_cm_stream_hold(cm);
	bool over = true;

	if (!uqp)
		return true;
	if (is_ours(cm, uqp)) {
		enum aw_qp_state state = aw_uqp_state(uqp);

		over = state == AW_QP_ERROR || state == AW_QP_IDLE;
	}
	aw_uqp_put(uqp);
	return over;
}

void aw_cm_stream_release(struct aw_cm_id *cm)
{
	struct aw_uqp *uqp = aw_cm_stream_hold(cm);

	if (!uqp)
		return;
	if (is_ours(cm, uqp)) {
		aw_uqp_listen(uqp, AW_UQP_CM, NULL, NULL);
	} else {
		aw_lock(&cm->lock);
		cm->uqp = NULL;
		aw_unlock(&cm->lock);
	}
	aw_uqp_put(uqp);
}

void aw_cm_stream_close(struct aw_cm_id *cm)
{
	struct aw_uqp *uqp = cm->attached ? aw_cm_stream_hold(cm) : NULL;

	if (!uqp)
		return;
	if (!(cm->uqp_events & AW_UQP_CLOSED))
		aw_uqp_close(uqp);
	aw_uqp_put(uqp);
}

void aw_cm_stream_sync(struct aw_cm_id *cm)
{
	struct ibv_qp *qp = aw_cm_qp_locked(cm);

	if (qp && avb_qp_uqp(qp) == cm->uqp)
		avb_qp_state_sync(qp);
}

static void establish(struct aw_cm_id *cm) AW_REQUIRES(cm->lock)
{
	struct aw_cm_event *ev = aw_cm_event_create(cm, RDMA_CM_EVENT_ESTABLISHED, 0);

	aw_cm_timer_stop(cm);
	aw_cm_id_enter(cm, AW_CM_CONNECTED);
	if (ev) {
		ev->event.param.conn.responder_resources = cm->ird;
		ev->event.param.conn.initiator_depth = cm->ord;
	}
	aw_cm_event_raise(ev);
}

static void lose_reply(struct aw_cm_id *cm, int status) AW_REQUIRES(cm->lock)
{
	aw_cm_timer_stop(cm);
	aw_cm_id_enter(cm, AW_CM_FAILED);
	aw_cm_event_tell(cm, RDMA_CM_EVENT_CONNECT_ERROR, status);
}

/* Reads why the stream ended: the Terminates in both directions. */
static void read_errors(const struct aw_cm_id *cm, enum aw_error *own, enum aw_error *peer)
	AW_REQUIRES(cm->lock)
{
	struct aw_uqp *uqp = hold(cm);

	*own = *peer = AW_OK;
	if (!uqp)
		return;
	aw_lock(&uqp->lock);
	*own = uqp->core.error;
	*peer = uqp->core.peer_error;
	aw_unlock(&uqp->lock);
	aw_uqp_put(uqp);
}

/* The initiator knows all of the cause, and its log has it. */
static void log_refusal(const struct aw_cm_id *cm, enum aw_error peer)
{
	if (!aw_log_has_room())
		return;
	aw_log(AW_LOG_ERROR, "qp 0x%x: connection failed peer %s cause %s", cm->qpn,
	       aw_addr_text(&cm->id.route.addr.dst_storage).text,
	       peer == AW_E_MPA_NO_MATCHING_RTR
		       ? "it sends no ready-to-receive message that this end takes: give both ends "
			 "one in common by rtr= in --mpa (ANYWARP_MPA), or leave rtr out at both"
		       : "it takes fewer inbound reads than this end wants: lower initiator_depth "
			 "here, or raise responder_resources there");
}

/* Linux's iWARP always reports 0. Here a stream that was terminated reports an error. */
static int status_of_end(enum aw_error own, enum aw_error peer)
{
	if (peer)
		return -EREMOTEIO;
	if (own == AW_E_LOCAL_CATASTROPHIC)
		return -EIO;
	return own && own != AW_E_MPA_CLOSED ? -EPROTO : 0;
}

static void settle_end(struct aw_cm_id *cm) AW_REQUIRES(cm->lock)
{
	enum aw_error own, peer;
	int refusal = 0;

	read_errors(cm, &own, &peer);
	/* RFC 6581 9: an initiator that cannot do what was replied sends a Terminate as its first FPDU. */
	if (peer == AW_E_MPA_NO_MATCHING_RTR)
		refusal = -EOPNOTSUPP;
	else if (peer == AW_E_MPA_INSUFFICIENT_IRD)
		refusal = -ENOMEM;
	if (cm->state == AW_CM_REPLIED && refusal) {
		log_refusal(cm, peer);
		lose_reply(cm, refusal);
	}
	if (cm->state == AW_CM_REPLIED && (cm->uqp_events & AW_UQP_READY))
		establish(cm);
	if (cm->state == AW_CM_REPLIED && !cm->disconnecting)
		lose_reply(cm, -ECONNRESET);
	/*
	 * As on InfiniBand, where the peer's answer brings DISCONNECTED to the end that disconnects. A program that ended before would have what
	 * TCP still holds for the peer reset by the next that comes from there.
	 */
	bool awaits_peer = aw_persona_is_roce() && cm->disconnecting &&
			   !(cm->uqp_events & AW_UQP_DELIVERED);

	if ((cm->state == AW_CM_CONNECTED || cm->state == AW_CM_REPLIED) && !awaits_peer) {
		aw_cm_timer_stop(cm);
		aw_cm_id_enter(cm, AW_CM_DISCONNECTED);
		aw_cm_event_tell(cm, RDMA_CM_EVENT_DISCONNECTED, status_of_end(own, peer));
		aw_cm_timewait_start(cm);
	}
}

void aw_cm_stream_settle(struct aw_cm_id *cm)
{
	if (cm->ud)
		return;
	if (cm->uqp_events & AW_UQP_CLOSED) {
		settle_end(cm);
	} else if ((cm->state == AW_CM_REPLIED || cm->state == AW_CM_ACCEPTING) &&
		   (cm->uqp_events & AW_UQP_READY)) {
		/*
		 * The peer's first FPDU may come before the thread that has sent the Reply has returned to
		 * rdma_accept. ESTABLISHED does not wait for that thread, since the peer's next Request must not
		 * overtake it: the progress thread receives both.
		 */
		cm->attached = true;
		establish(cm);
	}
}
