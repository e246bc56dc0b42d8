// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Queries about devices, ports and objects. The model learns nothing from the answers; the plan of faults may refuse
// them.
#include "check/base/marks.h"
#include "check/hook/ops.h"
#include "check/hook/vary.h"

#include <errno.h>

#undef ibv_get_device_list

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_get_device_list"))
		list = aw_real()->ibv_get_device_list(num_devices);
	if (!list)
		aw_hook_failed("ibv_get_device_list", errno);
	else if (num_devices)
		aw_mark_given(num_devices, sizeof(*num_devices));
	for (int i = 0; list && list[i]; i++)
		aw_like_show(list[i]);
	aw_inside_leave();
	return list;
}

int ibv_fork_init(void)
{
	aw_inside_enter();
	return aw_hook_end("ibv_fork_init",
			   aw_hook_may("ibv_fork_init") ? aw_real()->ibv_fork_init() : errno);
}

/* Programs that are built with a header from before the attributes grew call it. */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_query_port")
		      ? aw_real()->ibv_query_port(context, port_num, port_attr)
		      : errno;
	return aw_hook_end("ibv_query_port", err);
}

int aw_op_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		     size_t port_attr_len)
{
	struct aw_context_shadow *device;
	int err;

	aw_inside_enter();
	device = aw_ops_get(context);
	err = aw_hook_may("ibv_query_port")
		      ? device->extended.query_port(context, port_num, port_attr, port_attr_len)
		      : errno;
	aw_object_put(&device->object);
	if (err == 0)
		aw_mark_given(port_attr, port_attr_len);
	return aw_hook_end("ibv_query_port", err);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("ibv_query_gid"))
		rc = aw_real()->ibv_query_gid(context, port_num, index, gid);
	if (rc == 0)
		aw_mark_given(gid, sizeof(*gid));
	return aw_hook_end_minus("ibv_query_gid", rc);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_query_gid_ex")
		      ? aw_real()->_ibv_query_gid_ex(context, port_num, gid_index, entry, flags,
						     entry_size)
		      : errno;
	if (err == 0)
		aw_mark_given(entry, entry_size);
	return aw_hook_end("ibv_query_gid_ex", err);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	ssize_t count;

	aw_inside_enter();
	count = aw_hook_may("ibv_query_gid_table")
			? aw_real()->_ibv_query_gid_table(context, entries, max_entries, flags,
							  entry_size)
			: -errno;
	if (count < 0)
		aw_hook_failed("ibv_query_gid_table", (int)-count);
	else
		aw_mark_given(entries, (size_t)count * entry_size);
	aw_inside_leave();
	return count;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("ibv_query_pkey"))
		rc = aw_real()->ibv_query_pkey(context, port_num, index, pkey);
	if (rc == 0)
		aw_mark_given(pkey, sizeof(*pkey));
	return aw_hook_end_minus("ibv_query_pkey", rc);
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	int index = -1;

	aw_inside_enter();
	if (aw_hook_may("ibv_get_pkey_index"))
		index = aw_real()->ibv_get_pkey_index(context, port_num, pkey);
	if (index < 0)
		aw_hook_failed("ibv_get_pkey_index", errno);
	aw_inside_leave();
	return index;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_query_qp") ? aw_real()->ibv_query_qp(qp, attr, attr_mask, init_attr)
					  : errno;
	if (err == 0) {
		aw_mark_given(attr, sizeof(*attr));
		aw_mark_given(init_attr, sizeof(*init_attr));
	}
	return aw_hook_end("ibv_query_qp", err);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_query_srq") ? aw_real()->ibv_query_srq(srq, srq_attr) : errno;
	if (err == 0)
		aw_mark_given(srq_attr, sizeof(*srq_attr));
	return aw_hook_end("ibv_query_srq", err);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	int err;

	aw_inside_enter();
	err = aw_hook_may("ibv_query_ece") ? aw_real()->ibv_query_ece(qp, ece) : errno;
	if (err == 0)
		aw_mark_given(ece, sizeof(*ece));
	return aw_hook_end("ibv_query_ece", err);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	aw_inside_enter();
	return aw_hook_end("ibv_set_ece",
			   aw_hook_may("ibv_set_ece") ? aw_real()->ibv_set_ece(qp, ece) : errno);
}
