// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Verbs that are not written yet. Each answers "not supported" and gives way to the real function
// of the same name, whereupon it is deleted here. When the last one goes, so does this file.
#include <errno.h>
#include <stddef.h>

#include "verbs/unlisted.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PENDING __attribute__((weak))

// verbs.h hides these four names behind macros.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// Device
PENDING struct ibv_device **ibv_get_device_list(int *num_devices)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void ibv_free_device_list(struct ibv_device **list)
{
}

PENDING const char *ibv_get_device_name(struct ibv_device *device)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return 0;
}

PENDING int ibv_get_device_index(struct ibv_device *device)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_close_device(struct ibv_context *context)
{
	return EOPNOTSUPP;
}

PENDING struct ibv_context *ibv_import_device(int cmd_fd)
{
	errno = EOPNOTSUPP;
	return NULL;
}

// Queries
PENDING int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			   struct _compat_ibv_port_attr *port_attr)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			  union ibv_gid *gid)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	return EOPNOTSUPP;
}

PENDING ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				     size_t max_entries, uint32_t flags, size_t entry_size)
{
	return -EOPNOTSUPP;
}

PENDING int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			       enum ibv_gid_type_sysfs *type)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	errno = EOPNOTSUPP;
	return -1;
}

// PD
PENDING struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return EOPNOTSUPP;
}

PENDING struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void ibv_unimport_pd(struct ibv_pd *pd)
{
}

// MR, DM
PENDING struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
					unsigned int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					 uint64_t iova, int fd, int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			 int access)
{
	return EOPNOTSUPP;
}

PENDING int ibv_dereg_mr(struct ibv_mr *mr)
{
	return EOPNOTSUPP;
}

PENDING struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void ibv_unimport_mr(struct ibv_mr *mr)
{
}

PENDING struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING void ibv_unimport_dm(struct ibv_dm *dm)
{
}

// Completion channel, CQ
PENDING struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return EOPNOTSUPP;
}

PENDING struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return EOPNOTSUPP;
}

PENDING int ibv_destroy_cq(struct ibv_cq *cq)
{
	return EOPNOTSUPP;
}

PENDING int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			     void **cq_context)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
}

// Asynchronous events
PENDING int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	errno = EOPNOTSUPP;
	return -1;
}

PENDING void ibv_ack_async_event(struct ibv_async_event *event)
{
}

// QP
PENDING struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

PENDING int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

PENDING int ibv_destroy_qp(struct ibv_qp *qp)
{
	return EOPNOTSUPP;
}

// SRQ
PENDING struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return EOPNOTSUPP;
}

PENDING int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return EOPNOTSUPP;
}

PENDING int ibv_destroy_srq(struct ibv_srq *srq)
{
	return EOPNOTSUPP;
}

// AH
PENDING struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	errno = EOPNOTSUPP;
	return NULL;
}

PENDING int ibv_destroy_ah(struct ibv_ah *ah)
{
	return EOPNOTSUPP;
}

// fork
PENDING int ibv_fork_init(void)
{
	return EOPNOTSUPP;
}

PENDING enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_DISABLED;
}

PENDING int ibv_dontfork_range(void *base, size_t size)
{
	return EOPNOTSUPP;
}

PENDING int ibv_dofork_range(void *base, size_t size)
{
	return EOPNOTSUPP;
}
