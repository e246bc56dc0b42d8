// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The transitions of RC, UC and UD QPs on InfiniBand. A QP goes to RESET and ERR from every state,
// without other attributes.
#include "verbs/qp_rule.h"

#include <errno.h>
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

int vb_qp_rule_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	static const struct rule anywhere = { .optional = IBV_QP_CUR_STATE };
	const struct rule *rule;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		rule = &anywhere;
	else if (type == IBV_QPT_UD)
		rule = rule_find(ud_rules, sizeof(ud_rules) / sizeof(ud_rules[0]), from, to);
	else if (type == IBV_QPT_UC)
		rule = rule_find(uc_rules, sizeof(uc_rules) / sizeof(uc_rules[0]), from, to);
	else
		rule = rule_find(rc_rules, sizeof(rc_rules) / sizeof(rc_rules[0]), from, to);
	if (!rule || (mask & rule->required) != rule->required)
		return EINVAL;
	return mask & ~(IBV_QP_STATE | rule->required | rule->optional) ? EINVAL : 0;
}
