// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/explain/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *aw_state_name(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return "RESET";
	case IBV_QPS_INIT:
		return "INIT";
	case IBV_QPS_RTR:
		return "RTR";
	case IBV_QPS_RTS:
		return "RTS";
	case IBV_QPS_SQD:
		return "SQD";
	case IBV_QPS_SQE:
		return "SQE";
	case IBV_QPS_ERR:
		return "ERR";
	case IBV_QPS_UNKNOWN:
		break;
	}
	return "an unknown state";
}

const char *aw_qp_type_name(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_RAW_PACKET:
		return "raw packet";
	case IBV_QPT_XRC_SEND:
		return "XRC send";
	case IBV_QPT_XRC_RECV:
		return "XRC receive";
	case IBV_QPT_DRIVER:
		return "driver-specific";
	}
	return "unknown type of";
}

const char *aw_opcode_name(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "IBV_WR_RDMA_WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "IBV_WR_RDMA_WRITE_WITH_IMM",
		[IBV_WR_SEND] = "IBV_WR_SEND",
		[IBV_WR_SEND_WITH_IMM] = "IBV_WR_SEND_WITH_IMM",
		[IBV_WR_RDMA_READ] = "IBV_WR_RDMA_READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "IBV_WR_ATOMIC_CMP_AND_SWP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "IBV_WR_ATOMIC_FETCH_AND_ADD",
		[IBV_WR_LOCAL_INV] = "IBV_WR_LOCAL_INV",
		[IBV_WR_BIND_MW] = "IBV_WR_BIND_MW",
		[IBV_WR_SEND_WITH_INV] = "IBV_WR_SEND_WITH_INV",
		[IBV_WR_TSO] = "IBV_WR_TSO",
		[IBV_WR_DRIVER1] = "IBV_WR_DRIVER1",
		[AW_NEWER_WR_FLUSH] = "IBV_WR_FLUSH",
		[IBV_WR_ATOMIC_WRITE] = "IBV_WR_ATOMIC_WRITE",
	};
	const char *name = opcode < AW_ARRAY_LEN(names) ? names[opcode] : NULL;

	return name ? name : "an unknown opcode";
}

const char *aw_errno_name(int err)
{
	return strerrorname_np(err);
}

static const char *bit_name(unsigned bit, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bit == 1u << i)
			return names[i];
	return NULL;
}

const char *aw_qp_attr_name(unsigned bit)
{
	static const char *const names[] = {
		"IBV_QP_STATE",
		"IBV_QP_CUR_STATE",
		"IBV_QP_EN_SQD_ASYNC_NOTIFY",
		"IBV_QP_ACCESS_FLAGS",
		"IBV_QP_PKEY_INDEX",
		"IBV_QP_PORT",
		"IBV_QP_QKEY",
		"IBV_QP_AV",
		"IBV_QP_PATH_MTU",
		"IBV_QP_TIMEOUT",
		"IBV_QP_RETRY_CNT",
		"IBV_QP_RNR_RETRY",
		"IBV_QP_RQ_PSN",
		"IBV_QP_MAX_QP_RD_ATOMIC",
		"IBV_QP_ALT_PATH",
		"IBV_QP_MIN_RNR_TIMER",
		"IBV_QP_SQ_PSN",
		"IBV_QP_MAX_DEST_RD_ATOMIC",
		"IBV_QP_PATH_MIG_STATE",
		"IBV_QP_CAP",
		"IBV_QP_DEST_QPN",
	};

	if (bit == IBV_QP_RATE_LIMIT)
		return "IBV_QP_RATE_LIMIT";
	return bit_name(bit, names, AW_ARRAY_LEN(names));
}

const char *aw_access_name(unsigned bit)
{
	static const char *const names[] = {
		"IBV_ACCESS_LOCAL_WRITE",      "IBV_ACCESS_REMOTE_WRITE", "IBV_ACCESS_REMOTE_READ",
		"IBV_ACCESS_REMOTE_ATOMIC",    "IBV_ACCESS_MW_BIND",	  "IBV_ACCESS_ZERO_BASED",
		"IBV_ACCESS_ON_DEMAND",	       "IBV_ACCESS_HUGETLB",	  "IBV_ACCESS_FLUSH_GLOBAL",
		"IBV_ACCESS_FLUSH_PERSISTENT",
	};

	return bit_name(bit, names, AW_ARRAY_LEN(names));
}

static void reason_append(char why[AW_EXPLAIN_MAX], const char *format, va_list args)
{
	size_t len = strnlen(why, AW_EXPLAIN_MAX - 1);

	vsnprintf(why + len, AW_EXPLAIN_MAX - len, format, args);
}

void aw_reason_set(char why[AW_EXPLAIN_MAX], const char *format, ...)
{
	va_list args;

	why[0] = '\0';
	va_start(args, format);
	reason_append(why, format, args);
	va_end(args);
}

void aw_reason_add(char why[AW_EXPLAIN_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	reason_append(why, format, args);
	va_end(args);
}

void aw_reason_guess(char why[AW_EXPLAIN_MAX], int err, const char *format, ...)
{
	const char *name = aw_errno_name(err);
	va_list args;

	if (name)
		aw_reason_set(why, "%s: ", name);
	else
		aw_reason_set(why, "error %d: ", err);
	va_start(args, format);
	reason_append(why, format, args);
	va_end(args);
}

void aw_reason_add_bits(char why[AW_EXPLAIN_MAX], unsigned bits, const char *(*name)(unsigned bit))
{
	for (const char *between = ""; bits; bits &= bits - 1) {
		unsigned bit = bits & -bits;
		const char *known = name(bit);

		aw_reason_add(why, "%s", between);
		if (known)
			aw_reason_add(why, "%s", known);
		else
			aw_reason_add(why, "0x%x", bit);
		/* The next word is the last where the rest is one bit. */
		unsigned rest = bits & (bits - 1);

		between = rest & (rest - 1) ? ", " : " and ";
	}
}
