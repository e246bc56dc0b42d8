// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life and states of a UD QP. Of the core's states it uses only IDLE and ERROR, in which it
// flushes.
#include "net/ud/ud.h"

#include "net/base/fork.h"
#include "net/roce/qpn.h"
#include "net/ud/ud_group.h"
#include "net/ud/udsock.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <errno.h>
#include <stdlib.h>

static void fork_prepare(void)
{
	aw_ud_group_fork_prepare();
	aw_udsock_fork_prepare();
}

static void fork_done(void)
{
	aw_udsock_fork_done();
	aw_ud_group_fork_done();
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_done,
	.child = fork_done,
};

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_UD, &fork_handlers);
}

static int create_ud(struct aw_uqp *qp)
{
	qp->ud = calloc(1, sizeof(*qp->ud));
	return qp->ud ? 0 : ENOMEM;
}

static int open_ud(struct aw_uqp *qp)
{
	int err = aw_qpn_take(AW_TABLE_NONE, &qp->qpn);

	if (err)
		return err;
	err = aw_udsock_get(qp->qpn, &qp->ud->sock);
	if (err)
		goto give_qpn;
	err = aw_cq_join_sock(qp->attr.recv_cq, qp->ud->sock, &aw_udsock_cq_ops);
	if (err)
		goto put_sock;
	aw_udsock_assign(qp->ud->sock, qp->qpn, qp->handle);
	return 0;

put_sock:
	aw_udsock_put(qp->ud->sock);
give_qpn:
	aw_qpn_give(qp->qpn);
	return err;
}

static void close_ud(struct aw_uqp *qp)
{
	aw_udsock_assign(qp->ud->sock, qp->qpn, AW_TABLE_NONE);
	aw_ud_group_leave_all(qp);
	aw_cq_leave_sock(qp->attr.recv_cq, qp->ud->sock);
	aw_udsock_put(qp->ud->sock);
	aw_qpn_give(qp->qpn);
}

static void destroy_ud(struct aw_uqp *qp)
{
	aw_ud_drop_handles(qp);
	free(qp->ud);
}

const struct aw_uqp_kind aw_ud_kind = {
	.create = create_ud,
	.open = open_ud,
	.close = close_ud,
	.destroy = destroy_ud,
};

void aw_ud_move(struct aw_uqp *qp, enum aw_ud_state state)
{
	if (state == AW_UD_RESET) {
		aw_lock(&qp->lock);
		aw_ud_drop_handles(qp);
		qp->ud->state = AW_UD_RESET;
		qp->ud->waits = false;
		qp->ud->qkey = 0;
		aw_unlock(&qp->lock);
		aw_uqp_reset(qp);
		return;
	}
	aw_lock(&qp->lock);
	if (state != AW_UD_ERR) {
		qp->ud->state = state;
		aw_ud_transmit(qp);
	} else if (qp->ud->state != AW_UD_ERR) {
		aw_ud_fail(qp);
	}
	aw_uqp_unlock(qp);
}

enum aw_ud_state aw_ud_state(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	enum aw_ud_state state = qp->ud->state;

	aw_unlock(&qp->lock);
	return state;
}

void aw_ud_set_qkey(struct aw_uqp *qp, uint32_t qkey)
{
	aw_lock(&qp->lock);
	qp->ud->qkey = qkey;
	aw_unlock(&qp->lock);
}
