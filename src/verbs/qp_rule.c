// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transitions of RC, UC, UD and XRC QPs on InfiniBand. A QP goes to RESET and ERR from every state,
// without other attributes.
#include "verbs/qp_rule.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define RC_RTS_OPTIONAL                                                                     \
	(IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE | \
	 IBV_QP_MIN_RNR_TIMER)
#define UC_RTS_OPTIONAL \
	(IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define UD_RTS_OPTIONAL (IBV_QP_CUR_STATE | IBV_QP_QKEY)

struct rule {
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct rule rc_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC,
	  RC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RC_RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
		  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER |
		  IBV_QP_PATH_MIG_STATE },
};

/* Nothing is read, acknowledged or sent again. */
static const struct rule uc_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UC_RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		  IBV_QP_PATH_MIG_STATE },
};

/* A QP of XRC has the requester's or the responder's half of an RC QP's attributes. */
#define XRC_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define XRC_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define XRC_RTR_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define XRC_REQUESTER \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define XRC_RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define XRC_RTS_OPTIONAL \
	(IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define XRC_SQD_OPTIONAL                                                                    \
	(IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | \
	 IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)

static const struct rule xrc_initiator_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, XRC_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, XRC_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, XRC_RTR, XRC_RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | XRC_REQUESTER, XRC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, XRC_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, XRC_RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, XRC_SQD_OPTIONAL | XRC_REQUESTER },
};

static const struct rule xrc_target_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, XRC_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, XRC_INIT },
	{ IBV_QPS_INIT, IBV_QPS_RTR, XRC_RTR | XRC_RESPONDER, XRC_RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT,
	  XRC_RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, XRC_RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, XRC_RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, XRC_SQD_OPTIONAL | XRC_RESPONDER },
};

static const struct rule ud_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, UD_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, UD_RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, UD_RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, UD_RTS_OPTIONAL },
};

static const struct rule *rule_find(const struct rule *rules, size_t count, enum ibv_qp_state from,
				    enum ibv_qp_state to)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].from == from && rules[i].to == to)
			return &rules[i];
	return NULL;
}

#define FIND_IN(rules) rule_find(rules, sizeof(rules) / sizeof((rules)[0]), from, to)

static const struct rule *rule_of(enum ibv_qp_type type, enum ibv_qp_state from,
				  enum ibv_qp_state to)
{
	if (type == IBV_QPT_UD)
		return FIND_IN(ud_rules);
	if (type == IBV_QPT_UC)
		return FIND_IN(uc_rules);
	if (type == IBV_QPT_XRC_SEND)
		return FIND_IN(xrc_initiator_rules);
	if (type == IBV_QPT_XRC_RECV)
		return FIND_IN(xrc_target_rules);
	return FIND_IN(rc_rules);
}

int vb_qp_rule_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	static const struct rule anywhere = { .optional = IBV_QP_CUR_STATE };
	bool ends = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
	const struct rule *rule = ends ? &anywhere : rule_of(type, from, to);

	if (!rule || (mask & rule->required) != rule->required)
		return EINVAL;
	return mask & ~(IBV_QP_STATE | rule->required | rule->optional) ? EINVAL : 0;
}
