// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The row of a QP: what its core has counted, and what it waits for.
#include "net/stat.h"

#include "net/carrier.h"
#include "net/rnr.h"
#include "net/ud.h"
#include "net/uqp.h"

#include <stdbool.h>

static enum aw_stat_path path_of(const struct aw_uqp *qp)
{
	if (qp->ud)
		return AW_STAT_PATH_UDP;
	if (qp->fd < 0)
		return AW_STAT_PATH_NONE;
	if (qp->carrier == &aw_carrier_tcp)
		return AW_STAT_PATH_TCP;
	return qp->carrier == &aw_carrier_host ? AW_STAT_PATH_MEMORY : AW_STAT_PATH_UNDECIDED;
}

static uint8_t waits_of(const struct aw_uqp *qp)
{
	bool room = qp->ud ? qp->ud->waits : qp->tx_blocked;

	return (aw_rnr_waits(qp) ? AW_STAT_WAITS_RECEIVE : 0) | (room ? AW_STAT_WAITS_ROOM : 0) |
	       (qp->starved ? AW_STAT_WAITS_MEMORY : 0) |
	       (qp->hold.listed ? AW_STAT_WAITS_POLL : 0);
}

void aw_stat_write_qp(const struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	const struct aw_qp_count *count = &core->count;
	struct aw_stat_qp *row;

	if (!qp->stat)
		return;
	row = &qp->stat->qp;
	aw_stat_set8(&row->state, qp->ud ? (uint8_t)qp->ud->state : (uint8_t)core->state);
	aw_stat_set8(&row->path, path_of(qp));
	aw_stat_set8(&row->waits, waits_of(qp));
	aw_stat_set(&row->error, core->error);
	aw_stat_set(&row->peer_error, core->peer_error);
	aw_stat_set((uint32_t *)&row->fd, (uint32_t)qp->fd);
	aw_stat_set64(&row->bytes_out, count->bytes_out);
	aw_stat_set64(&row->messages_out, count->messages_out);
	aw_stat_set64(&row->fpdus_out, count->fpdus_out);
	aw_stat_set64(&row->bytes_in, count->bytes_in);
	aw_stat_set64(&row->messages_in, count->messages_in);
	aw_stat_set64(&row->fpdus_in, count->fpdus_in);
	aw_stat_set(&row->sends, aw_sq_count(&core->sq));
	aw_stat_set(&row->recvs, aw_rq_count(&qp->rq));
}

void aw_stat_begin_qp(struct aw_uqp *qp)
{
	struct aw_stat_qp *row;

	pthread_mutex_lock(&qp->lock);
	qp->stat = aw_stat_take(AW_STAT_QP, qp->qpn);
	if (qp->stat) {
		row = &qp->stat->qp;
		aw_stat_set8(&row->ud, qp->ud != NULL);
		aw_stat_set(&row->send_cq, qp->attr.send_cq->number);
		aw_stat_set(&row->recv_cq, qp->attr.recv_cq->number);
		aw_stat_write_qp(qp);
	}
	pthread_mutex_unlock(&qp->lock);
}

void aw_stat_stream_begun(struct aw_uqp *qp, const struct sockaddr_storage *peer)
{
	struct aw_stat_qp *row = &qp->stat->qp;

	if (!qp->stat)
		return;
	aw_stat_address(peer, &row->peer_family, &row->peer_port, row->peer);
	aw_stat_add(&row->streams, 1);
}

void aw_stat_stream_ended(struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	bool crc = core->error == AW_E_MPA_CRC;
	bool received = core->peer_error != AW_OK;
	bool sent = !received && core->term_len > 0 && !core->term_due;

	if (!qp->stat || (!crc && !sent && !received))
		return;
	aw_stat_add(&qp->stat->qp.crc_errors, crc);
	aw_stat_add(&qp->stat->qp.terminates_sent, sent);
	aw_stat_add(&qp->stat->qp.terminates_received, received);
	aw_stat_count_end(crc, sent, received);
}
