// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See watched.h.
#include "net/qp/watched.h"

#include "net/mem/pool.h"
#include "net/tls/tls.h"

#include <stdatomic.h>

struct aw_watched_seen aw_watched_see(const struct aw_uqp *qp)
{
	return (struct aw_watched_seen){
		.moved = qp->core.rx_pos + qp->core.sent_pos + (qp->stage ? qp->stage->len : 0),
		.bells = (qp->ring ? qp->ring->wakes : 0) + (qp->tls ? aw_tls_heard(qp->tls) : 0),
		.over = qp->fd < 0 || qp->core.peer_closed,
	};
}

bool aw_watched_have_moved(const struct aw_watched_seen *before, const struct aw_watched_seen *now)
{
	return now->moved != before->moved || (now->over && !before->over);
}

bool aw_watched_wake(const struct aw_uqp *qp, const struct aw_channel *channel)
{
	struct aw_cq *cqs[2] = { qp->attr.recv_cq, qp->attr.send_cq };
	bool woken = false;

	for (int i = 0; i < 2 && !woken; i++)
		woken = cqs[i]->channel == channel && aw_cq_wake(cqs[i]);
	return woken;
}

void aw_watched_served(struct aw_uqp *qp)
{
	struct aw_channel *channel = qp->serving.watched_by;
	uint32_t handle = qp->handle;

	if (!channel)
		return;
	atomic_compare_exchange_strong(&channel->moving, &handle, AW_CHANNEL_NONE);
	if (qp->serving.server != AW_SERVER_WATCHER)
		qp->serving.watched_by = NULL;
}

void aw_watched_begin(struct aw_uqp *qp, struct aw_channel *channel)
{
	qp->serving.watched_by = channel;
	aw_watched_moves(qp);
}

void aw_watched_moves(const struct aw_uqp *qp)
{
	if (qp->serving.watched_by)
		atomic_store(&qp->serving.watched_by->moving, qp->handle);
}
