// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/names.h"

#include "base/array.h"
#include "check/faults/near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct name {
	const char *text;
	int err; /* of its usual failure */
};

/* Sorted by the text, since a place is looked up at each call. */
static const struct name names[] = {
	{ "ibv_advise_mr", ENOMEM },
	{ "ibv_alloc_mw", ENOMEM },
	{ "ibv_alloc_null_mr", ENOMEM },
	{ "ibv_alloc_parent_domain", ENOMEM },
	{ "ibv_alloc_pd", ENOMEM },
	{ "ibv_alloc_td", ENOMEM },
	{ "ibv_attach_mcast", ENOMEM },
	{ "ibv_bind_mw", ENOMEM },
	{ "ibv_close_device", EBUSY },
	{ "ibv_create_ah", ENOMEM },
	{ "ibv_create_ah_from_wc", ENOMEM },
	{ "ibv_create_comp_channel", ENOMEM },
	{ "ibv_create_cq", ENOMEM },
	{ "ibv_create_cq_ex", ENOMEM },
	{ "ibv_create_qp", ENOMEM },
	{ "ibv_create_qp_ex", ENOMEM },
	{ "ibv_create_srq", ENOMEM },
	{ "ibv_create_srq_ex", ENOMEM },
	{ "ibv_dealloc_mw", EBUSY },
	{ "ibv_dealloc_pd", EBUSY },
	{ "ibv_dealloc_td", EBUSY },
	{ "ibv_dereg_mr", EBUSY },
	{ "ibv_destroy_ah", EBUSY },
	{ "ibv_destroy_comp_channel", EBUSY },
	{ "ibv_destroy_cq", EBUSY },
	{ "ibv_destroy_qp", EBUSY },
	{ "ibv_destroy_srq", EBUSY },
	{ "ibv_detach_mcast", EBUSY },
	{ "ibv_fork_init", ENOMEM },
	{ "ibv_get_async_event", EIO },
	{ "ibv_get_cq_event", EIO },
	{ "ibv_get_device_list", EIO },
	{ "ibv_get_pkey_index", EIO },
	{ "ibv_import_device", ENOMEM },
	{ "ibv_import_dm", ENOMEM },
	{ "ibv_import_mr", ENOMEM },
	{ "ibv_import_pd", ENOMEM },
	{ "ibv_init_ah_from_wc", EINVAL },
	{ "ibv_modify_cq", EINVAL },
	{ "ibv_modify_qp", EINVAL },
	{ "ibv_modify_srq", EINVAL },
	{ "ibv_next_poll", EIO },
	{ "ibv_open_device", ENOMEM },
	{ "ibv_open_qp", ENOMEM },
	{ "ibv_poll_cq", EIO },
	{ "ibv_post_recv", ENOMEM },
	{ "ibv_post_send", ENOMEM },
	{ "ibv_post_srq_recv", ENOMEM },
	{ "ibv_query_device", EIO },
	{ "ibv_query_device_ex", EIO },
	{ "ibv_query_ece", EIO },
	{ "ibv_query_gid", EIO },
	{ "ibv_query_gid_ex", EIO },
	{ "ibv_query_gid_table", EIO },
	{ "ibv_query_pkey", EIO },
	{ "ibv_query_port", EIO },
	{ "ibv_query_qp", EIO },
	{ "ibv_query_srq", EIO },
	{ "ibv_reg_dm_mr", ENOMEM },
	{ "ibv_reg_dmabuf_mr", ENOMEM },
	{ "ibv_reg_mr", ENOMEM },
	{ "ibv_reg_mr_iova", ENOMEM },
	{ "ibv_reg_mr_iova2", ENOMEM },
	{ "ibv_req_notify_cq", EINVAL },
	{ "ibv_rereg_mr", ENOMEM },
	{ "ibv_resize_cq", ENOMEM },
	{ "ibv_set_ece", EINVAL },
	{ "ibv_start_poll", EIO },
	{ "ibv_wr_complete", EINVAL },
	{ "rdma_accept", EINVAL },
	{ "rdma_bind_addr", EADDRNOTAVAIL },
	{ "rdma_connect", ECONNREFUSED },
	{ "rdma_create_ep", ENOMEM },
	{ "rdma_create_event_channel", ENOMEM },
	{ "rdma_create_id", ENOMEM },
	{ "rdma_create_qp", ENOMEM },
	{ "rdma_create_qp_ex", ENOMEM },
	{ "rdma_destroy_id", EBUSY },
	{ "rdma_disconnect", EINVAL },
	{ "rdma_establish", EINVAL },
	{ "rdma_get_cm_event", EIO },
	{ "rdma_get_devices", EIO },
	{ "rdma_get_remote_ece", EIO },
	{ "rdma_get_request", EIO },
	{ "rdma_getaddrinfo", ENODEV },
	{ "rdma_init_qp_attr", EINVAL },
	{ "rdma_join_multicast", ENOMEM },
	{ "rdma_join_multicast_ex", ENOMEM },
	{ "rdma_leave_multicast", EBUSY },
	{ "rdma_listen", EADDRINUSE },
	{ "rdma_migrate_id", EINVAL },
	{ "rdma_notify", EINVAL },
	{ "rdma_reject", EINVAL },
	{ "rdma_reject_ece", EINVAL },
	{ "rdma_resolve_addr", ENODEV },
	{ "rdma_resolve_route", EINVAL },
	{ "rdma_set_local_ece", EINVAL },
	{ "rdma_set_option", EINVAL },
};

_Static_assert(ARRAY_LEN(names) <= AW_FAULT_NAMES_MAX, "the counts have a place for each name");

static int compare(const void *key, const void *element)
{
	const struct aw_slice *slice = key;
	const struct name *name = element;
	int order = strncmp(slice->at, name->text, slice->len);

	return order ? order : name->text[slice->len] ? -1 : 0;
}

int aw_fault_name_find(struct aw_slice slice)
{
	const struct name *found =
		bsearch(&slice, names, ARRAY_LEN(names), sizeof(names[0]), compare);

	return found ? (int)(found - names) : -1;
}

const char *aw_fault_name(unsigned index)
{
	return index < ARRAY_LEN(names) ? names[index].text : NULL;
}

int aw_fault_name_errno(unsigned index)
{
	return index < ARRAY_LEN(names) ? names[index].err : EINVAL;
}

bool aw_fault_name_matches(struct aw_slice pattern, const char *name)
{
	const char *star = memchr(pattern.at, '*', pattern.len);
	size_t head = star ? (size_t)(star - pattern.at) : pattern.len;
	size_t tail = star ? pattern.len - head - 1 : 0;
	size_t len = strlen(name);

	if (!star)
		return aw_slice_equals(pattern, name);
	return len >= head + tail && strncmp(pattern.at, name, head) == 0 &&
	       strncmp(star + 1, name + len - tail, tail) == 0;
}

const char *aw_fault_name_nearest(struct aw_slice slice)
{
	struct aw_near near = aw_near_to(slice);

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		aw_near_try(&near, names[i].text);
	return near.word;
}
