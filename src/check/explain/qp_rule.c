// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/explain/qp_rule.h"

#include "check/explain/words.h"

/* The parts that the tables of the types share. */
#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_DATAGRAM (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_PATH (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTR_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_REQUESTER \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define RTS_OPTIONAL \
	(IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define RTS_DATAGRAM (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_OPTIONAL                                                             \
	(IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | \
	 IBV_QP_PATH_MIG_STATE)

static const struct aw_qp_rule rc_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_PATH | RTR_RESPONDER, RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | RTS_REQUESTER,
	  RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, SQD_OPTIONAL | IBV_QP_PORT | RTS_REQUESTER | RTR_RESPONDER },
};

static const struct aw_qp_rule uc_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_PATH, RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, SQD_OPTIONAL },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
};

static const struct aw_qp_rule ud_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_DATAGRAM, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_DATAGRAM },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, RTS_DATAGRAM },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_DATAGRAM },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_DATAGRAM },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, RTS_DATAGRAM },
};

static const struct aw_qp_rule packet_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PORT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RTS, 0, IBV_QP_RATE_LIMIT },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_RATE_LIMIT },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, 0 },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, 0 },
};

/* An XRC QP has the requester's or the responder's half of an RC QP's attributes. */
static const struct aw_qp_rule xrc_send_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_PATH, RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | RTS_REQUESTER, RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_OPTIONAL },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_OPTIONAL },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, SQD_OPTIONAL | IBV_QP_PORT | RTS_REQUESTER },
};

static const struct aw_qp_rule xrc_receive_rules[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_CONNECTED, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_CONNECTED },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_PATH | RTR_RESPONDER, RTR_OPTIONAL },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT,
	  RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_OPTIONAL | IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  SQD_OPTIONAL | IBV_QP_PORT | IBV_QP_TIMEOUT | RTR_RESPONDER },
};

/* To these two a QP goes from every state, and with the state alone. */
static const struct aw_qp_rule to_reset = { .to = IBV_QPS_RESET, .optional = IBV_QP_CUR_STATE };
static const struct aw_qp_rule to_error = { .to = IBV_QPS_ERR, .optional = IBV_QP_CUR_STATE };

static const struct aw_qp_rule *find_in(const struct aw_qp_rule *rules, size_t count,
					enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].from == from && rules[i].to == to)
			return &rules[i];
	return NULL;
}

const struct aw_qp_rule *aw_qp_rule_find(enum ibv_qp_type type, enum ibv_qp_state from,
					 enum ibv_qp_state to)
{
	if (to == IBV_QPS_RESET)
		return &to_reset;
	if (to == IBV_QPS_ERR)
		return &to_error;
	switch (type) {
	case IBV_QPT_RC:
		return find_in(rc_rules, AW_ARRAY_LEN(rc_rules), from, to);
	case IBV_QPT_UC:
		return find_in(uc_rules, AW_ARRAY_LEN(uc_rules), from, to);
	case IBV_QPT_UD:
		return find_in(ud_rules, AW_ARRAY_LEN(ud_rules), from, to);
	case IBV_QPT_RAW_PACKET:
		return find_in(packet_rules, AW_ARRAY_LEN(packet_rules), from, to);
	case IBV_QPT_XRC_SEND:
		return find_in(xrc_send_rules, AW_ARRAY_LEN(xrc_send_rules), from, to);
	case IBV_QPT_XRC_RECV:
		return find_in(xrc_receive_rules, AW_ARRAY_LEN(xrc_receive_rules), from, to);
	case IBV_QPT_DRIVER:
		break;
	}
	return NULL;
}
