// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The private names of newer releases of rdma-core. Their version node has the number of the
// release that last changed it, and a binary that was linked there (with libmlx5, say) does not
// load without that very node. inert_cmd.c and inert_provider.c describe what the functions do.
#include "verbs/inert.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define AT(node, answer, name)                                                        \
	extern __typeof__(answer) at_##node##_##name __attribute__((alias(#answer))); \
	__asm__(".symver at_" #node "_" #name "," #name "@IBVERBS_PRIVATE_" #node)
#define NEWER(answer, name)   \
	AT(57, answer, name); \
	AT(59, answer, name); \
	AT(64, answer, name); \
	AT(65, answer, name)

static __attribute__((used)) bool allowed;

static __attribute__((used)) unsigned int no_attrs(void)
{
	return 0;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       unsigned int *type);

static __attribute__((used)) int gid_type(struct ibv_context *context, uint8_t port_num,
					  unsigned int index, unsigned int *type)
{
	return ibv_query_gid_type(context, port_num, index, type);
}

AT(57, nothing, verbs_register_driver_57);
AT(59, nothing, verbs_register_driver_59);
AT(64, nothing, verbs_register_driver_64);
AT(65, nothing, verbs_register_driver_65);
NEWER(nothing, __verbs_log);
NEWER(nothing, ibv_dmabuf_heap_destroy);
NEWER(nothing, ibv_dmabuf_heap_free);
NEWER(nothing, verbs_init_cq);
NEWER(nothing, verbs_set_ops);
NEWER(nothing, verbs_uninit_context);
NEWER(no_object, _verbs_init_and_alloc_context);
NEWER(no_object, ibv_dmabuf_heap_alloc);
NEWER(no_object, ibv_dmabuf_heap_cc_shared_init);
NEWER(no_object, verbs_open_device);
NEWER(absent, ibv_read_ibdev_sysfs_file);
NEWER(allowed, verbs_allow_disassociate_destroy);
NEWER(gid_type, ibv_query_gid_type);
NEWER(no_attrs, __ioctl_final_num_attrs);
NEWER(unknown, ibv_wr_opcode_str);
NEWER(unsupported_poll, ibv_cmd_poll_cq);
NEWER(unsupported, execute_ioctl);
NEWER(unsupported, ibv_cmd_advise_mr);
NEWER(unsupported, ibv_cmd_alloc_dm);
NEWER(unsupported, ibv_cmd_alloc_dmah);
NEWER(unsupported, ibv_cmd_alloc_mw);
NEWER(unsupported, ibv_cmd_alloc_pd);
NEWER(unsupported, ibv_cmd_attach_mcast);
NEWER(unsupported, ibv_cmd_close_xrcd);
NEWER(unsupported, ibv_cmd_create_ah);
NEWER(unsupported, ibv_cmd_create_comp_cntr);
NEWER(unsupported, ibv_cmd_create_counters);
NEWER(unsupported, ibv_cmd_create_cq);
NEWER(unsupported, ibv_cmd_create_cq_ex);
NEWER(unsupported, ibv_cmd_create_cq_ex2);
NEWER(unsupported, ibv_cmd_create_flow);
NEWER(unsupported, ibv_cmd_create_flow_action_esp);
NEWER(unsupported, ibv_cmd_create_qp);
NEWER(unsupported, ibv_cmd_create_qp_ex2);
NEWER(unsupported, ibv_cmd_create_qp_ex);
NEWER(unsupported, ibv_cmd_create_rwq_ind_table);
NEWER(unsupported, ibv_cmd_create_srq);
NEWER(unsupported, ibv_cmd_create_srq_ex);
NEWER(unsupported, ibv_cmd_create_wq);
NEWER(unsupported, ibv_cmd_dealloc_mw);
NEWER(unsupported, ibv_cmd_dealloc_pd);
NEWER(unsupported, ibv_cmd_dereg_mr);
NEWER(unsupported, ibv_cmd_destroy_ah);
NEWER(unsupported, ibv_cmd_destroy_comp_cntr);
NEWER(unsupported, ibv_cmd_destroy_counters);
NEWER(unsupported, ibv_cmd_destroy_cq);
NEWER(unsupported, ibv_cmd_destroy_flow);
NEWER(unsupported, ibv_cmd_destroy_flow_action);
NEWER(unsupported, ibv_cmd_destroy_qp);
NEWER(unsupported, ibv_cmd_destroy_rwq_ind_table);
NEWER(unsupported, ibv_cmd_destroy_srq);
NEWER(unsupported, ibv_cmd_destroy_wq);
NEWER(unsupported, ibv_cmd_detach_mcast);
NEWER(unsupported, ibv_cmd_export_dmabuf_fd);
NEWER(unsupported, ibv_cmd_free_dm);
NEWER(unsupported, ibv_cmd_free_dmah);
NEWER(unsupported, ibv_cmd_get_context);
NEWER(unsupported, ibv_cmd_inc_comp_cntr);
NEWER(unsupported, ibv_cmd_inc_err_comp_cntr);
NEWER(unsupported, ibv_cmd_modify_cq);
NEWER(unsupported, ibv_cmd_modify_flow_action_esp);
NEWER(unsupported, ibv_cmd_modify_qp);
NEWER(unsupported, ibv_cmd_modify_qp_ex);
NEWER(unsupported, ibv_cmd_modify_srq);
NEWER(unsupported, ibv_cmd_modify_wq);
NEWER(unsupported, ibv_cmd_open_qp);
NEWER(unsupported, ibv_cmd_open_xrcd);
NEWER(unsupported, ibv_cmd_post_recv);
NEWER(unsupported, ibv_cmd_post_send);
NEWER(unsupported, ibv_cmd_post_srq_recv);
NEWER(unsupported, ibv_cmd_qp_attach_comp_cntr);
NEWER(unsupported, ibv_cmd_query_comp_cntr_caps);
NEWER(unsupported, ibv_cmd_query_context);
NEWER(unsupported, ibv_cmd_query_device_any);
NEWER(unsupported, ibv_cmd_query_mr);
NEWER(unsupported, ibv_cmd_query_port);
NEWER(unsupported, ibv_cmd_query_port_speed);
NEWER(unsupported, ibv_cmd_query_qp);
NEWER(unsupported, ibv_cmd_query_srq);
NEWER(unsupported, ibv_cmd_read_comp_cntr);
NEWER(unsupported, ibv_cmd_read_counters);
NEWER(unsupported, ibv_cmd_read_err_comp_cntr);
NEWER(unsupported, ibv_cmd_reg_dm_mr);
NEWER(unsupported, ibv_cmd_reg_dmabuf_mr);
NEWER(unsupported, ibv_cmd_reg_mr);
NEWER(unsupported, ibv_cmd_reg_mr_ex);
NEWER(unsupported, ibv_cmd_req_notify_cq);
NEWER(unsupported, ibv_cmd_rereg_mr);
NEWER(unsupported, ibv_cmd_resize_cq);
NEWER(unsupported, ibv_cmd_set_comp_cntr);
NEWER(unsupported, ibv_cmd_set_err_comp_cntr);
