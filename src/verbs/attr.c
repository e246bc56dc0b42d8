// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device's attributes. Every limit reported here is enforced where the object is created.
#include "net/base/persona.h"
#include "net/mem/mapping.h"
#include "net/ud/ud.h"
#include "verbs/context.h"
#include "verbs/dm.h"
#include "verbs/fail.h"
#include "verbs/guid.h"
#include "verbs/limits.h"
#include "verbs/newer.h"
#include "verbs/sized.h"
#include "verbs/stamp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	VENDOR_ID = 0x024157, /* locally administered: we own no OUI */
	VENDOR_PART_ID = 1,
	HW_VER = 1,
};

static const uint64_t page_size_cap = ~UINT64_C(0xfff);

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", AW_VERSION);
	attr->node_guid = vb_guid();
	attr->sys_image_guid = attr->node_guid;
	attr->vendor_id = VENDOR_ID;
	attr->vendor_part_id = VENDOR_PART_ID;
	attr->hw_ver = HW_VER;
	attr->device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
				 IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	/*
	 * Our atomics also hold against the processor's own, but UCX up to 1.13 expects the weaker
	 * word of an adapter.
	 */
	attr->atomic_cap = aw_persona_is_roce() ? IBV_ATOMIC_HCA : IBV_ATOMIC_GLOB;
	attr->phys_port_cnt = 1;
	attr->max_pkeys = 1;

	attr->max_pd = VB_PD_MAX;
	attr->max_mr = AW_MR_MAX;
	attr->max_mw = AW_MW_MAX;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = page_size_cap;
	attr->max_cq = VB_CQ_MAX;
	attr->max_cqe = AW_CQE_MAX;
	attr->max_qp = VB_QP_MAX;
	attr->max_qp_wr = AW_WR_MAX;
	attr->max_sge = AW_SGE_MAX;
	attr->max_sge_rd = AW_SGE_MAX;
	attr->max_qp_rd_atom = AW_RD_MAX;
	attr->max_qp_init_rd_atom = AW_RD_MAX;
	attr->max_res_rd_atom = AW_RD_MAX * VB_QP_MAX;
	attr->max_srq = VB_SRQ_MAX;
	attr->max_srq_wr = AW_WR_MAX;
	attr->max_srq_sge = AW_SGE_MAX;
	if (!aw_persona_is_roce())
		return 0;
	attr->device_cap_flags |= IBV_DEVICE_XRC;
	attr->max_ah = VB_AH_MAX;
	attr->max_mcast_grp = AW_UD_GROUPS;
	attr->max_mcast_qp_attach = VB_QP_MAX;
	attr->max_total_mcast_qp_attach = AW_UD_GROUPS_OF_QP * VB_QP_MAX;
	return 0;
}

/*
 * Nothing is pinned in any case: on demand only means that the memory may be unmapped and mapped
 * while it is registered.
 */
static struct ibv_odp_caps odp_caps(void)
{
	struct ibv_odp_caps caps = { 0 };

	if (!aw_mapping_can_tell())
		return caps;
	caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
					      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
					      IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
					      VB_ODP_SUPPORT_FLUSH | VB_ODP_SUPPORT_ATOMIC_WRITE;
	if (!aw_persona_is_roce())
		return caps;
	caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
					      IBV_ODP_SUPPORT_SRQ_RECV;
	caps.per_transport_caps.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
					      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV;
	return caps;
}

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex now;

	if (input && input->comp_mask)
		return vb_fail(EINVAL);
	if (attr_size < sizeof(now.orig_attr))
		return vb_fail(EINVAL);
	memset(&now, 0, sizeof(now));
	ibv_query_device(context, &now.orig_attr);
	now.device_cap_flags_ex = now.orig_attr.device_cap_flags | VB_DEVICE_FLUSH_GLOBAL |
				  VB_DEVICE_FLUSH_PERSISTENT | VB_DEVICE_ATOMIC_WRITE;
	now.odp_caps = odp_caps();
	now.completion_timestamp_mask = VB_STAMP_MASK;
	now.hca_core_clock = VB_STAMP_KHZ;
	now.cq_mod_caps.max_cq_count = UINT16_MAX;
	now.cq_mod_caps.max_cq_period = UINT16_MAX;
	now.max_dm_size = VB_DM_MAX;
	now.phys_port_cnt_ex = now.orig_attr.phys_port_cnt;
	if (aw_persona_is_roce())
		now.xrc_odp_caps = now.odp_caps.per_transport_caps.rc_odp_caps;
	vb_sized_write(attr, attr_size, &now, sizeof(now));
	return 0;
}
