// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Why ibv_modify_qp failed. The checks are in the order in which a program mends them: the transition, its attributes, the
// values.
#include "check/explain/qp_rule.h"
#include "check/explain/words.h"

#include <errno.h>

#define QPN_MAX 0xffffffu
#define CODE_MAX 31 /* of a timer */
#define COUNT_MAX 7 /* of retries */

/* The states that a QP reaches on its way to RTS, each from the one before. */
static enum ibv_qp_state state_after(enum ibv_qp_state from)
{
	switch (from) {
	case IBV_QPS_RESET:
		return IBV_QPS_INIT;
	case IBV_QPS_INIT:
		return IBV_QPS_RTR;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return IBV_QPS_RTS;
	case IBV_QPS_ERR:
	case IBV_QPS_UNKNOWN:
		break;
	}
	return IBV_QPS_RESET;
}

static bool explain_transition(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr,
			       int mask, char why[AW_EXPLAIN_MAX])
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		aw_reason_set(why, "cur_qp_state %s, but %s is in %s",
			      aw_state_name(attr->cur_qp_state), qp->object,
			      aw_state_name(qp->state));
	else if (qp->is_iwarp && (to == IBV_QPS_RTR || to == IBV_QPS_RTS) &&
		 (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT ||
		  qp->state == IBV_QPS_RTR))
		aw_reason_set(
			why,
			"an iWARP QP is connected by rdma_cm alone, not by a move to %s (perftest: -R at both ends; anywarp run --persona roce at both ends has the move)",
			aw_state_name(to));
	else if (qp->type != IBV_QPT_DRIVER && !aw_qp_rule_find(qp->type, qp->state, to))
		aw_reason_set(why, "no transition leads from %s to %s; %s comes next",
			      aw_state_name(qp->state), aw_state_name(to),
			      aw_state_name(state_after(qp->state)));
	else
		return false;
	return true;
}

/* Some devices want less than the specification, or take more; of a call that failed its rules are still the likeliest reason. */
static bool explain_mask(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr, int mask,
			 char why[AW_EXPLAIN_MAX])
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	const struct aw_qp_rule *rule = aw_qp_rule_find(qp->type, qp->state, to);
	bool vowel = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_SEND ||
		     qp->type == IBV_QPT_XRC_RECV;
	unsigned missing, excess, told;

	if (!rule || qp->is_iwarp)
		return false;
	missing = (unsigned)(rule->required & ~mask);
	excess = (unsigned)(mask & ~(IBV_QP_STATE | rule->required | rule->optional));
	told = missing ? missing : excess;
	if (!told)
		return false;
	bool many = told & (told - 1);

	aw_reason_set(why, many ? "the attributes " : "the attribute ");
	aw_reason_add_bits(why, told, aw_qp_attr_name);
	aw_reason_add(why, " %s %s for %s to %s of %s %s QP", many ? "are" : "is",
		      missing ? "missing" : "not allowed", aw_state_name(qp->state),
		      aw_state_name(to), vowel ? "an" : "a", aw_qp_type_name(qp->type));
	return true;
}

/* The values of a counter or a code that stand in a few bits, and what the device takes. */
static bool explain_ranges(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr, int mask,
			   char why[AW_EXPLAIN_MAX])
{
	const struct ibv_device_attr *device = qp->device;
	const struct {
		int bit;
		const char *name;
		uint32_t value;
		int64_t max; /* -1: not known */
		const char *of;
	} ranges[] = {
		{ IBV_QP_DEST_QPN, "dest_qp_num", attr->dest_qp_num, QPN_MAX,
		  "the highest QP number is" },
		{ IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr->min_rnr_timer, CODE_MAX,
		  "the highest code is" },
		{ IBV_QP_TIMEOUT, "timeout", attr->timeout, CODE_MAX, "the highest code is" },
		{ IBV_QP_RETRY_CNT, "retry_cnt", attr->retry_cnt, COUNT_MAX,
		  "the counter goes to" },
		{ IBV_QP_RNR_RETRY, "rnr_retry", attr->rnr_retry, COUNT_MAX,
		  "the counter goes to the value that means without end," },
		{ IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", attr->max_rd_atomic,
		  device ? device->max_qp_init_rd_atom : -1,
		  "the device's max_qp_init_rd_atom is" },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", attr->max_dest_rd_atomic,
		  device ? device->max_qp_rd_atom : -1, "the device's max_qp_rd_atom is" },
		{ IBV_QP_PKEY_INDEX, "pkey_index", attr->pkey_index,
		  qp->port && qp->port->pkey_tbl_len ? qp->port->pkey_tbl_len - 1 : -1,
		  "the last index of the port's P_Key table is" },
		{ IBV_QP_PORT, "port_num", attr->port_num,
		  device && device->phys_port_cnt ? device->phys_port_cnt : -1,
		  "the device's phys_port_cnt is" },
	};

	for (size_t i = 0; i < AW_ARRAY_LEN(ranges); i++) {
		if (!(mask & ranges[i].bit) || ranges[i].max < 0 ||
		    ranges[i].value <= ranges[i].max)
			continue;
		aw_reason_set(why, "%s %u, but %s %lld", ranges[i].name, ranges[i].value,
			      ranges[i].of, (long long)ranges[i].max);
		return true;
	}
	return false;
}

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

static bool explain_values(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr, int mask,
			   char why[AW_EXPLAIN_MAX])
{
	bool has_mtu = mask & IBV_QP_PATH_MTU, has_path = mask & IBV_QP_AV;
	enum ibv_mtu mtu = attr->path_mtu;

	if (mask & IBV_QP_PORT && !attr->port_num)
		aw_reason_set(why, "port_num 0, but the first port is 1");
	else if (explain_ranges(qp, attr, mask, why))
		return true;
	else if (has_mtu && (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096))
		aw_reason_set(
			why,
			"path_mtu %u is no value of enum ibv_mtu, which counts from IBV_MTU_256, 1, to IBV_MTU_4096, 5",
			mtu);
	else if (has_mtu && qp->port && qp->port->active_mtu >= IBV_MTU_256 &&
		 mtu > qp->port->active_mtu)
		aw_reason_set(why, "path_mtu is IBV_MTU_%u, but port %u has active_mtu %u",
			      mtu_bytes(mtu), qp->port_num, mtu_bytes(qp->port->active_mtu));
	else if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC &&
		 qp->device && qp->device->atomic_cap == IBV_ATOMIC_NONE)
		aw_reason_set(
			why,
			"qp_access_flags has IBV_ACCESS_REMOTE_ATOMIC, but the device's atomic_cap is IBV_ATOMIC_NONE");
	else if (has_path && !attr->ah_attr.port_num)
		aw_reason_set(why, "ah_attr.port_num 0, but the first port is 1");
	else if (has_path && qp->port_num && attr->ah_attr.port_num != qp->port_num)
		aw_reason_set(why, "ah_attr.port_num %u, but %s was moved to INIT with port_num %u",
			      attr->ah_attr.port_num, qp->object, qp->port_num);
	else
		return has_path && aw_reason_path("ah_attr.", &attr->ah_attr, qp->port, why);
	return true;
}

/* The values pass what can be compared, so the network is at fault, or what only the kernel knows of it. */
static bool guess_path(const struct ibv_ah_attr *path, int err, char why[AW_EXPLAIN_MAX])
{
	const uint8_t *dgid = path->grh.dgid.raw;
	bool link_local = dgid[0] == 0xfe && (dgid[1] & 0xc0) == 0x80;
	bool unreached = err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH;
	unsigned gid = path->grh.sgid_index;

	if (!path->is_global)
		return false;
	if (err == EINVAL)
		aw_reason_guess(
			why, err,
			"most likely entry %u of the GID table (grh.sgid_index) is empty, or of another RoCE version or IP version than the peer's GID (ibv_devinfo -v, show_gids); or grh.dgid came from another program or in another byte order",
			gid);
	else if (unreached && link_local)
		aw_reason_guess(
			why, err,
			"most likely grh.dgid is the peer's link-local GID (fe80::), which reaches one network alone: both ends need a grh.sgid_index whose GID is of a routed address and of RoCE v2 (ibv_devinfo -v, show_gids; NCCL_IB_GID_INDEX)");
	else if (unreached)
		aw_reason_guess(
			why, err,
			"the kernel found no way from GID %u to grh.dgid: no route, or no answer to ARP or neighbor discovery (ping the peer from that interface); with several ports, each has to reach the peer's network",
			gid);
	else if (err == ENODEV || err == ENOENT)
		aw_reason_guess(why, err,
				"entry %u of the GID table has no network interface (any more)",
				gid);
	else
		return false;
	return true;
}

void aw_explain_modify_qp(const struct aw_explain_qp *qp, const struct ibv_qp_attr *attr, int mask,
			  int err, char why[AW_EXPLAIN_MAX])
{
	/* A device of iWARP may take a move to RTR, which means nothing there, and still check its values. */
	if (qp->is_iwarp && explain_ranges(qp, attr, mask, why))
		return;
	if (explain_transition(qp, attr, mask, why) || explain_mask(qp, attr, mask, why) ||
	    explain_values(qp, attr, mask, why))
		return;
	if (mask & IBV_QP_AV && guess_path(&attr->ah_attr, err, why))
		return;
	aw_explain_errno("ibv_modify_qp", err, why);
}
