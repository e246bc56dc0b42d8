// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Verbs that are newer than Debian 12's rdma-core (44), for binaries that were built with newer
// headers. Those that have no function here are in inert_public.c.
#include "verbs/fail.h"
#include "verbs/limits.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum {
	MR_HAS_IOVA = 1 << 0,
	MR_HAS_ADDR = 1 << 1,
	MR_HAS_FD = 1 << 2,
	MR_HAS_FD_OFFSET = 1 << 3,
	MR_OF_DMABUF = MR_HAS_IOVA | MR_HAS_FD | MR_HAS_FD_OFFSET,
	MR_KNOWN = (1 << 6) - 1
};

/* The fields of the newer headers' struct ibv_mr_init_attr that are read here. */
struct newer_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
};

/* Declared under another name, because newer headers declare it with their own struct. */
struct ibv_mr *reg_mr_ex(struct ibv_pd *pd,
			 const struct newer_mr_attr *attr) __asm__("ibv_reg_mr_ex");
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

static struct ibv_mr *no_mr(int err)
{
	errno = err;
	return NULL;
}

struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, const struct newer_mr_attr *attr)
{
	uint64_t iova;

	if (attr->comp_mask & ~(uint64_t)MR_KNOWN)
		return no_mr(EINVAL);
	if (attr->comp_mask & ~(uint64_t)(MR_HAS_ADDR | MR_OF_DMABUF))
		return no_mr(EOPNOTSUPP);
	if (attr->comp_mask == MR_OF_DMABUF)
		return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
					 attr->access);
	if (attr->comp_mask & (MR_HAS_FD | MR_HAS_FD_OFFSET))
		return no_mr(EINVAL);
	if (!(attr->comp_mask & MR_HAS_ADDR))
		return no_mr(EOPNOTSUPP);
	iova = attr->comp_mask & MR_HAS_IOVA ? attr->iova : (uintptr_t)attr->addr;
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned int)attr->access);
}

/* The speed of all lanes together, in units of 100 Mb/s. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed)
{
	struct ibv_port_attr port;
	int err;

	if (port_num > UINT8_MAX)
		return vb_fail(EINVAL);
	err = ibv_query_port(context, (uint8_t)port_num, &port);
	if (err)
		return err;
	*port_speed = VB_PORT_RATE;
	return 0;
}
