// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Types and numbers of public verbs that are newer than Debian 12's rdma-core (44), under names of our own, because newer headers have
// theirs. Their layout is part of the binary interface: it must never change.
#ifndef VERBS_NEWER_H
#define VERBS_NEWER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer that the device's library chose the memory of (ibv_alloc_buf(3)). */
struct ibv_buf;

/* struct ibv_mr_init_attr, and its masks. */
enum {
	VB_MR_IOVA = 1 << 0,
	VB_MR_ADDR = 1 << 1,
	VB_MR_FD = 1 << 2,
	VB_MR_FD_OFFSET = 1 << 3,
	VB_MR_DMAH = 1 << 4,
	VB_MR_BUF = 1 << 5,
	VB_MR_KNOWN = (1 << 6) - 1
};

struct vb_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	/* read only where the mask says so: a program's struct may end before */
	void *dmah;
	struct ibv_buf *buf;
};

/* struct ibv_comp_cntr_caps, _init_attr and ibv_qp_attach_comp_cntr_attr, and their values. */
enum {
	VB_COUNT_SEND = 1 << 0,
	VB_COUNT_RECV = 1 << 1,
	VB_COUNT_READ = 1 << 2,
	VB_COUNT_REMOTE_READ = 1 << 3,
	VB_COUNT_WRITE = 1 << 4,
	VB_COUNT_REMOTE_WRITE = 1 << 5,
};

enum vb_comp_cntr_type {
	VB_COMP_CNTR_WRS,
	VB_COMP_CNTR_BYTES,
};

struct vb_comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops;
};

struct vb_comp_cntr_init_attr {
	uint32_t comp_mask;
	enum vb_comp_cntr_type type;
	uint32_t flags;
};

struct vb_comp_cntr_attach_attr {
	uint32_t comp_mask;
	uint32_t op_mask;
};

enum {
	VB_WR_FLUSH = 14, /* IBV_WR_FLUSH, and so on */
	VB_WC_FLUSH = 8,
	VB_ACCESS_FLUSH_GLOBAL = 1 << 8,
	VB_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	VB_QP_EX_WITH_FLUSH = 1 << 11,
	VB_ODP_SUPPORT_FLUSH = 1 << 6,
	VB_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
	/* enum ibv_placement_type */
	VB_FLUSH_GLOBAL = 1,
	VB_FLUSH_PERSISTENT = 2,
	/* enum ibv_selectivity_level */
	VB_FLUSH_RANGE = 0,
	VB_FLUSH_MR = 1,
};

#define VB_ACCESS_FLUSH (VB_ACCESS_FLUSH_GLOBAL | VB_ACCESS_FLUSH_PERSISTENT)

/* IB_UVERBS_DEVICE_..., in device_cap_flags_ex. */
#define VB_DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define VB_DEVICE_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define VB_DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

typedef void vb_wr_flush_fn(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			    uint8_t type, uint8_t level);

/* Where newer headers have wr_flush: behind the last member that both have. */
#define VB_WR_FLUSH_AT (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void)))

/* A struct ibv_qp_ex of any headers' size. */
union vb_qp_ex {
	struct ibv_qp_ex ibv;
	struct {
		char older[VB_WR_FLUSH_AT];
		vb_wr_flush_fn *wr_flush;
	};
};

#endif
