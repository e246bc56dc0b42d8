// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device's operations, and the answers to queries of it and its port.
//
// A new kernel verb, file by file:
//
//  1. The object's header has the function, with the signature that struct ib_device_ops has: verbs/verbs.h for a QP, cq/cq.h,
//     cq/srq.h, mr/mr.h. Its body is in that object's file. It changes a QP's core between awk_qp_lock and awk_qp_unlock,
//     and calls awk_stream_push after that, or awk_qp_kick where it may not sleep. If Linux has changed the call since 6.1, the
//     room's compat.h hides that.
//  2. awk_device_ops below has a line for it; iw_cm's calls are in awk_cm_ops (cm/cm.c). A limit goes into base/limits.h and
//     device_query.
//  3. A work request passes four files: qp/sqe_wr.c writes a kernel consumer's as an entry of the ring; qp/sqe.c makes
//     it one of the core's, and says whether programs may post it; qp/ops.c names its completion's opcode, and carries out a
//     local operation; cq/poll.c translates the completion back.
//  4. Where user space is to test it as well, tests/kmod/shim/rdma/ib_verbs.h names what it uses of Linux's verbs. Kbuild,
//     tests/kmod and DKMS take every .c file of the rooms.
//  5. tests/kernel/test_module.py, or test_cq.py and the like, runs it in a kernel; docs/kernel.md and CHANGELOG.md tell users.
#include "kmod/base/device.h"
#include "kmod/base/ring.h"
#include "kmod/cq/cq.h"
#include "kmod/cq/srq.h"
#include "kmod/mr/mr.h"
#include "kmod/qp/qp.h"
#include "kmod/verbs/verbs.h"

#include <linux/module.h>
#include <rdma/ib_user_ioctl_verbs.h>

/* The values of user space (verbs/attr.c). */
#define VENDOR_ID 0x024157
#define VENDOR_PART_ID 1

static int device_query(struct ib_device *base, struct ib_device_attr *attr, struct ib_udata *udata)
{
	if (udata->inlen || udata->outlen)
		return -EINVAL;
	*attr = (struct ib_device_attr){
		.sys_image_guid = base->node_guid,
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.max_mr_size = ULONG_MAX,
		.page_size_cap = PAGE_SIZE,
		.max_qp = AWK_QP_MAX,
		.max_qp_wr = AWK_WR_MAX,
		.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG,
		.max_send_sge = AWK_SGE_MAX,
		.max_recv_sge = AWK_SGE_MAX,
		.max_sge_rd = AWK_SGE_MAX,
		.max_cq = AWK_OBJECT_MAX,
		.max_cqe = AWK_CQE_MAX,
		.max_mr = AWK_MR_MAX,
		.max_pd = AWK_OBJECT_MAX,
		.max_qp_rd_atom = AWK_RD_MAX,
		.max_qp_init_rd_atom = AWK_RD_MAX,
		.max_res_rd_atom = AWK_QP_MAX * AWK_RD_MAX,
		.max_srq = AWK_OBJECT_MAX,
		.max_srq_wr = AWK_SRQ_WR_MAX,
		.max_srq_sge = AWK_SGE_MAX,
		.max_fast_reg_page_list_len = AWK_FAST_PAGES_MAX,
	};
	return 0;
}

static int port_query(struct ib_device *base, u32 port, struct ib_port_attr *attr)
{
	const struct net_device *netdev = awk_device_of(base)->netdev;
	bool up = netif_running(netdev) && netif_carrier_ok(netdev);
	int err = ib_get_eth_speed(base, port, &attr->active_speed, &attr->active_width);

	if (err)
		return err;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(netdev->mtu);
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->gid_tbl_len = 1;
	attr->max_msg_sz = AW_MSG_MAX;
	attr->port_cap_flags = IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_DEVICE_MGMT_SUP;
	return 0;
}

static int port_immutable(struct ib_device *base, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

static int gid_query(struct ib_device *base, u32 port, int index, union ib_gid *gid)
{
	*gid = (union ib_gid){ 0 };
	gid->global.subnet_prefix = READ_ONCE(awk_device_of(base)->gid_prefix);
	return 0;
}

static void device_dealloc(struct ib_device *base)
{
	struct awk_device *dev = awk_device_of(base);

	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	dev_put(dev->netdev);
}

struct awk_pd {
	struct ib_pd base;
};

static int pd_alloc(struct ib_pd *pd, struct ib_udata *udata)
{
	return awk_device_count(&awk_device_of(pd->device)->pds) ? 0 : -ENOMEM;
}

static int pd_dealloc(struct ib_pd *pd, struct ib_udata *udata)
{
	atomic_dec(&awk_device_of(pd->device)->pds);
	return 0;
}

static int ucontext_alloc(struct ib_ucontext *uctx, struct ib_udata *udata)
{
	struct siw_uresp_alloc_ctx resp = { 0 };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/*
 * An insert into the verbs core's table of mappings that runs out of memory leaves nodes without an
 * entry: the verbs core does not free them, and warns of a table that is not empty.
 */
static void ucontext_dealloc(struct ib_ucontext *uctx)
{
	unsigned long index = 0;

	if (!xa_find(&uctx->mmap_xa, &index, ULONG_MAX, XA_PRESENT))
		xa_destroy(&uctx->mmap_xa);
}

/*
 * Called when the device goes while a program has it open: its rings are memory, which stays until
 * the program unmaps them.
 */
static void ucontext_disassociate(struct ib_ucontext *uctx)
{
}

const struct ib_device_ops awk_device_ops = {
	.owner = THIS_MODULE,
	.uverbs_abi_ver = SIW_ABI_VERSION,
	.driver_id = RDMA_DRIVER_SIW,

	.query_device = device_query,
	.query_port = port_query,
	.query_gid = gid_query,
	.get_port_immutable = port_immutable,
	.dealloc_driver = device_dealloc,
	.alloc_ucontext = ucontext_alloc,
	.dealloc_ucontext = ucontext_dealloc,
	.disassociate_ucontext = ucontext_disassociate,
	.mmap = awk_ring_mmap,
	.mmap_free = awk_ring_mmap_free,
	.alloc_pd = pd_alloc,
	.dealloc_pd = pd_dealloc,

	.get_dma_mr = awk_mr_get_dma,
	.reg_user_mr = awk_mr_reg_user,
	.alloc_mr = awk_mr_alloc,
	.map_mr_sg = awk_mr_map_sg,
	.dereg_mr = awk_mr_dereg,

	.create_cq = awk_cq_create,
	.destroy_cq = awk_cq_destroy,
	.poll_cq = awk_cq_poll,
	.req_notify_cq = awk_cq_req_notify,

	.create_srq = awk_srq_create,
	.modify_srq = awk_srq_modify,
	.query_srq = awk_srq_query,
	.destroy_srq = awk_srq_destroy,
	.post_srq_recv = awk_srq_post,

	.create_qp = awk_qp_create,
	.modify_qp = awk_qp_modify,
	.query_qp = awk_qp_query,
	.destroy_qp = awk_qp_destroy,
	.post_send = awk_qp_post_send,
	.post_recv = awk_qp_post_recv,
	.iw_add_ref = awk_qp_add_ref,
	.iw_rem_ref = awk_qp_rem_ref,
	.iw_get_qp = awk_qp_get_ib,

	INIT_RDMA_OBJ_SIZE(ib_cq, awk_cq, base),
	INIT_RDMA_OBJ_SIZE(ib_pd, awk_pd, base),
	INIT_RDMA_OBJ_SIZE(ib_qp, awk_qp, base),
	INIT_RDMA_OBJ_SIZE(ib_srq, awk_srq, base),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, awk_ucontext, base),
};
