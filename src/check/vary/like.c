// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The adapters. Where their numbers are from stands at each; a kernel is Linux of the version named, and drivers are below
// its drivers/infiniband. Numbers that firmware reports are left out unless an owner has published them.
#include "check/vary/like.h"

#include "base/array.h"
#include "check/base/newer.h"

#include <errno.h>
#include <string.h>

#define RC (1u << IBV_QPT_RC)
#define UC (1u << IBV_QPT_UC)
#define UD (1u << IBV_QPT_UD)
#define XRC (1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_XRC_RECV)
#define RAW (1u << IBV_QPT_RAW_PACKET)

#define SENDS (1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_INV)
#define ONE_SIDED (1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_READ)
#define IMMEDIATES (1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_WRITE_WITH_IMM)
#define ATOMICS (1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD)
#define WINDOWS (1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_BIND_MW)
/* None of these adapters has them. */
#define PLACEMENT (1u << IBV_WR_ATOMIC_WRITE | 1u << AW_NEWER_WR_FLUSH)
#define OPCODES_KNOWN (SENDS | ONE_SIDED | IMMEDIATES | ATOMICS | WINDOWS | PLACEMENT)

static const struct aw_like adapters[] = {
	/*
	 * ConnectX-5, firmware 16.23: the output of ibv_devinfo -v in open-mpi/ompi#6137. The inline size depends on the
	 * other sizes of the QP (rdma-core, providers/mlx5/verbs.c), so it is the real device's.
	 */
	{
		.name = "mlx5",
		.adapter = "NVIDIA ConnectX-5",
		.transport = IBV_TRANSPORT_IB,
		.node = IBV_NODE_CA,
		.vendor_id = 0x02c9,
		.vendor_part_id = 4119,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000u,
		.max_qp = 262144,
		.max_qp_wr = 32768,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_cq = 16777216,
		.max_cqe = 4194303,
		.max_mr = 16777216,
		.max_pd = 16777216,
		.max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 16,
		.max_res_rd_atom = 4194304,
		.atomics = true,
		.qp_types = RC | UC | UD | XRC | RAW,
		.opcodes = SENDS | ONE_SIDED | IMMEDIATES | ATOMICS | WINDOWS,
		.completion = AW_LIKE_ACKED,
	},
	/*
	 * E810 with iWARP. Linux 5.14, hw/irdma: user.h (IRDMA_MAX_INLINE_DATA_SIZE, _MAX_WQ_FRAGMENT_COUNT, _MAX_SGE_RD,
	 * _MAX_IRD_SIZE, _MAX_ORD_SIZE, _MAX_CQ_SIZE, _MAX_PDS, _MAX_MR_SIZE), defs.h (IRDMA_MAX_QP_WRS of eight quanta
	 * each), icrdma_hw.c (page sizes), verbs.c (max_cqe is one less; no atomic_cap; no SRQ before the third
	 * generation). rdma-core, providers/irdma/uverbs.c: immediate data is for RoCE alone; QPs are RC or UD.
	 */
	{
		.name = "irdma",
		.adapter = "Intel E810, iWARP",
		.transport = IBV_TRANSPORT_IWARP,
		.node = IBV_NODE_RNIC,
		.vendor_id = 0x8086,
		.vendor_part_id = 0x1592,
		.max_mr_size = 0x200000000000u,
		.page_size_cap = 1u << 12 | 1u << 21 | 1u << 30,
		.max_qp_wr = (32768 - 258) / 8,
		.max_sge = 13,
		.max_sge_rd = 13,
		.max_cqe = 1048575 - 1,
		.max_pd = 262144,
		.max_qp_rd_atom = 127,
		.max_qp_init_rd_atom = 255,
		.max_srq = AW_LIKE_NONE,
		.max_srq_wr = AW_LIKE_NONE,
		.max_srq_sge = AW_LIKE_NONE,
		.max_inline = 101,
		.qp_types = RC | UD,
		.opcodes = SENDS | ONE_SIDED | WINDOWS,
		.no_access = IBV_ACCESS_REMOTE_ATOMIC,
		.completion = AW_LIKE_TAKEN,
		.initiator_first = true,
	},
	/*
	 * BCM57508, which reports the other limits by firmware. Linux 6.6, hw/bnxt_re: bnxt_re.h and ib_verbs.h
	 * (BNXT_RE_MAX_MR_SIZE, page sizes), qplib_sp.h (BNXT_QPLIB_MAX_OUT_RD_ATOM, _MAX_CQ_WQES), qplib_sp.c (six SGEs on
	 * this chip; 64 Ki PDs), ib_verbs.c (ATOMIC_NONE, unless PCIe routes atomics). rdma-core, providers/bnxt_re:
	 * bnxt_re-abi.h (BNXT_RE_MAX_INLINE_SIZE), verbs.c (QPs are RC or UD).
	 */
	{
		.name = "bnxt",
		.adapter = "Broadcom BCM57508",
		.transport = IBV_TRANSPORT_IB,
		.node = IBV_NODE_CA,
		.vendor_id = 0x14e4,
		.vendor_part_id = 0x1750,
		.max_mr_size = UINT64_C(1) << 39,
		.page_size_cap = 0x7ffff000,
		.max_sge = 6,
		.max_sge_rd = 6,
		.max_cqe = 0xfffff,
		.max_pd = 65536,
		.max_qp_rd_atom = 126,
		.max_qp_init_rd_atom = 126,
		.max_inline = 0x60,
		.qp_types = RC | UD,
		.opcodes = SENDS | ONE_SIDED | IMMEDIATES | WINDOWS,
		.no_access = IBV_ACCESS_REMOTE_ATOMIC,
		.completion = AW_LIKE_ACKED,
	},
	/*
	 * The first EFA with RDMA Read. Linux 5.15, hw/efa: efa_verbs.c (attributes that it leaves 0: no SRQ, MW, atomics,
	 * and no depth of Reads; the access flags), efa_io_defs.h (EFA_IO_TX_DESC_NUM_BUFS, _NUM_RDMA_BUFS,
	 * _INLINE_MAX_SIZE). rdma-core, providers/efa/verbs.c: QPs are UD, or SRD as a QP of the driver's own type, which
	 * keeps no order and has Sends and Reads.
	 */
	{
		.name = "efa",
		.adapter = "Amazon EFA",
		.transport = IBV_TRANSPORT_UNSPECIFIED,
		.node = IBV_NODE_UNSPECIFIED,
		.vendor_id = 0x1d0f,
		.vendor_part_id = 0xefa1,
		.max_sge = 2,
		.max_sge_rd = 1,
		.max_mw = AW_LIKE_NONE,
		.max_qp_rd_atom = AW_LIKE_NONE,
		.max_qp_init_rd_atom = AW_LIKE_NONE,
		.max_res_rd_atom = AW_LIKE_NONE,
		.max_srq = AW_LIKE_NONE,
		.max_srq_wr = AW_LIKE_NONE,
		.max_srq_sge = AW_LIKE_NONE,
		.max_inline = 32,
		.qp_types = UD, /* and SRD: see has_type */
		.opcodes = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_READ,
		.no_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			     IBV_ACCESS_MW_BIND,
		.completion = AW_LIKE_ACKED,
		.unordered = true,
	},
	/*
	 * Linux 6.6, sw/siw: siw.h (SIW_MAX_*), siw_verbs.c (siw_query_device, siw_create_qp), and include/uapi/rdma/siw-abi.h
	 * (SIW_MAX_SGE; SIW_MAX_INLINE, which is five struct siw_sge; the opcodes).
	 */
	{
		.name = "siw",
		.adapter = "Soft-iWARP of Linux",
		.transport = IBV_TRANSPORT_IWARP,
		.node = IBV_NODE_RNIC,
		.vendor_id = 0x626d74,
		.vendor_part_id = 0,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.max_qp = 1024 * 100,
		.max_qp_wr = 1024 * 32,
		.max_sge = 6,
		.max_sge_rd = 1,
		.max_cq = 1024 * 100,
		.max_cqe = 1024 * 32 * 100,
		.max_mr = 1024 * 100 * 10,
		.max_pd = 1024 * 100,
		.max_mw = AW_LIKE_NONE,
		.max_qp_rd_atom = 128,
		.max_qp_init_rd_atom = 128,
		.max_res_rd_atom = 1024 * 100 * 128,
		.max_srq = 1024 * 100,
		.max_srq_wr = 1024 * 32 * 10,
		.max_srq_sge = 6,
		.max_inline = 80,
		.qp_types = RC,
		.opcodes = SENDS | ONE_SIDED | 1u << IBV_WR_LOCAL_INV,
		.no_access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
		.completion = AW_LIKE_TAKEN,
		.initiator_first = true,
	},
	/* Linux 5.4, sw/rxe: rxe_param.h. Later versions have larger limits. */
	{
		.name = "rxe",
		.adapter = "Soft-RoCE of Linux",
		.transport = IBV_TRANSPORT_IB,
		.node = IBV_NODE_CA,
		.vendor_id = 0,
		.vendor_part_id = 0,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.max_qp = 0x10000,
		.max_qp_wr = 0x4000,
		.max_sge = 32,
		.max_sge_rd = 32,
		.max_cq = 16384,
		.max_cqe = (1 << 15) - 1,
		.max_mr = 256 * 1024,
		.max_pd = 0x7ffc,
		.max_mw = AW_LIKE_NONE,
		.max_ah = 100,
		.max_qp_rd_atom = 128,
		.max_qp_init_rd_atom = 128,
		.max_res_rd_atom = 0x3f000,
		.max_srq = 960,
		.max_srq_wr = 0x4000,
		.max_srq_sge = 27,
		.atomics = true,
		.max_inline = 400,
		.qp_types = RC | UC | UD,
		.opcodes = SENDS | ONE_SIDED | IMMEDIATES | ATOMICS | 1u << IBV_WR_LOCAL_INV,
		.no_access = IBV_ACCESS_MW_BIND,
		.completion = AW_LIKE_ACKED,
	},
};

const struct aw_like *aw_like_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(adapters); i++)
		if (strcmp(adapters[i].name, name) == 0)
			return &adapters[i];
	return NULL;
}

const char *aw_like_names(void)
{
	return "mlx5, irdma, bnxt, efa, siw, rxe";
}

static void lower(int *has, int limit)
{
	if (limit == AW_LIKE_NONE)
		*has = 0;
	else if (limit > 0 && limit < *has)
		*has = limit;
}

/* The sizes of pages that both have, unless that would be none. */
static void lower_pages(uint64_t *has, uint64_t cap)
{
	if (*has & cap)
		*has &= cap;
}

void aw_like_limit_device(const struct aw_like *like, struct ibv_device_attr *attr)
{
	attr->vendor_id = like->vendor_id;
	attr->vendor_part_id = like->vendor_part_id;
	if (like->max_mr_size > 0 && like->max_mr_size < attr->max_mr_size)
		attr->max_mr_size = like->max_mr_size;
	lower_pages(&attr->page_size_cap, like->page_size_cap);
	lower(&attr->max_qp, like->max_qp);
	lower(&attr->max_qp_wr, like->max_qp_wr);
	lower(&attr->max_sge, like->max_sge);
	lower(&attr->max_sge_rd, like->max_sge_rd);
	lower(&attr->max_cq, like->max_cq);
	lower(&attr->max_cqe, like->max_cqe);
	lower(&attr->max_mr, like->max_mr);
	lower(&attr->max_pd, like->max_pd);
	lower(&attr->max_mw, like->max_mw);
	lower(&attr->max_ah, like->max_ah);
	lower(&attr->max_qp_rd_atom, like->max_qp_rd_atom);
	lower(&attr->max_qp_init_rd_atom, like->max_qp_init_rd_atom);
	lower(&attr->max_res_rd_atom, like->max_res_rd_atom);
	lower(&attr->max_srq, like->max_srq);
	lower(&attr->max_srq_wr, like->max_srq_wr);
	lower(&attr->max_srq_sge, like->max_srq_sge);
	if (!like->atomics)
		attr->atomic_cap = IBV_ATOMIC_NONE;
	if (like->max_mw == AW_LIKE_NONE)
		attr->device_cap_flags &=
			~(unsigned int)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

static bool exceeds(uint64_t wanted, int limit)
{
	return (limit == AW_LIKE_NONE && wanted > 0) || (limit > 0 && wanted > (uint64_t)limit);
}

/* SRD, of the adapters here, is the one type of a driver's own, whose number is no bit of the table's. */
static bool has_type(const struct aw_like *like, enum ibv_qp_type type)
{
	if (type == IBV_QPT_DRIVER)
		return like->unordered;
	return (unsigned int)type < 32 && like->qp_types >> type & 1;
}

int aw_like_check_create_qp(const struct aw_like *like, const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (!has_type(like, attr->qp_type))
		return EOPNOTSUPP;
	if (attr->srq && like->max_srq == AW_LIKE_NONE)
		return EINVAL;
	if (exceeds(cap->max_send_wr, like->max_qp_wr) ||
	    exceeds(cap->max_send_sge, like->max_sge) ||
	    exceeds(cap->max_inline_data, like->max_inline))
		return EINVAL;
	/* Of a QP with an SRQ these two count for nothing (ibv_create_qp(3)). */
	if (!attr->srq && (exceeds(cap->max_recv_wr, like->max_qp_wr) ||
			   exceeds(cap->max_recv_sge, like->max_sge)))
		return EINVAL;
	return 0;
}

int aw_like_check_modify_qp(const struct aw_like *like, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC &&
	    exceeds(attr->max_rd_atomic, like->max_qp_init_rd_atom))
		return EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC &&
	    exceeds(attr->max_dest_rd_atomic, like->max_qp_rd_atom))
		return EINVAL;
	if (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & like->no_access)
		return EINVAL;
	return 0;
}

int aw_like_check_create_cq(const struct aw_like *like, int cqe)
{
	return cqe > 0 && exceeds((uint64_t)cqe, like->max_cqe) ? EINVAL : 0;
}

int aw_like_check_create_srq(const struct aw_like *like, const struct ibv_srq_init_attr *attr)
{
	if (like->max_srq == AW_LIKE_NONE)
		return EOPNOTSUPP;
	return exceeds(attr->attr.max_wr, like->max_srq_wr) ||
			       exceeds(attr->attr.max_sge, like->max_srq_sge)
		       ? EINVAL
		       : 0;
}

int aw_like_check_reg_mr(const struct aw_like *like, uint64_t length, unsigned int access)
{
	if (access & like->no_access)
		return EOPNOTSUPP;
	return like->max_mr_size > 0 && length > like->max_mr_size ? EINVAL : 0;
}

int aw_like_check_alloc_mw(const struct aw_like *like)
{
	return like->max_mw == AW_LIKE_NONE ? EOPNOTSUPP : 0;
}

static uint64_t inline_bytes(const struct ibv_send_wr *wr)
{
	uint64_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

/* Opcodes that the table does not name (IBV_WR_TSO, the driver's own) are the real device's matter. */
int aw_like_check_post_send(const struct aw_like *like, enum ibv_qp_type type,
			    const struct ibv_send_wr *wr)
{
	uint32_t opcode = (unsigned int)wr->opcode < 32 ? 1u << wr->opcode : 0;
	int sge_max = wr->opcode == IBV_WR_RDMA_READ ? like->max_sge_rd : like->max_sge;

	if (wr->num_sge < 0)
		return EINVAL;
	if (type != IBV_QPT_UD && opcode & OPCODES_KNOWN & ~like->opcodes)
		return EINVAL;
	if (exceeds((uint64_t)wr->num_sge, sge_max) && !(wr->send_flags & IBV_SEND_INLINE))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && exceeds(inline_bytes(wr), like->max_inline))
		return EINVAL;
	return 0;
}
