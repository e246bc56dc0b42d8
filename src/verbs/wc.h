// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the core's CQE to the verbs' work completion, in place: a message makes several. The status numbers are the same.
#ifndef VERBS_WC_H
#define VERBS_WC_H

#include "net/cq/cq.h"
#include "verbs/newer.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

_Static_assert(AW_WC_SUCCESS == (int)IBV_WC_SUCCESS, "the core has verbs' numbers");
_Static_assert(AW_WC_LOC_LEN_ERR == (int)IBV_WC_LOC_LEN_ERR, "likewise");
_Static_assert(AW_WC_LOC_QP_OP_ERR == (int)IBV_WC_LOC_QP_OP_ERR, "likewise");
_Static_assert(AW_WC_LOC_PROT_ERR == (int)IBV_WC_LOC_PROT_ERR, "likewise");
_Static_assert(AW_WC_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR, "likewise");
_Static_assert(AW_WC_MW_BIND_ERR == (int)IBV_WC_MW_BIND_ERR, "likewise");
_Static_assert(AW_WC_LOC_ACCESS_ERR == (int)IBV_WC_LOC_ACCESS_ERR, "likewise");
_Static_assert(AW_WC_REM_INV_REQ_ERR == (int)IBV_WC_REM_INV_REQ_ERR, "likewise");
_Static_assert(AW_WC_REM_ACCESS_ERR == (int)IBV_WC_REM_ACCESS_ERR, "likewise");
_Static_assert(AW_WC_REM_OP_ERR == (int)IBV_WC_REM_OP_ERR, "likewise");
_Static_assert(AW_WC_RETRY_EXC_ERR == (int)IBV_WC_RETRY_EXC_ERR, "likewise");
_Static_assert(AW_WC_RNR_RETRY_EXC_ERR == (int)IBV_WC_RNR_RETRY_EXC_ERR, "likewise");
_Static_assert(AW_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR, "likewise");

static inline enum ibv_wc_opcode vb_wc_opcode(const struct aw_cq_entry *entry)
{
	if (entry->queue != AW_SQ)
		return entry->cqe.op == AW_OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	switch (entry->cqe.op) {
	case AW_OP_WRITE:
	case AW_OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case AW_OP_SEND:
	case AW_OP_SEND_INV:
	case AW_OP_SEND_IMM:
		return IBV_WC_SEND;
	case AW_OP_READ:
		return IBV_WC_RDMA_READ;
	case AW_OP_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case AW_OP_BIND_MW:
		return IBV_WC_BIND_MW;
	case AW_OP_CMP_SWAP:
		return IBV_WC_COMP_SWAP;
	case AW_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case AW_OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case AW_OP_FLUSH:
		return (enum ibv_wc_opcode)VB_WC_FLUSH;
	}
	__builtin_unreachable();
}

/*
 * The immediate data or the invalidated rkey of struct ibv_wc, depending on the CQE. An rkey is a number; immediate
 * data are bytes, as the sender gave them.
 */
static inline __be32 vb_wc_imm_or_rkey(const struct aw_cq_entry *entry)
{
	bool imm = entry->cqe.flags & AW_WC_WITH_IMM;

	return imm ? htonl(entry->cqe.inv_or_imm) : entry->cqe.inv_or_imm;
}

static inline unsigned int vb_wc_flags(const struct aw_cq_entry *entry)
{
	unsigned int flags = 0;

	if (entry->cqe.flags & AW_WC_WITH_IMM)
		flags |= IBV_WC_WITH_IMM;
	if (entry->cqe.flags & AW_WC_WITH_INV)
		flags |= IBV_WC_WITH_INV;
	if (entry->cqe.flags & AW_WC_GRH)
		flags |= IBV_WC_GRH;
	return flags;
}

static inline void vb_wc_fill(struct ibv_wc *wc, const struct aw_cq_entry *entry)
{
	*wc = (struct ibv_wc){
		.wr_id = entry->cqe.wr_id,
		.status = (enum ibv_wc_status)entry->cqe.status,
		.opcode = vb_wc_opcode(entry),
		.vendor_err = entry->cqe.vendor_err,
		.byte_len = entry->cqe.byte_len,
		.imm_data = vb_wc_imm_or_rkey(entry),
		.qp_num = entry->qpn,
		.src_qp = entry->cqe.src_qpn,
		.sl = entry->cqe.sl,
		.wc_flags = vb_wc_flags(entry),
	};
}

#endif
