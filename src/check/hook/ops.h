// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions that replace a context's ops, by the names of their members.
#ifndef CHECK_HOOK_OPS_H
#define CHECK_HOOK_OPS_H

#include "check/hook/hook.h"

/* The device's own ops of a context that aw_hook_context has seen; the caller puts them. */
struct aw_context_shadow *aw_ops_get(const struct ibv_context *context);

int aw_op_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int aw_op_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int aw_op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int aw_op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int aw_op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_mw *aw_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int aw_op_dealloc_mw(struct ibv_mw *mw);
int aw_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

struct ibv_cq_ex *aw_op_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *aw_op_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *aw_op_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_srq *aw_op_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
struct ibv_td *aw_op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int aw_op_dealloc_td(struct ibv_td *td);
struct ibv_pd *aw_op_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);
struct ibv_mr *aw_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access);

int aw_op_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		     size_t port_attr_len);
int aw_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mr *aw_op_alloc_null_mr(struct ibv_pd *pd);
int aw_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

#endif
