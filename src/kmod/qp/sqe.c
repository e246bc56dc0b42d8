// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/qp/sqe.h"

#include "kmod/base/limits.h"

static const struct {
	u8 op; /* enum aw_op */
	bool known;
	bool kernel_only;
} ops[SIW_NUM_OPCODES] = {
	[SIW_OP_WRITE] = { AW_OP_WRITE, true },
	[SIW_OP_READ] = { AW_OP_READ, true },
	[SIW_OP_READ_LOCAL_INV] = { AW_OP_READ, true, true },
	[SIW_OP_SEND] = { AW_OP_SEND, true },
	[SIW_OP_SEND_REMOTE_INV] = { AW_OP_SEND_INV, true },
	[SIW_OP_INVAL_STAG] = { AW_OP_LOCAL_INV, true, true },
	[SIW_OP_REG_MR] = { AW_OP_BIND_MW, true, true },
};

static u8 flags_of(const struct siw_sqe *sqe)
{
	return (sqe->flags & SIW_WQE_SIGNALLED ? AW_WR_SIGNALED : 0) |
	       (sqe->flags & SIW_WQE_SOLICITED ? AW_WR_SOLICITED : 0) |
	       (sqe->flags & SIW_WQE_READ_FENCE ? AW_WR_FENCE : 0);
}

/* The bytes lie where the second SGE would. */
static bool take_inline(const struct siw_sqe *sqe, struct aw_swqe *wqe)
{
	u8 *data = (u8 *)wqe + offsetof(struct aw_swqe, data); /* a slot has room for it */

	if (!aw_op_is_one_way(wqe->op) || sqe->num_sge > 1)
		return false;
	wqe->flags |= AW_WR_INLINE;
	wqe->len = sqe->num_sge == 0 ? 0 : sqe->sge[0].length;
	if (wqe->len > AWK_INLINE_MAX)
		return false;
	memcpy(data, &sqe->sge[1], wqe->len);
	return true;
}

static bool take_sges(const struct siw_sqe *sqe, u32 sge_max, struct aw_swqe *wqe)
{
	struct aw_sge *sge = wqe->sge; /* a slot has room for AWK_SGE_MAX */
	u64 len = 0;

	if (sqe->num_sge > sge_max)
		return false;
	for (u32 i = 0; i < sqe->num_sge; i++) {
		sge[i] = (struct aw_sge){
			.addr = sqe->sge[i].laddr,
			.len = sqe->sge[i].length,
			.lkey = sqe->sge[i].lkey,
		};
		len += sqe->sge[i].length;
	}
	wqe->sge_count = sqe->num_sge;
	wqe->len = min_t(u64, len, U32_MAX);
	return len <= AW_MSG_MAX;
}

/* Takes operation and payload. False: the entry is malformed. */
static bool take_operation(const struct siw_sqe *sqe, bool user, u32 sge_max, struct aw_swqe *wqe)
{
	if (sqe->opcode >= SIW_NUM_OPCODES || !ops[sqe->opcode].known ||
	    (user && ops[sqe->opcode].kernel_only))
		return false;
	wqe->op = ops[sqe->opcode].op;
	if (sqe->opcode == SIW_OP_READ_LOCAL_INV)
		wqe->mark = AWK_MARK_READ_HALF;
	if (wqe->op == AW_OP_LOCAL_INV || wqe->op == AW_OP_BIND_MW) {
		wqe->access = sqe->opcode == SIW_OP_REG_MR ? sqe->access : 0;
		return true;
	}
	return sqe->flags & SIW_WQE_INLINE ? take_inline(sqe, wqe) : take_sges(sqe, sge_max, wqe);
}

void awk_sqe_to_wqe(const struct siw_sqe *sqe, bool user, u32 sge_max, struct aw_swqe *wqe)
{
	*wqe = (struct aw_swqe){
		.wr_id = sqe->id,
		.to = sqe->raddr,
		.stag = sqe->rkey,
		.inv_or_imm = sqe->rkey,
		.flags = flags_of(sqe),
	};
	if (take_operation(sqe, user, sge_max, wqe))
		return;
	/* The core fails an atomic without the extensions, and one of no bytes in any case. */
	wqe->op = AW_OP_CMP_SWAP;
	wqe->len = 0;
	wqe->sge_count = 0;
	wqe->flags = AW_WR_SIGNALED;
}

void awk_sqe_to_inv(const struct siw_sqe *sqe, struct aw_swqe *wqe)
{
	*wqe = (struct aw_swqe){
		.wr_id = sqe->id,
		.stag = sqe->sge[0].lkey,
		.op = AW_OP_LOCAL_INV,
		.flags = flags_of(sqe) | AW_WR_FENCE,
		.mark = AWK_MARK_INV_HALF,
	};
}
