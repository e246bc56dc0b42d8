// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// States and attributes of a QP. As with any RNIC, only rdma_cm gives a QP its connection: a
// program may close it gracefully (SQD), abort it (ERR) and start over (RESET), but cannot move it
// to RTS, and RTR, which iWARP does not have, changes nothing. Nothing here waits for the peer.
// IBV_EVENT_SQ_DRAINED is not raised here: iWARP knows no SQ that drains and goes on, its SQD closes.
#include "base/log.h"
#include "net/base/persona.h"
#include "ring/lock.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/private.h"
#include "verbs/qp_target.h"

#include <errno.h>
#include <string.h>

/* Attributes that have a meaning only on other transports: stored, and returned by ibv_query_qp. */
#define ATTR_KEPT                                                                             \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | \
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |     \
	 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |      \
	 IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN)
#define ATTR_UNSUPPORTED \
	(IBV_QP_QKEY | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_RATE_LIMIT)

enum move {
	MOVE_NONE, /* stays where it is */
	MOVE_INIT,
	MOVE_RESET,
	MOVE_CLOSE,
	MOVE_ABORT,
	MOVE_REFUSED,
};

static enum move move_of(enum ibv_qp_state from, enum ibv_qp_state to);
static void move_do(struct vb_qp *qp, enum move move);

static int modify_iwarp(struct vb_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	enum ibv_qp_state state = vb_qp_state(qp);
	enum move move = MOVE_NONE;
	int err = vb_qp_attr_check(attr, mask);

	if (err)
		return err;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != state)
		return EINVAL;
	if (mask & IBV_QP_STATE)
		move = move_of(state, attr->qp_state);
	if (move == MOVE_REFUSED) {
		/* Most programs that exchange QP numbers themselves come to this, and print only "failed". */
		if (attr->qp_state == IBV_QPS_RTS)
			aw_log(AW_LOG_ERROR,
			       "qp 0x%x: modify to rts refused: an iwarp qp is connected by rdma_cm alone "
			       "(perftest: add -R at both ends), or in the roce persona by itself (both "
			       "ends: anywarp run --persona roce)",
			       ibv->qp_num);
		return EINVAL;
	}
	aw_lock(&ibv->mutex);
	vb_qp_attr_keep(&qp->attr, attr, mask);
	aw_unlock(&ibv->mutex);
	move_do(qp, move);
	if (mask & IBV_QP_ACCESS_FLAGS)
		vb_qp_access_grant(qp, attr->qp_access_flags);
	vb_qp_state_sync(ibv);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct vb_qp *qp = vb_qp_real(ibv);
	int err = aw_persona_is_roce() ? vb_qp_roce_modify(qp, attr, mask)
				       : modify_iwarp(qp, attr, mask);

	if (qp != vb_qp_of(ibv))
		vb_qp_state_sync(ibv);
	return vb_fail(err);
}

/* All attributes are filled in, whatever the mask asks for. */
int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct vb_qp *qp = vb_qp_real(ibv);

	(void)mask;
	aw_lock(&qp->ibv.qp_base.mutex);
	*attr = qp->attr;
	aw_unlock(&qp->ibv.qp_base.mutex);
	attr->qp_state = attr->cur_qp_state = vb_qp_state_sync(ibv);
	attr->path_mtu = attr->path_mtu ? attr->path_mtu : IBV_MTU_4096;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->init.cap;
	attr->port_num = VB_PORT;

	aw_lock(&qp->uqp->lock);
	attr->sq_draining = attr->qp_state == IBV_QPS_SQD && !aw_qp_is_drained(&qp->uqp->core);
	if (!aw_persona_is_roce())
		attr->qp_access_flags |= qp->uqp->core.remote_access;
	if (qp->uqp->attached && !qp->uqp->by_rc) {
		attr->max_rd_atomic = (uint8_t)qp->uqp->core.stream.ord;
		attr->max_dest_rd_atomic = (uint8_t)qp->uqp->core.stream.ird;
	}
	aw_unlock(&qp->uqp->lock);
	*init_attr = qp->init;
	return 0;
}

/* The bytes of a message are placed in order, but those of one FPDU are copied in any order. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return vb_fail(EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return vb_fail(EOPNOTSUPP);
}

enum ibv_qp_state vb_qp_state(struct vb_qp *qp)
{
	if (aw_persona_is_roce())
		return vb_qp_roce_state(qp);
	switch (aw_uqp_state(qp->uqp)) {
	case AW_QP_IDLE:
		return vb_qp_walked(qp);
	case AW_QP_RTS:
		return IBV_QPS_RTS;
	case AW_QP_CLOSING:
		return IBV_QPS_SQD;
	case AW_QP_TERMINATE:
	case AW_QP_ERROR:
		return IBV_QPS_ERR;
	}
	__builtin_unreachable();
}

void avb_qp_state_sync(struct ibv_qp *ibv)
{
	if (aw_persona_is_roce())
		vb_qp_roce_follow_cm(vb_qp_of(ibv));
	vb_qp_state_sync(ibv);
}

void avb_qp_timeout_show(struct ibv_qp *ibv, uint8_t timeout)
{
	aw_lock(&ibv->mutex);
	vb_qp_of(ibv)->attr.timeout = timeout;
	aw_unlock(&ibv->mutex);
}

/*
 * Programs read ibv_qp.state without the mutex. A write of the value that it has already would race with such a read:
 * the progress thread comes here once more after the program was told that the connection is established. The second
 * look finds that another thread has written a newer state before this one wrote.
 */
enum ibv_qp_state vb_qp_state_sync(struct ibv_qp *ibv)
{
	enum ibv_qp_state state, now = vb_qp_state(vb_qp_real(ibv));

	do {
		state = now;
		aw_lock(&ibv->mutex);
		if (ibv->state != state)
			ibv->state = state;
		aw_unlock(&ibv->mutex);
		now = vb_qp_state(vb_qp_real(ibv));
	} while (now != state);
	return state;
}

int vb_qp_attr_check(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & ~(ATTR_KEPT | ATTR_UNSUPPORTED))
		return EINVAL;
	if (mask & ATTR_UNSUPPORTED)
		return EOPNOTSUPP;
	if (mask & IBV_QP_PORT && attr->port_num != VB_PORT)
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && attr->pkey_index)
		return EINVAL;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > AW_RD_MAX)
		return EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > AW_RD_MAX)
		return EINVAL;
	return 0;
}

static enum move move_of(enum ibv_qp_state from, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
		return MOVE_RESET;
	case IBV_QPS_ERR:
		return MOVE_ABORT;
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT ? MOVE_INIT : MOVE_REFUSED;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_RTS)
			return MOVE_CLOSE;
		return from == IBV_QPS_SQD ? MOVE_NONE : MOVE_REFUSED;
	case IBV_QPS_RTR:
		return from == IBV_QPS_INIT || from == IBV_QPS_RTS ? MOVE_NONE : MOVE_REFUSED;
	case IBV_QPS_RTS:
		return from == IBV_QPS_RTS ? MOVE_NONE : MOVE_REFUSED;
	case IBV_QPS_SQE:
	case IBV_QPS_UNKNOWN:
		return MOVE_REFUSED;
	}
	return MOVE_REFUSED;
}

static void move_do(struct vb_qp *qp, enum move move)
{
	switch (move) {
	case MOVE_INIT:
		vb_qp_walk(qp, IBV_QPS_INIT);
		break;
	case MOVE_RESET:
		aw_uqp_reset(qp->uqp);
		vb_qp_walk(qp, IBV_QPS_RESET);
		break;
	case MOVE_CLOSE:
		aw_uqp_close(qp->uqp);
		break;
	case MOVE_ABORT:
		aw_uqp_abort(qp->uqp);
		break;
	case MOVE_NONE:
	case MOVE_REFUSED:
		break;
	}
}

/*
 * The operations that a peer may do at all, whatever an STag allows. Until a program sets them all
 * are allowed: Linux's rdma_cm, too, grants an iWARP QP all operations that there are, Writes and
 * Reads.
 */
void vb_qp_access_grant(struct vb_qp *qp, unsigned int access)
{
	/* UC has neither Reads nor atomics, in either direction. */
	if (qp->uqp->attr.uc)
		access &= AW_ACCESS_REMOTE_WRITE;
	/* Nothing goes to the initiator of XRC but answers. */
	if (qp->uqp->attr.xrc == AW_XRC_INITIATOR)
		access = 0;
	aw_lock(&qp->uqp->lock);
	qp->uqp->core.remote_access = access & AW_ACCESS_REMOTE;
	aw_unlock(&qp->uqp->lock);
}

void vb_qp_attr_keep(struct ibv_qp_attr *kept, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		memset(kept, 0, sizeof(*kept));
	if (mask & IBV_QP_ACCESS_FLAGS)
		kept->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		kept->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		kept->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		kept->en_sqd_async_notify = attr->en_sqd_async_notify;

	if (mask & IBV_QP_AV)
		kept->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		kept->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		kept->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		kept->rq_psn = attr->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		kept->sq_psn = attr->sq_psn;
	if (mask & IBV_QP_TIMEOUT)
		kept->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		kept->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		kept->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		kept->min_rnr_timer = attr->min_rnr_timer;
}
