// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's work requests as entries of the ring.
#include "kmod/base/limits.h"
#include "kmod/qp/sqe.h"

#include <linux/string.h>

static int opcode_of(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
		return SIW_OP_WRITE;
	case IB_WR_RDMA_READ:
		return SIW_OP_READ;
	case IB_WR_RDMA_READ_WITH_INV:
		return SIW_OP_READ_LOCAL_INV;
	case IB_WR_SEND:
		return SIW_OP_SEND;
	case IB_WR_SEND_WITH_INV:
		return SIW_OP_SEND_REMOTE_INV;
	case IB_WR_LOCAL_INV:
		return SIW_OP_INVAL_STAG;
	case IB_WR_REG_MR:
		return SIW_OP_REG_MR;
	default:
		return -EINVAL;
	}
}

static u16 flags_of(const struct ib_send_wr *wr)
{
	return (wr->send_flags & IB_SEND_SIGNALED ? SIW_WQE_SIGNALLED : 0) |
	       (wr->send_flags & IB_SEND_SOLICITED ? SIW_WQE_SOLICITED : 0) |
	       (wr->send_flags & IB_SEND_FENCE ? SIW_WQE_READ_FENCE : 0) |
	       (wr->send_flags & IB_SEND_INLINE ? SIW_WQE_INLINE : 0);
}

static int put_inline(struct siw_sqe *sqe, const struct ib_send_wr *wr)
{
	u8 *data = (u8 *)&sqe->sge[1];
	u32 len = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > AWK_INLINE_MAX - len)
			return -EINVAL;
		memcpy(data + len, (const void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	sqe->num_sge = 1;
	sqe->sge[0].length = len;
	return 0;
}

static int put_sges(struct siw_sqe *sqe, const struct ib_send_wr *wr, u32 sge_max)
{
	if (wr->num_sge < 0 || wr->num_sge > sge_max)
		return -EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		sqe->sge[i] = (struct siw_sge){
			.laddr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	sqe->num_sge = wr->num_sge;
	return 0;
}

/* Writes the fields that the operation has besides its payload. */
static int put_operation(struct siw_sqe *sqe, const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *reg;

	switch (sqe->opcode) {
	case SIW_OP_READ_LOCAL_INV:
		/* rdma_rw renews the key without changing invalidate_rkey: the region of its one SGE is invalidated. */
		if (wr->num_sge != 1)
			return -EINVAL;
		fallthrough;
	case SIW_OP_WRITE:
	case SIW_OP_READ:
		sqe->raddr = rdma_wr(wr)->remote_addr;
		sqe->rkey = rdma_wr(wr)->rkey;
		return 0;
	case SIW_OP_REG_MR:
		reg = reg_wr(wr);
		/* The region is found by its index, which a new key does not change. */
		if (reg->key >> 8 != reg->mr->rkey >> 8)
			return -EINVAL;
		sqe->rkey = reg->key;
		sqe->access = reg->access;
		return 0;
	case SIW_OP_SEND_REMOTE_INV:
	case SIW_OP_INVAL_STAG:
		sqe->rkey = wr->ex.invalidate_rkey;
		return 0;
	default:
		return 0;
	}
}

int awk_sqe_from_wr(struct siw_sqe *sqe, const struct ib_send_wr *wr, u32 sge_max)
{
	int opcode = opcode_of(wr);
	int err;

	if (opcode < 0)
		return opcode;
	sqe->id = wr->wr_id;
	sqe->opcode = opcode;
	sqe->num_sge = 0;
	err = put_operation(sqe, wr);
	if (!err && opcode != SIW_OP_REG_MR && opcode != SIW_OP_INVAL_STAG)
		err = wr->send_flags & IB_SEND_INLINE ? put_inline(sqe, wr)
						      : put_sges(sqe, wr, sge_max);
	return err ? err : flags_of(wr);
}
