// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_modify_qp in the roce persona: the program moves the QP from RESET to RTS and names its peer
// on the way. Nothing here waits for the peer: net/roce/rc.h connects.
#include "base/log.h"
#include "net/roce/qpn.h"
#include "net/roce/rc.h"
#include "net/ud/ud.h"
#include "ring/lock.h"
#include "verbs/gid.h"
#include "verbs/qp.h"
#include "verbs/qp_rule.h"

#include <errno.h>
#include <string.h>

#define COUNT_MAX 7 /* retry_cnt and rnr_retry have three bits; 7 RNR retries are endless */
#define CODE_MAX 31 /* timeout and min_rnr_timer have five */

/* min_rnr_timer in units of 10 us: InfiniBand's codes. */
static const uint32_t rnr_timers[CODE_MAX + 1] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

enum ibv_qp_state vb_qp_roce_state(struct vb_qp *qp)
{
	if (qp->uqp->ud)
		return vb_qp_ud_state(qp);
	switch (aw_uqp_state(qp->uqp)) {
	case AW_QP_TERMINATE:
	case AW_QP_ERROR:
		return IBV_QPS_ERR;
	case AW_QP_RTS:
	case AW_QP_CLOSING:
	case AW_QP_IDLE:
		break;
	}
	return vb_qp_walked(qp);
}

/* rdma_cm moves a QP that it has connected from INIT to RTS; the program moves all others. */
void vb_qp_roce_follow_cm(struct vb_qp *qp)
{
	enum ibv_qp_state init = IBV_QPS_INIT;
	enum aw_qp_state state = aw_uqp_state(qp->uqp);

	if (state == AW_QP_RTS || state == AW_QP_CLOSING)
		atomic_compare_exchange_strong(&qp->walked, &init, IBV_QPS_RTS);
}

static int attr_check(struct vb_qp *qp, enum ibv_qp_state from, const struct ibv_qp_attr *attr,
		      int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int err;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	err = vb_qp_rule_check(qp->ibv.qp_base.qp_type, from, to, mask);
	if (!err)
		err = vb_qp_attr_check(attr, mask);
	if (err)
		return err;

	if (mask & IBV_QP_PATH_MTU &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096))
		return EINVAL;
	if (mask & IBV_QP_DEST_QPN && attr->dest_qp_num > QPN_MAX)
		return EINVAL;
	if (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > CODE_MAX)
		return EINVAL;
	if (mask & IBV_QP_TIMEOUT && attr->timeout > CODE_MAX)
		return EINVAL;
	if (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > COUNT_MAX)
		return EINVAL;
	if (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > COUNT_MAX)
		return EINVAL;
	return 0;
}

static int ends_by_gid(const struct ibv_global_route *grh, struct aw_pair *pair)
{
	struct ibv_gid_entry own;
	int err = vb_gid_at(grh->sgid_index, &own);

	if (err == EINVAL)
		aw_log(AW_LOG_ERROR,
		       "gid %u, this end's own (ah_attr.grh.sgid_index), is not in the gid table, which ibv_devinfo -v shows "
		       "(ibv_rc_pingpong: -g at both ends)",
		       grh->sgid_index);
	if (err)
		return err;
	if (gid_is_zero(grh->dgid.raw)) {
		aw_log(AW_LOG_ERROR,
		       "the peer's gid (ah_attr.grh.dgid) is zero: its program gave none (ibv_rc_pingpong: -g at "
		       "both ends)");
		return EINVAL;
	}
	if (gid_is_ipv4(own.gid.raw) != gid_is_ipv4(grh->dgid.raw)) {
		aw_log(AW_LOG_ERROR,
		       "gid %u is of %s, and the peer's (ah_attr.grh.dgid) is not: choose another "
		       "sgid_index",
		       grh->sgid_index, gid_is_ipv4(own.gid.raw) ? "ipv4" : "ipv6");
		return EINVAL;
	}
	memcpy(pair->local.gid, own.gid.raw, sizeof(pair->local.gid));
	memcpy(pair->remote.gid, grh->dgid.raw, sizeof(pair->remote.gid));
	pair->local.scope = pair->remote.scope = own.ndev_ifindex;
	return 0;
}

/*
 * A path without GRH: the program exchanges LIDs, and on Ethernet a port has none. The peer may still be of this host; a QP has its
 * port from its creation on, so one of this host can be told from one of another before anything is sent.
 */
static int ends_by_lid(uint16_t dlid, struct aw_pair *pair)
{
	if (dlid != VB_LID) {
		aw_log(AW_LOG_ERROR,
		       "qp 0x%x: ah_attr.dlid is %u, and an ethernet port has no lid but %u: to another host leads a gid "
		       "(ah_attr.is_global, grh.dgid; ibv_rc_pingpong: -g 0 at both ends)",
		       pair->local.qpn, dlid, VB_LID);
		return EINVAL;
	}
	if (!aw_qpn_is_of_host(pair->remote.qpn)) {
		aw_log(AW_LOG_ERROR,
		       "qp 0x%x: no process of this host has its peer, qp 0x%x, and " AW_QPN_NO_GRH
		       "; ibv_rc_pingpong: -g 0 at both ends, qperf: -cm 1)",
		       pair->local.qpn, pair->remote.qpn);
		return EINVAL;
	}
	aw_pair_loopback_gid(pair->local.gid);
	aw_pair_loopback_gid(pair->remote.gid);
	return 0;
}

static const enum pair_type pair_types[] = {
	[AW_XRC_NONE] = PAIR_RC,
	[AW_XRC_INITIATOR] = PAIR_XRC_INITIATOR,
	[AW_XRC_TARGET] = PAIR_XRC_TARGET,
};

static int to_rtr(struct vb_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct ibv_ah_attr *ah = &attr->ah_attr;
	struct aw_rc_told told = {
		.pair.local.qpn = qp->uqp->qpn,
		.pair.remote.qpn = attr->dest_qp_num,
		.pair.type = qp->uqp->attr.uc ? PAIR_UC : pair_types[qp->uqp->attr.xrc],
		.ird = attr->max_dest_rd_atomic, /* of the responder alone */
		.by_lid = !ah->is_global,
		.at_rts = qp->uqp->attr.xrc == AW_XRC_INITIATOR,
		.rnr_timer = rnr_timers[attr->min_rnr_timer],
	};
	int err = 0;

	/*
	 * A QPN without a port is none of this persona: rdma_init_qp_attr gives it for a QP that
	 * rdma_cm connects.
	 */
	if (!aw_qpn_port(attr->dest_qp_num))
		return 0;
	if (ah->is_global) {
		err = ends_by_gid(&ah->grh, &told.pair);
	} else {
		err = ends_by_lid(ah->dlid, &told.pair);
	}
	return err ? err : aw_rc_tell(qp->uqp->rc, &told);
}

/* 4.096 us * 2^timeout for each of the tries; 0: for ever. */
static uint32_t retry_ms(const struct ibv_qp_attr *attr)
{
	uint64_t ns = (UINT64_C(4096) << attr->timeout) * (attr->retry_cnt + 1u);

	return attr->timeout ? (uint32_t)(ns / 1000000) + 1 : 0;
}

/*
 * kept: the attributes that were given now and before. en_sqd_async_notify holds for the move that it comes with, and for no
 * later one.
 */
static int move(struct vb_qp *qp, enum ibv_qp_state from, const struct ibv_qp_attr *attr, int mask,
		const struct ibv_qp_attr *kept)
{
	bool notify = mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	int err = 0;

	switch (attr->qp_state) {
	case IBV_QPS_RESET:
		aw_rc_stop(qp->uqp->rc, false);
		aw_uqp_reset(qp->uqp);
		break;
	case IBV_QPS_ERR:
		aw_rc_stop(qp->uqp->rc, true);
		aw_uqp_abort(qp->uqp);
		break;
	case IBV_QPS_RTR:
		/* At once, for the event that the peer's first message raises (COMM_EST). */
		vb_qp_walk(qp, IBV_QPS_RTR);
		err = to_rtr(qp, kept);
		if (err)
			vb_qp_walk_back(qp, IBV_QPS_RTR, from);
		return err;
	case IBV_QPS_RTS:
		if (from != IBV_QPS_RTS)
			aw_uqp_halt(qp->uqp, false, false);
		break;
	case IBV_QPS_SQD:
		if (from != IBV_QPS_SQD)
			aw_uqp_halt(qp->uqp, true, notify);
		break;
	case IBV_QPS_INIT:
	case IBV_QPS_SQE:
	case IBV_QPS_UNKNOWN:
		break;
	}
	vb_qp_walk(qp, attr->qp_state);
	return 0;
}

/* The kernel ignores an RC QP's attributes that are of the other half, and perftest gives them. */
static int mask_read(const struct vb_qp *qp, int mask)
{
	switch (qp->uqp->attr.xrc) {
	case AW_XRC_NONE:
		break;
	case AW_XRC_INITIATOR:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case AW_XRC_TARGET:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	}
	return mask;
}

int vb_qp_roce_modify(struct vb_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	enum ibv_qp_state from, to;
	struct ibv_qp_attr before, kept;
	int err;

	if (qp->uqp->ud)
		return vb_qp_ud_modify(qp, attr, mask);
	mask = mask_read(qp, mask);
	from = vb_qp_roce_state(qp);
	err = attr_check(qp, from, attr, mask);
	if (err)
		return err;
	aw_lock(&ibv->mutex);
	before = qp->attr;
	vb_qp_attr_keep(&qp->attr, attr, mask);
	kept = qp->attr;
	aw_unlock(&ibv->mutex);
	if (mask & IBV_QP_ACCESS_FLAGS)
		vb_qp_access_grant(qp, attr->qp_access_flags);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (to == IBV_QPS_RTS || to == IBV_QPS_SQD) {
		/* The attributes that were given now and before: in RTS and SQD some may be given again. */
		const struct aw_rc_ready ready = {
			.ord = kept.max_rd_atomic,
			.retry_ms = retry_ms(&kept),
			.rnr_timer = rnr_timers[kept.min_rnr_timer],
			.rnr_retry = kept.rnr_retry,
		};

		if (aw_qpn_port(kept.dest_qp_num))
			aw_rc_ready(qp->uqp->rc, &ready);
	}
	if (mask & IBV_QP_STATE)
		err = move(qp, from, attr, mask, &kept);
	if (err) {
		aw_lock(&ibv->mutex);
		qp->attr = before;
		aw_unlock(&ibv->mutex);
		if (mask & IBV_QP_ACCESS_FLAGS)
			vb_qp_access_grant(qp, before.qp_access_flags);
	}
	vb_qp_state_sync(ibv);
	return err;
}
