// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls of rdma_cm that change nothing in the model, and that the plan of faults may have fail.
#include "check/base/marks.h"
#include "check/hook/hook.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_getaddrinfo"))
		rc = aw_real()->rdma_getaddrinfo(node, service, hints, res);
	if (rc == 0)
		aw_mark_given(res, sizeof(*res));
	return aw_hook_end_minus("rdma_getaddrinfo", rc);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **devices = NULL;

	aw_inside_enter();
	if (aw_hook_may("rdma_get_devices"))
		devices = aw_real()->rdma_get_devices(num_devices);
	if (!devices)
		aw_hook_failed("rdma_get_devices", errno);
	else if (num_devices)
		aw_mark_given(num_devices, sizeof(*num_devices));
	aw_inside_leave();
	return devices;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_get_request"))
		rc = aw_real()->rdma_get_request(listen, id);
	if (rc == 0)
		aw_mark_given(id, sizeof(*id));
	return aw_hook_end_minus("rdma_get_request", rc);
}

int rdma_establish(struct rdma_cm_id *id)
{
	aw_inside_enter();
	return aw_hook_end_minus("rdma_establish", aw_hook_may("rdma_establish")
							   ? aw_real()->rdma_establish(id)
							   : -1);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	aw_inside_enter();
	return aw_hook_end_minus(
		"rdma_notify", aw_hook_may("rdma_notify") ? aw_real()->rdma_notify(id, event) : -1);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_migrate_id"))
		rc = aw_real()->rdma_migrate_id(id, channel);
	return aw_hook_end_minus("rdma_migrate_id", rc);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_set_option"))
		rc = aw_real()->rdma_set_option(id, level, optname, optval, optlen);
	return aw_hook_end_minus("rdma_set_option", rc);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_init_qp_attr"))
		rc = aw_real()->rdma_init_qp_attr(id, qp_attr, qp_attr_mask);
	return aw_hook_end_minus("rdma_init_qp_attr", rc);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_join_multicast"))
		rc = aw_real()->rdma_join_multicast(id, addr, context);
	return aw_hook_end_minus("rdma_join_multicast", rc);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_join_multicast_ex"))
		rc = aw_real()->rdma_join_multicast_ex(id, mc_join_attr, context);
	return aw_hook_end_minus("rdma_join_multicast_ex", rc);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_leave_multicast"))
		rc = aw_real()->rdma_leave_multicast(id, addr);
	return aw_hook_end_minus("rdma_leave_multicast", rc);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_reject_ece"))
		rc = aw_real()->rdma_reject_ece(id, private_data, private_data_len);
	return aw_hook_end_minus("rdma_reject_ece", rc);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_set_local_ece"))
		rc = aw_real()->rdma_set_local_ece(id, ece);
	return aw_hook_end_minus("rdma_set_local_ece", rc);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int rc = -1;

	aw_inside_enter();
	if (aw_hook_may("rdma_get_remote_ece"))
		rc = aw_real()->rdma_get_remote_ece(id, ece);
	return aw_hook_end_minus("rdma_get_remote_ece", rc);
}
