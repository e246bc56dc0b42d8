// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The commands with which a provider library (libmlx5 and its like) asks the kernel's uverbs for
// something. Our device has no kernel part and no provider: every command returns EOPNOTSUPP and
// touches nothing. They exist because a provider does not load without them.
#include "verbs/inert.h"

int execute_ioctl(void) UNSUPPORTED;
int ibv_cmd_advise_mr(void) UNSUPPORTED;
int ibv_cmd_alloc_dm(void) UNSUPPORTED;
int ibv_cmd_alloc_mw(void) UNSUPPORTED;
int ibv_cmd_alloc_pd(void) UNSUPPORTED;
int ibv_cmd_attach_mcast(void) UNSUPPORTED;
int ibv_cmd_close_xrcd(void) UNSUPPORTED;
int ibv_cmd_create_ah(void) UNSUPPORTED;
int ibv_cmd_create_counters(void) UNSUPPORTED;
int ibv_cmd_create_cq(void) UNSUPPORTED;
int ibv_cmd_create_cq_ex(void) UNSUPPORTED;
int ibv_cmd_create_cq_ex2(void) UNSUPPORTED;
int ibv_cmd_create_flow(void) UNSUPPORTED;
int ibv_cmd_create_flow_action_esp(void) UNSUPPORTED;
int ibv_cmd_create_qp(void) UNSUPPORTED;
int ibv_cmd_create_qp_ex(void) UNSUPPORTED;
int ibv_cmd_create_qp_ex2(void) UNSUPPORTED;
int ibv_cmd_create_rwq_ind_table(void) UNSUPPORTED;
int ibv_cmd_create_srq(void) UNSUPPORTED;
int ibv_cmd_create_srq_ex(void) UNSUPPORTED;
int ibv_cmd_create_wq(void) UNSUPPORTED;
int ibv_cmd_dealloc_mw(void) UNSUPPORTED;
int ibv_cmd_dealloc_pd(void) UNSUPPORTED;
int ibv_cmd_dereg_mr(void) UNSUPPORTED;
int ibv_cmd_destroy_ah(void) UNSUPPORTED;
int ibv_cmd_destroy_counters(void) UNSUPPORTED;
int ibv_cmd_destroy_cq(void) UNSUPPORTED;
int ibv_cmd_destroy_flow(void) UNSUPPORTED;
int ibv_cmd_destroy_flow_action(void) UNSUPPORTED;
int ibv_cmd_destroy_qp(void) UNSUPPORTED;
int ibv_cmd_destroy_rwq_ind_table(void) UNSUPPORTED;
int ibv_cmd_destroy_srq(void) UNSUPPORTED;
int ibv_cmd_destroy_wq(void) UNSUPPORTED;
int ibv_cmd_detach_mcast(void) UNSUPPORTED;
int ibv_cmd_free_dm(void) UNSUPPORTED;
int ibv_cmd_get_context(void) UNSUPPORTED;
int ibv_cmd_modify_cq(void) UNSUPPORTED;
int ibv_cmd_modify_flow_action_esp(void) UNSUPPORTED;
int ibv_cmd_modify_qp(void) UNSUPPORTED;
int ibv_cmd_modify_qp_ex(void) UNSUPPORTED;
int ibv_cmd_modify_srq(void) UNSUPPORTED;
int ibv_cmd_modify_wq(void) UNSUPPORTED;
int ibv_cmd_open_qp(void) UNSUPPORTED;
int ibv_cmd_open_xrcd(void) UNSUPPORTED;
int ibv_cmd_poll_cq(void) UNSUPPORTED_POLL;
int ibv_cmd_post_recv(void) UNSUPPORTED;
int ibv_cmd_post_send(void) UNSUPPORTED;
int ibv_cmd_post_srq_recv(void) UNSUPPORTED;
int ibv_cmd_query_context(void) UNSUPPORTED;
int ibv_cmd_query_device_any(void) UNSUPPORTED;
int ibv_cmd_query_mr(void) UNSUPPORTED;
int ibv_cmd_query_port(void) UNSUPPORTED;
int ibv_cmd_query_qp(void) UNSUPPORTED;
int ibv_cmd_query_srq(void) UNSUPPORTED;
int ibv_cmd_read_counters(void) UNSUPPORTED;
int ibv_cmd_reg_dm_mr(void) UNSUPPORTED;
int ibv_cmd_reg_dmabuf_mr(void) UNSUPPORTED;
int ibv_cmd_reg_mr(void) UNSUPPORTED;
int ibv_cmd_req_notify_cq(void) UNSUPPORTED;
int ibv_cmd_rereg_mr(void) UNSUPPORTED;
int ibv_cmd_resize_cq(void) UNSUPPORTED;

unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, const void *link);

// Returns the number of attributes that a command's array must hold; execute_ioctl then reads none.
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, const void *link)
{
	(void)link;
	return num_attrs;
}
