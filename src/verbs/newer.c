// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Verbs that are newer than Debian 12's rdma-core (44), for binaries that were built with newer
// headers: registration and the port's speed. Those of an object of their own are in its file (buf.c, comp_cntr.c); those
// that have no function here are in inert_public.c.
#include "verbs/newer.h"

#include "verbs/fail.h"
#include "verbs/limits.h"

#include <errno.h>
#include <stdint.h>

#define OF_DMABUF (VB_MR_IOVA | VB_MR_FD | VB_MR_FD_OFFSET)
#define OF_BUF (VB_MR_BUF | VB_MR_ADDR)

/* Declared under another name, because newer headers declare it with their own struct. */
struct ibv_mr *reg_mr_ex(struct ibv_pd *pd,
			 const struct vb_mr_init_attr *attr) __asm__("ibv_reg_mr_ex");
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

static struct ibv_mr *no_mr(int err)
{
	errno = err;
	return NULL;
}

/* Of a buffer (ibv_alloc_buf); its IOVA is its address unless the program names another. */
static struct ibv_mr *of_buf(struct ibv_pd *pd, const struct vb_mr_init_attr *attr)
{
	if ((attr->comp_mask & ~(uint64_t)VB_MR_IOVA) != OF_BUF)
		return no_mr(EINVAL);
	if (attr->comp_mask & VB_MR_IOVA && attr->iova != (uintptr_t)attr->addr)
		return no_mr(EOPNOTSUPP);
	return ibv_reg_buf_mr(pd, attr->buf, attr->addr, attr->length, attr->access);
}

/* A DMA handle steers an adapter's accesses over PCIe, and there are none. */
struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, const struct vb_mr_init_attr *attr)
{
	uint64_t iova;

	if (attr->comp_mask & ~(uint64_t)VB_MR_KNOWN)
		return no_mr(EINVAL);
	if (attr->comp_mask & VB_MR_DMAH)
		return no_mr(EOPNOTSUPP);
	if (attr->comp_mask & VB_MR_BUF)
		return of_buf(pd, attr);
	if (attr->comp_mask == OF_DMABUF)
		return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
					 attr->access);
	if (attr->comp_mask & (VB_MR_FD | VB_MR_FD_OFFSET))
		return no_mr(EINVAL);
	if (!(attr->comp_mask & VB_MR_ADDR))
		return no_mr(EOPNOTSUPP);
	iova = attr->comp_mask & VB_MR_IOVA ? attr->iova : (uintptr_t)attr->addr;
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
