// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/words.h"

#include "base/array.h"
#include "check/base/newer.h"
#include "check/faults/near.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
	SEND = 1u << 0,
	WRITE = 1u << 1,
	READ = 1u << 2,
	COMP_SWAP = 1u << 3,
	FETCH_ADD = 1u << 4,
	BIND_MW = 1u << 5,
	LOCAL_INV = 1u << 6,
	RECV = 1u << 7,
	RECV_IMM = 1u << 8,
	ATOMIC_WRITE = 1u << 9,
	FLUSH = 1u << 10,
	ATOMIC = COMP_SWAP | FETCH_ADD,
	/* goes to the peer */
	REQUEST = SEND | WRITE | READ | ATOMIC | ATOMIC_WRITE | FLUSH,
	RECEIVE = RECV | RECV_IMM,
	LOCAL = BIND_MW | LOCAL_INV,
};

const struct aw_fault_word aw_fault_errnos[] = {
	{ "E2BIG", E2BIG },
	{ "EACCES", EACCES },
	{ "EADDRINUSE", EADDRINUSE },
	{ "EADDRNOTAVAIL", EADDRNOTAVAIL },
	{ "EAFNOSUPPORT", EAFNOSUPPORT },
	{ "EAGAIN", EAGAIN },
	{ "EALREADY", EALREADY },
	{ "EBADF", EBADF },
	{ "EBUSY", EBUSY },
	{ "ECONNABORTED", ECONNABORTED },
	{ "ECONNREFUSED", ECONNREFUSED },
	{ "ECONNRESET", ECONNRESET },
	{ "EEXIST", EEXIST },
	{ "EFAULT", EFAULT },
	{ "EHOSTDOWN", EHOSTDOWN },
	{ "EHOSTUNREACH", EHOSTUNREACH },
	{ "EINPROGRESS", EINPROGRESS },
	{ "EINTR", EINTR },
	{ "EINVAL", EINVAL },
	{ "EIO", EIO },
	{ "EISCONN", EISCONN },
	{ "EMFILE", EMFILE },
	{ "EMSGSIZE", EMSGSIZE },
	{ "ENETDOWN", ENETDOWN },
	{ "ENETUNREACH", ENETUNREACH },
	{ "ENFILE", ENFILE },
	{ "ENOBUFS", ENOBUFS },
	{ "ENODATA", ENODATA },
	{ "ENODEV", ENODEV },
	{ "ENOENT", ENOENT },
	{ "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC },
	{ "ENOSYS", ENOSYS },
	{ "ENOTCONN", ENOTCONN },
	{ "ENOTSUP", ENOTSUP },
	{ "ENXIO", ENXIO },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "EPERM", EPERM },
	{ "EPIPE", EPIPE },
	{ "EPROTO", EPROTO },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
	{ "ERANGE", ERANGE },
	{ "ESTALE", ESTALE },
	{ "ETIMEDOUT", ETIMEDOUT },
	{ NULL, 0 },
};

const struct aw_fault_word aw_fault_statuses[] = {
	{ "LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR },
	{ "LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR },
	{ "LOC_EEC_OP_ERR", IBV_WC_LOC_EEC_OP_ERR },
	{ "LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR },
	{ "MW_BIND_ERR", IBV_WC_MW_BIND_ERR },
	{ "BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR },
	{ "LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR },
	{ "REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR },
	{ "REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR },
	{ "REM_OP_ERR", IBV_WC_REM_OP_ERR },
	{ "RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR },
	{ "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR },
	{ "LOC_RDD_VIOL_ERR", IBV_WC_LOC_RDD_VIOL_ERR },
	{ "REM_INV_RD_REQ_ERR", IBV_WC_REM_INV_RD_REQ_ERR },
	{ "REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR },
	{ "INV_EECN_ERR", IBV_WC_INV_EECN_ERR },
	{ "INV_EEC_STATE_ERR", IBV_WC_INV_EEC_STATE_ERR },
	{ "FATAL_ERR", IBV_WC_FATAL_ERR },
	{ "RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR },
	{ "GENERAL_ERR", IBV_WC_GENERAL_ERR },
	{ "TM_ERR", IBV_WC_TM_ERR },
	{ "TM_RNDV_INCOMPLETE", IBV_WC_TM_RNDV_INCOMPLETE },
	{ NULL, 0 },
};

const struct aw_fault_word aw_fault_ops[] = {
	{ "send", SEND },
	{ "write", WRITE },
	{ "read", READ },
	{ "atomic", ATOMIC },
	{ "comp_swap", COMP_SWAP },
	{ "fetch_add", FETCH_ADD },
	{ "atomic_write", ATOMIC_WRITE },
	{ "flush", FLUSH },
	{ "bind_mw", BIND_MW },
	{ "local_inv", LOCAL_INV },
	{ "recv", RECEIVE },
	{ "recv_imm", RECV_IMM },
	{ NULL, 0 },
};

const struct aw_fault_word aw_fault_async_events[] = {
	{ "DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL },
	{ "PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE },
	{ "PORT_ERR", IBV_EVENT_PORT_ERR },
	{ "LID_CHANGE", IBV_EVENT_LID_CHANGE },
	{ "PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE },
	{ "SM_CHANGE", IBV_EVENT_SM_CHANGE },
	{ "CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER },
	{ "GID_CHANGE", IBV_EVENT_GID_CHANGE },
	{ NULL, 0 },
};

const struct aw_fault_word aw_fault_cm_events[] = {
	{ "ADDR_RESOLVED", RDMA_CM_EVENT_ADDR_RESOLVED },
	{ "ADDR_ERROR", RDMA_CM_EVENT_ADDR_ERROR },
	{ "ROUTE_RESOLVED", RDMA_CM_EVENT_ROUTE_RESOLVED },
	{ "ROUTE_ERROR", RDMA_CM_EVENT_ROUTE_ERROR },
	{ "CONNECT_REQUEST", RDMA_CM_EVENT_CONNECT_REQUEST },
	{ "CONNECT_RESPONSE", RDMA_CM_EVENT_CONNECT_RESPONSE },
	{ "CONNECT_ERROR", RDMA_CM_EVENT_CONNECT_ERROR },
	{ "UNREACHABLE", RDMA_CM_EVENT_UNREACHABLE },
	{ "REJECTED", RDMA_CM_EVENT_REJECTED },
	{ "ESTABLISHED", RDMA_CM_EVENT_ESTABLISHED },
	{ "DISCONNECTED", RDMA_CM_EVENT_DISCONNECTED },
	{ "DEVICE_REMOVAL", RDMA_CM_EVENT_DEVICE_REMOVAL },
	{ "MULTICAST_JOIN", RDMA_CM_EVENT_MULTICAST_JOIN },
	{ "MULTICAST_ERROR", RDMA_CM_EVENT_MULTICAST_ERROR },
	{ "ADDR_CHANGE", RDMA_CM_EVENT_ADDR_CHANGE },
	{ "TIMEWAIT_EXIT", RDMA_CM_EVENT_TIMEWAIT_EXIT },
	{ NULL, 0 },
};

uint32_t aw_fault_op_bit(enum ibv_wc_opcode opcode)
{
	static const struct {
		enum ibv_wc_opcode opcode;
		uint32_t bit;
	} bits[] = {
		{ IBV_WC_SEND, SEND },
		{ IBV_WC_RDMA_WRITE, WRITE },
		{ IBV_WC_RDMA_READ, READ },
		{ IBV_WC_COMP_SWAP, COMP_SWAP },
		{ IBV_WC_FETCH_ADD, FETCH_ADD },
		{ IBV_WC_ATOMIC_WRITE, ATOMIC_WRITE },
		{ (enum ibv_wc_opcode)AW_NEWER_WC_FLUSH, FLUSH },
		{ IBV_WC_BIND_MW, BIND_MW },
		{ IBV_WC_LOCAL_INV, LOCAL_INV },
		{ IBV_WC_RECV, RECV },
		{ IBV_WC_TSO, SEND },
		{ IBV_WC_RECV_RDMA_WITH_IMM, RECV_IMM },
	};

	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		if (bits[i].opcode == opcode)
			return bits[i].bit;
	return 0;
}

/* InfiniBand 1.4, 11.6.2; ibv_poll_cq(3). The statuses of reliable datagrams are those of no QP that verbs can create. */
uint32_t aw_fault_status_ops(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_PROT_ERR:
		return (REQUEST & ~FLUSH) | RECEIVE;
	case IBV_WC_LOC_QP_OP_ERR:
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_FATAL_ERR:
	case IBV_WC_GENERAL_ERR:
		return REQUEST | RECEIVE | LOCAL;
	case IBV_WC_MW_BIND_ERR:
		return LOCAL;
	case IBV_WC_BAD_RESP_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return REQUEST;
	case IBV_WC_REM_ACCESS_ERR:
		return WRITE | READ | ATOMIC | ATOMIC_WRITE | FLUSH;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return SEND | WRITE;
	case IBV_WC_LOC_ACCESS_ERR:
		return RECV_IMM;
	case IBV_WC_SUCCESS:
	case IBV_WC_LOC_EEC_OP_ERR:
	case IBV_WC_LOC_RDD_VIOL_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
	case IBV_WC_REM_ABORT_ERR:
	case IBV_WC_INV_EECN_ERR:
	case IBV_WC_INV_EEC_STATE_ERR:
	case IBV_WC_TM_ERR:
	case IBV_WC_TM_RNDV_INCOMPLETE:
		return 0;
	}
	return 0;
}

uint32_t aw_fault_cm_replaces(enum rdma_cm_event_type event)
{
	const uint32_t connected = 1u << RDMA_CM_EVENT_ESTABLISHED |
				   1u << RDMA_CM_EVENT_CONNECT_RESPONSE;

	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return 1u << RDMA_CM_EVENT_ADDR_RESOLVED;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return 1u << RDMA_CM_EVENT_ROUTE_RESOLVED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		return connected;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return connected | 1u << RDMA_CM_EVENT_ADDR_RESOLVED |
		       1u << RDMA_CM_EVENT_ROUTE_RESOLVED | 1u << RDMA_CM_EVENT_DISCONNECTED |
		       1u << RDMA_CM_EVENT_MULTICAST_JOIN;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return 1u << RDMA_CM_EVENT_MULTICAST_JOIN;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	}
	return 0;
}

int aw_fault_cm_status(enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return -ECONNRESET;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return -ENETUNREACH;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	}
	return 0;
}

static struct aw_slice without_prefix(const char *prefix, struct aw_slice slice)
{
	size_t len = strlen(prefix);

	if (slice.len <= len || strncasecmp(slice.at, prefix, len) != 0)
		return slice;
	return (struct aw_slice){ slice.at + len, slice.len - len };
}

const struct aw_fault_word *aw_fault_word_find(const struct aw_fault_word *words,
					       const char *prefix, struct aw_slice slice)
{
	struct aw_slice bare = without_prefix(prefix, slice);

	for (; words->name; words++)
		if (strlen(words->name) == bare.len &&
		    strncasecmp(words->name, bare.at, bare.len) == 0)
			return words;
	return NULL;
}

const char *aw_fault_word_name(const struct aw_fault_word *words, int value)
{
	for (; words->name; words++)
		if (words->value == value)
			return words->name;
	return "?";
}

const char *aw_fault_word_nearest(const struct aw_fault_word *words, const char *prefix,
				  struct aw_slice slice)
{
	struct aw_near near = aw_near_to(without_prefix(prefix, slice));

	for (; words->name; words++)
		aw_near_try(&near, words->name);
	return near.word;
}
