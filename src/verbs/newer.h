// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Types of public verbs that are newer than Debian 12's rdma-core (44), under names of our own, because newer headers have
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

#endif
