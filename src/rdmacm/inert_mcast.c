// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Multicast groups, which iWARP does not have: TCP has one peer.
#include <errno.h>
#include <stddef.h>

#include <rdma/rdma_cma.h>

static int unsupported(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return unsupported();
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	(void)id;
	(void)mc_join_attr;
	(void)context;
	return unsupported();
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return unsupported();
}
