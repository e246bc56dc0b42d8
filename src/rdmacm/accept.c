// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_accept and rdma_reject: the program's answer to a Request. In the peer-to-peer model
// ESTABLISHED waits for the peer's first FPDU, before which this end must not transmit (RFC 6581
// 6); otherwise it follows the Reply.
#include "net/base/persona.h"
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"
#include "rdmacm/reply_timer.h"
#include "rdmacm/stream.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

static uint8_t at_most(uint8_t n, uint16_t max)
{
	return n < max ? n : (uint8_t)max;
}

/*
 * Takes the conn of an id in REQUESTED, so that no other thread ends it, and moves the id on. NULL
 * in any other state.
 */
static struct aw_conn *take_conn(struct aw_cm_id *cm, enum aw_cm_state next)
{
	aw_lock(&cm->lock);
	struct aw_conn *conn = cm->state == AW_CM_REQUESTED ? cm->conn : NULL;

	if (conn) {
		cm->conn = NULL;
		aw_cm_id_enter(cm, next);
	}
	aw_unlock(&cm->lock);
	return conn;
}

static int reply(struct aw_cm_id *cm, struct aw_conn *conn, const struct rdma_conn_param *param)
{
	const struct aw_mpa_result *result = &aw_conn_info(conn)->result;
	struct aw_uqp *uqp = aw_cm_stream_hold(cm);

	if (!uqp)
		return EINVAL;
	cm->ird = at_most(aw_cm_param_ird(param), result->ird);
	cm->ord = at_most(aw_cm_param_ord(param), result->ord);
	int err = aw_conn_accept(conn, uqp, cm->ird, cm->ord, param ? param->private_data : NULL,
				 aw_cm_param_pd_len(param));

	aw_uqp_put(uqp);
	return err;
}

/*
 * The peer may have been faster: settle applies the events that the QP has raised meanwhile. On a
 * given socket the peer's first FPDU may take as long as its Request (net/conn/conn_machine.c),
 * unless this call waits for it.
 */
static void on_replied(struct aw_cm_id *cm, bool p2p, bool given)
{
	aw_lock(&cm->lock);
	cm->attached = true;
	if (cm->state == AW_CM_ACCEPTING) {
		aw_cm_id_enter(cm, AW_CM_REPLIED);
		if (!given || cm->sync)
			aw_cm_reply_timer_start(cm);
	}
	if (!p2p)
		cm->uqp_events |= AW_UQP_READY;
	aw_cm_stream_sync(cm);
	aw_cm_stream_settle(cm);
	aw_unlock(&cm->lock);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	struct aw_cm_id *cm = id ? aw_cm_id_of(id) : NULL;

	if (cm && cm->ud) {
		/* A synchronous id's Request is acknowledged, as by aw_cm_id_complete; no event follows. */
		int err = aw_cm_ud_accept(cm, conn_param);

		if (!err && cm->sync)
			aw_cm_id_release_event(cm);
		return aw_cm_fail(err);
	}
	if (!cm || !aw_cm_param_valid(cm, conn_param))
		return aw_cm_fail(EINVAL);

	if (aw_cm_id_state(cm) != AW_CM_REQUESTED || aw_cm_stream_claim(cm, conn_param) != 0)
		return aw_cm_fail(EINVAL);
	struct aw_conn *conn = take_conn(cm, AW_CM_ACCEPTING);

	if (!conn)
		return aw_cm_fail(EINVAL);
	bool p2p = aw_conn_info(conn)->result.p2p, given = aw_conn_info(conn)->given;
	int err = reply(cm, conn, conn_param);

	aw_conn_destroy(conn);
	if (err) {
		aw_cm_id_advance(cm, AW_CM_ACCEPTING, AW_CM_FAILED);
		aw_cm_qp_flush(cm);
		return aw_cm_fail(err);
	}
	on_replied(cm, p2p, given);
	return aw_cm_id_complete(cm);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	uint8_t len = aw_cm_pd_len(private_data, private_data_len);

	if (!id)
		return aw_cm_fail(EINVAL);
	if (aw_cm_id_of(id)->ud)
		return aw_cm_fail(aw_cm_ud_reject(aw_cm_id_of(id), private_data, len));
	struct aw_conn *conn = take_conn(aw_cm_id_of(id), AW_CM_FAILED);

	if (!conn)
		return aw_cm_fail(EINVAL);
	int err = aw_conn_reject(conn, private_data, len);

	aw_conn_destroy(conn);
	return aw_cm_fail(err);
}

/*
 * Answers CONNECT_RESPONSE, which iWARP does not have: there the QP's first FPDU answers the peer,
 * and ESTABLISHED comes by itself. In the roce persona an id that has no QP of its own gets that
 * event, and nothing is left to do.
 */
int rdma_establish(struct rdma_cm_id *id)
{
	if (!id || !aw_persona_is_roce() || aw_cm_qp_exists(aw_cm_id_of(id)) ||
	    aw_cm_id_state(aw_cm_id_of(id)) != AW_CM_CONNECTED)
		return aw_cm_fail(EINVAL);
	return 0;
}
