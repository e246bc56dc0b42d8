// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of the libibverbs and librdmacm that the program would call if nothing stood between.
#ifndef CHECK_BASE_REAL_H
#define CHECK_BASE_REAL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* Macros of the header stand before these functions. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

#define AW_REAL_FUNCTIONS(F)          \
	F(ibv_open_device)            \
	F(ibv_import_device)          \
	F(ibv_close_device)           \
	F(ibv_query_device)           \
	F(ibv_get_async_event)        \
	F(ibv_ack_async_event)        \
	F(ibv_alloc_pd)               \
	F(ibv_dealloc_pd)             \
	F(ibv_reg_mr)                 \
	F(ibv_reg_mr_iova)            \
	F(ibv_reg_mr_iova2)           \
	F(ibv_reg_dmabuf_mr)          \
	F(ibv_rereg_mr)               \
	F(ibv_dereg_mr)               \
	F(ibv_create_comp_channel)    \
	F(ibv_destroy_comp_channel)   \
	F(ibv_create_cq)              \
	F(ibv_resize_cq)              \
	F(ibv_destroy_cq)             \
	F(ibv_get_cq_event)           \
	F(ibv_ack_cq_events)          \
	F(ibv_create_srq)             \
	F(ibv_modify_srq)             \
	F(ibv_destroy_srq)            \
	F(ibv_create_qp)              \
	F(ibv_qp_to_qp_ex)            \
	F(ibv_modify_qp)              \
	F(ibv_query_qp)               \
	F(ibv_destroy_qp)             \
	F(ibv_create_ah)              \
	F(ibv_destroy_ah)             \
	F(ibv_attach_mcast)           \
	F(ibv_get_device_list)        \
	F(ibv_fork_init)              \
	F(ibv_query_port)             \
	F(ibv_query_gid)              \
	F(_ibv_query_gid_ex)          \
	F(_ibv_query_gid_table)       \
	F(ibv_query_pkey)             \
	F(ibv_get_pkey_index)         \
	F(ibv_query_srq)              \
	F(ibv_query_ece)              \
	F(ibv_set_ece)                \
	F(ibv_create_ah_from_wc)      \
	F(ibv_init_ah_from_wc)        \
	F(ibv_detach_mcast)           \
	F(ibv_import_pd)              \
	F(ibv_unimport_pd)            \
	F(ibv_import_mr)              \
	F(ibv_unimport_mr)            \
	F(ibv_import_dm)              \
	F(rdma_create_event_channel)  \
	F(rdma_destroy_event_channel) \
	F(rdma_create_id)             \
	F(rdma_create_ep)             \
	F(rdma_destroy_ep)            \
	F(rdma_destroy_id)            \
	F(rdma_bind_addr)             \
	F(rdma_resolve_addr)          \
	F(rdma_resolve_route)         \
	F(rdma_create_qp)             \
	F(rdma_create_qp_ex)          \
	F(rdma_destroy_qp)            \
	F(rdma_connect)               \
	F(rdma_listen)                \
	F(rdma_get_request)           \
	F(rdma_accept)                \
	F(rdma_reject)                \
	F(rdma_disconnect)            \
	F(rdma_get_cm_event)          \
	F(rdma_ack_cm_event)          \
	F(rdma_getaddrinfo)           \
	F(rdma_get_devices)           \
	F(rdma_establish)             \
	F(rdma_notify)                \
	F(rdma_migrate_id)            \
	F(rdma_set_option)            \
	F(rdma_init_qp_attr)          \
	F(rdma_join_multicast)        \
	F(rdma_join_multicast_ex)     \
	F(rdma_leave_multicast)       \
	F(rdma_reject_ece)            \
	F(rdma_set_local_ece)         \
	F(rdma_get_remote_ece)

struct aw_real {
#define AW_REAL_MEMBER(name) __typeof__(name) *name;
	AW_REAL_FUNCTIONS(AW_REAL_MEMBER)
#undef AW_REAL_MEMBER
};

/* Found once, by the next object behind this library; a function that the program's libraries lack is NULL. */
const struct aw_real *aw_real(void);

#endif
