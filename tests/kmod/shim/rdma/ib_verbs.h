// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Of the kernel's verbs what src/kmod names.
#ifndef KSHIM_IB_VERBS_H
#define KSHIM_IB_VERBS_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

struct ib_cq;
struct ib_device_attr;
struct ib_qp;
struct ib_srq;

struct ib_device {
	const char *name;
};

struct ib_pd {
	struct ib_device *device;
};

struct ib_ucontext {
	int unused;
};

union ib_gid {
	u8 raw[16];
};

/* What a program and the device say to each other beside the verbs; the answer comes to out. */
struct ib_udata {
	struct ib_ucontext *uctx;
	size_t inlen, outlen;
	u8 out[64];
};

int ib_copy_to_udata(struct ib_udata *udata, const void *src, size_t len);

enum ib_event_type {
	IB_EVENT_CQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_SRQ_LIMIT_REACHED,
	IB_EVENT_QP_LAST_WQE_REACHED,
};

struct ib_event {
	struct ib_device *device;
	union {
		struct ib_cq *cq;
		struct ib_qp *qp;
		struct ib_srq *srq;
	} element;
	enum ib_event_type event;
};

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED = 1,
	IB_CQ_NEXT_COMP = 2,
	IB_CQ_SOLICITED_MASK = 3,
	IB_CQ_REPORT_MISSED_EVENTS = 4,
};

struct ib_cq {
	struct ib_device *device;
	int cqe;
	void (*comp_handler)(struct ib_cq *cq, void *context);
	void (*event_handler)(struct ib_event *event, void *context);
	void *cq_context;
	struct ib_wc *wc; /* of ib_alloc_cq */
};

struct ib_cq_init_attr {
	unsigned int cqe;
	u32 comp_vector;
	u32 flags;
};

enum ib_wc_status {
	IB_WC_SUCCESS,
	IB_WC_LOC_LEN_ERR,
	IB_WC_LOC_QP_OP_ERR,
	IB_WC_LOC_PROT_ERR,
	IB_WC_WR_FLUSH_ERR,
	IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR,
	IB_WC_REM_INV_REQ_ERR,
	IB_WC_REM_ACCESS_ERR,
	IB_WC_GENERAL_ERR,
};

enum ib_wc_opcode {
	IB_WC_SEND,
	IB_WC_RDMA_WRITE,
	IB_WC_RDMA_READ,
	IB_WC_LOCAL_INV,
	IB_WC_REG_MR,
	IB_WC_RECV,
};

enum ib_wc_flags {
	IB_WC_WITH_INVALIDATE = 8,
};

struct ib_wc {
	u64 wr_id;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	u32 byte_len;
	struct ib_qp *qp;
	union {
		u32 invalidate_rkey;
	} ex;
	int wc_flags;
};

enum ib_access_flags {
	IB_ACCESS_LOCAL_WRITE = 1,
	IB_ACCESS_REMOTE_WRITE = 2,
	IB_ACCESS_REMOTE_READ = 4,
	IB_ACCESS_REMOTE_ATOMIC = 8,
};

enum ib_mr_type {
	IB_MR_TYPE_MEM_REG,
	IB_MR_TYPE_SG_GAPS,
};

struct ib_mr {
	struct ib_device *device;
	struct ib_pd *pd;
	u32 lkey, rkey;
	u64 iova, length;
	unsigned int page_size;
};

/* One piece of memory; a device without DMA knows it by its address. */
struct scatterlist {
	u64 addr;
	u32 len;
};

/*
 * The longest front of the list that pages of mr->page_size can say: only the first piece may begin, and only the last
 * may end, within a page. How many pieces those are, and mr->iova and length; or the error of set_page for the first.
 */
int ib_sg_to_pages(struct ib_mr *mr, struct scatterlist *sg, int sg_count, unsigned int *offset,
		   int (*set_page)(struct ib_mr *mr, u64 addr));

enum ib_wr_opcode {
	IB_WR_RDMA_WRITE,
	IB_WR_RDMA_WRITE_WITH_IMM,
	IB_WR_SEND,
	IB_WR_SEND_WITH_IMM,
	IB_WR_RDMA_READ,
	IB_WR_SEND_WITH_INV,
	IB_WR_RDMA_READ_WITH_INV,
	IB_WR_LOCAL_INV,
	IB_WR_REG_MR,
};

enum ib_send_flags {
	IB_SEND_FENCE = 1,
	IB_SEND_SIGNALED = 2,
	IB_SEND_SOLICITED = 4,
	IB_SEND_INLINE = 8,
};

struct ib_sge {
	u64 addr;
	u32 length;
	u32 lkey;
};

struct ib_send_wr {
	struct ib_send_wr *next;
	u64 wr_id;
	struct ib_sge *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
	union {
		u32 invalidate_rkey;
	} ex;
};

struct ib_recv_wr {
	struct ib_recv_wr *next;
	u64 wr_id;
	struct ib_sge *sg_list;
	int num_sge;
};

struct ib_rdma_wr {
	struct ib_send_wr wr;
	u64 remote_addr;
	u32 rkey;
};

struct ib_reg_wr {
	struct ib_send_wr wr;
	struct ib_mr *mr;
	u32 key;
	int access;
};

#define rdma_wr(send) container_of(send, const struct ib_rdma_wr, wr)
#define reg_wr(send) container_of(send, const struct ib_reg_wr, wr)

struct ib_qp_cap {
	u32 max_send_wr, max_recv_wr;
	u32 max_send_sge, max_recv_sge;
	u32 max_inline_data;
};

enum ib_qp_type {
	IB_QPT_RC,
	IB_QPT_UD,
};

enum ib_sig_type {
	IB_SIGNAL_ALL_WR,
	IB_SIGNAL_REQ_WR,
};

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR,
};

enum ib_qp_attr_mask {
	IB_QP_STATE = 1,
	IB_QP_ACCESS_FLAGS = 8,
	IB_QP_ATTR_STANDARD_BITS = 0xfffff,
};

enum ib_mtu {
	IB_MTU_4096,
};

#define ib_mtu_int_to_enum(mtu) ((void)(mtu), IB_MTU_4096)

struct ib_qp_attr {
	enum ib_qp_state qp_state, cur_qp_state;
	enum ib_mtu path_mtu;
	int qp_access_flags;
	struct ib_qp_cap cap;
	u8 max_rd_atomic, max_dest_rd_atomic;
};

struct ib_qp_init_attr {
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	struct ib_qp_cap cap;
	enum ib_sig_type sq_sig_type;
	enum ib_qp_type qp_type;
	u32 create_flags;
};

struct ib_qp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	void (*event_handler)(struct ib_event *event, void *context);
	void *qp_context;
	u32 qp_num;
	enum ib_qp_type qp_type;
};

enum ib_srq_type {
	IB_SRQT_BASIC,
	IB_SRQT_XRC,
};

enum ib_srq_attr_mask {
	IB_SRQ_MAX_WR = 1,
	IB_SRQ_LIMIT = 2,
};

struct ib_srq_attr {
	u32 max_wr, max_sge, srq_limit;
};

struct ib_srq_init_attr {
	struct ib_srq_attr attr;
	enum ib_srq_type srq_type;
};

struct ib_srq {
	struct ib_device *device;
	struct ib_pd *pd;
	void (*event_handler)(struct ib_event *event, void *context);
	void *srq_context;
};

struct iw_cm_id;
struct iw_cm_conn_param;

struct ib_device_ops {
	int (*iw_connect)(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param);
	int (*iw_accept)(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param);
	int (*iw_reject)(struct iw_cm_id *cm_id, const void *pd, u8 pd_len);
	int (*iw_create_listen)(struct iw_cm_id *cm_id, int backlog);
	int (*iw_destroy_listen)(struct iw_cm_id *cm_id);
};

#endif
