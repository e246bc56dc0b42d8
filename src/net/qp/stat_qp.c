// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The row of a QP: what its core has counted, and what it waits for.
#include "net/qp/stat_qp.h"

#include "net/qp/carrier.h"
#include "net/qp/rnr.h"
#include "net/qp/ud_state.h"
#include "net/tls/tls.h"
#include "ring/lock.h"

#include <stdbool.h>
#include <string.h>

void aw_stat_write_qp(const struct aw_uqp *qp)
{
	uint32_t state = qp->ud ? (uint32_t)qp->ud->state : (uint32_t)qp->core.state;
	bool room = qp->ud ? qp->ud->waits : qp->tx_blocked;
	uint8_t waits = (aw_rnr_waits(qp) ? AW_STAT_WAITS_RECEIVE : 0) |
			(room ? AW_STAT_WAITS_ROOM : 0) | (qp->starved ? AW_STAT_WAITS_MEMORY : 0);

	if (qp->stat)
		aw_stat_set(&qp->stat->qp.now, AW_STAT_QP_NOW(state, waits));
}

static enum aw_stat_path path_of_tls(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	switch (aw_tls_by(qp->tls)) {
	case AW_TLS_BY_USER:
		return AW_STAT_PATH_TLS;
	case AW_TLS_BY_KERNEL:
		return AW_STAT_PATH_TLS_KERNEL;
	case AW_TLS_BY_BOTH:
		break;
	}
	return AW_STAT_PATH_TLS_BOTH;
}

void aw_stat_write_path(const struct aw_uqp *qp)
{
	enum aw_stat_path path = AW_STAT_PATH_TCP;

	if (!qp->stat)
		return;
	if (qp->ud)
		path = AW_STAT_PATH_UDP;
	else if (qp->fd < 0)
		path = AW_STAT_PATH_NONE;
	else if (!qp->in->is_socket && !qp->out->is_socket)
		path = qp->tls ? AW_STAT_PATH_TLS_MEMORY : AW_STAT_PATH_MEMORY;
	else if (qp->tls)
		path = path_of_tls(qp);
	aw_stat_set16(&qp->stat->qp.path, path);
}

void aw_stat_init(struct aw_uqp *qp)
{
	qp->core.count = qp->stat ? &qp->stat->qp.count : NULL;
	aw_stat_write_qp(qp);
	aw_stat_unlock(qp);
}

static enum aw_stat_type type_of(const struct aw_uqp *qp)
{
	if (qp->ud)
		return AW_STAT_UD;
	return qp->attr.uc ? AW_STAT_UC : AW_STAT_RC;
}

void aw_stat_begin_qp(struct aw_uqp *qp)
{
	struct aw_stat_qp *row;

	aw_lock(&qp->lock);
	qp->stat = aw_stat_take(AW_STAT_QP, qp->qpn);
	if (qp->stat) {
		row = &qp->stat->qp;
		aw_stat_set16(&row->type, type_of(qp));
		aw_stat_set((uint32_t *)&row->fd, UINT32_MAX);
		aw_stat_write_path(qp);
		aw_stat_set(&row->send_cq, qp->attr.send_cq->number);
		aw_stat_set(&row->recv_cq, qp->attr.recv_cq->number);
		aw_stat_init(qp);
	}
	aw_unlock(&qp->lock);
}

void aw_stat_stream_begun(struct aw_uqp *qp, const struct sockaddr_storage *peer)
{
	struct aw_stat_qp *row;

	if (!qp->stat)
		return;
	row = &qp->stat->qp;
	aw_stat_address(peer, &row->peer_family, &row->peer_port, row->peer);
	aw_stat_set((uint32_t *)&row->fd, (uint32_t)qp->fd);
	aw_stat_set(&row->error, AW_OK);
	aw_stat_set(&row->peer_error, AW_OK);
	aw_stat_add(&row->streams, 1);
}

void aw_stat_write_identity(struct aw_uqp *qp, const char *name)
{
	uint64_t words[AW_STAT_NAME_LEN / 8] = { 0 };

	if (!qp->stat)
		return;
	memcpy(words, name, strnlen(name, sizeof(words) - 1));
	for (size_t i = 0; i < AW_STAT_NAME_LEN / 8; i++)
		aw_stat_set64(&qp->stat->qp.identity[i], words[i]);
}

void aw_stat_stream_ended(struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	bool received = core->peer_error != AW_OK;
	bool crc = !received && core->error == AW_E_MPA_CRC;
	/* RFC 5044 7.1.2 rule 4: a responder sends no Terminate before a valid FPDU has arrived. */
	bool sent = !received && core->term_len > 0 && !core->term_due &&
		    (core->stream.initiator || core->peer_ready);

	if (!qp->stat)
		return;
	aw_stat_set(&qp->stat->qp.error, core->error);
	aw_stat_set(&qp->stat->qp.peer_error, core->peer_error);
	if (!crc && !sent && !received)
		return;
	aw_stat_add(&qp->stat->qp.crc_errors, crc);
	aw_stat_add(&qp->stat->qp.terminates_sent, sent);
	aw_stat_add(&qp->stat->qp.terminates_received, received);
	aw_stat_count_end(crc, sent, received);
}

void aw_stat_stream_gone(struct aw_uqp *qp)
{
	if (!qp->stat)
		return;
	aw_stat_set((uint32_t *)&qp->stat->qp.fd, UINT32_MAX);
	aw_stat_write_path(qp);
	aw_stat_write_qp(qp);
}
